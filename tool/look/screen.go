package look

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// A screen whose supervisor has ended asks again after screenAgain, and after twice as long until
// screenSeldom.
const (
	screenAgain  = time.Second
	screenSeldom = 15 * time.Second
)

// ScreenFollow calls each with a member's screen as view.Screens has it, by the supervisor that runs
// now, and by the next one once that has ended. It starts none: otherwise a screen could not show
// that there is none.
func ScreenFollow(ctx context.Context, t *tool.Team, name string, each func(view.Frame)) error {
	m, err := t.Member(ctx, name)
	if err != nil {
		return err
	}
	var last []string
	for wait := screenAgain; ; wait = min(2*wait, screenSeldom) {
		sup, err := t.RunningSupervisor(ctx)
		if err == nil {
			err = sup.View(ctx, m.Name, func(lines []string) {
				if wait = screenAgain; last == nil || !slices.Equal(lines, last) {
					last = lines
					each(view.Frame{Lines: lines, At: time.Now()})
				}
			})
		}
		if ctx.Err() != nil || err == nil {
			return nil
		}
		if last == nil || !team.IsCode(err, team.CodeUnavailable) {
			return err
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// ScreenBack returns the lines of a member's screen with its history. It starts no supervisor, as
// ScreenFollow.
func ScreenBack(ctx context.Context, t *tool.Team, name string) ([]string, error) {
	m, err := t.Member(ctx, name)
	if err != nil {
		return nil, err
	}
	sup, err := t.RunningSupervisor(ctx)
	if err != nil {
		return nil, err
	}
	return sup.ViewBack(ctx, m.Name)
}
