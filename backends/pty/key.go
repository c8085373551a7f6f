package pty

import (
	"context"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// Key presses one of backends.Keys.
func (a *attached) Key(ctx context.Context, name string) error {
	if _, ok := backends.Keys[name]; !ok {
		return team.Errorf(team.CodeInvalid, "press %q: unknown key", name)
	}
	_, err := a.call(ctx, "press a key for", kindType, typeIn{Key: name})
	return err
}
