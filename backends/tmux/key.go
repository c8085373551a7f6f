package tmux

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// Key presses one of backends.Keys, even while the user scrolls in copy mode.
func (a *attached) Key(ctx context.Context, name string) error {
	data, ok := backends.Keys[name]
	if !ok {
		return team.Errorf(team.CodeInvalid, "press %q: unknown key", name)
	}
	return a.on(ctx, "press a key for", func(s *server, id string) error {
		return a.paste(ctx, s, id, "key", data)
	})
}

// Scrolling reports whether the user is scrolling in the pane: it is in copy
// mode.
func (a *attached) Scrolling(ctx context.Context) (on bool, err error) {
	err = a.on(ctx, "look at", func(s *server, id string) error {
		out, err := s.run(ctx, "display-message", "-p", "-t", id, "#{pane_in_mode}")
		on = strings.TrimSpace(out) == "1"
		return err
	})
	return on, err
}
