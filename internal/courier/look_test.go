package courier

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// slowScreen cannot be read the first times.
type slowScreen struct {
	fakeScreen
	fails int
}

func (s *slowScreen) Capture(ctx context.Context, lines int) (string, error) {
	if s.fails > 0 {
		s.fails--
		return "", errors.New("tmux is slow")
	}
	return s.fakeScreen.Capture(ctx, lines)
}

// A screen that comes to rest while nobody can read it is read later: its program may
// not write again until somebody has been told what it shows.
func TestScreenThatCannotBeReadIsReadLater(t *testing.T) {
	t.Parallel()
	rules, ok, err := adapter.BuiltinRules(adapter.Gemini)
	if !ok || err != nil {
		t.Fatal(err)
	}
	dir := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		l := newLooker(Facts{Bundle: dir, Log: slog.New(slog.DiscardHandler)}, &slowScreen{fails: 4}, rules)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen, gone := make(chan team.Observation), make(chan struct{})
		go func() {
			defer close(gone)
			l.watch(ctx, make(chan struct{}), nil, func(o team.Observation) {
				select {
				case seen <- o:
				case <-ctx.Done():
				}
			})
		}()
		select {
		case o := <-seen:
			if o.Activity != team.Idle || o.Tier != team.TierScreen {
				t.Errorf("seen: %+v", o)
			}
		case <-ctx.Done():
			t.Error("it was never read")
		}
		cancel()
		<-gone
	})
}
