package courier

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"testing/synctest"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// slowScreen fails the first reads.
type slowScreen struct {
	couriertest.Screen
	fails int
}

func (s *slowScreen) Capture(ctx context.Context, lines int) (string, error) {
	if s.fails > 0 {
		s.fails--
		return "", errors.New("tmux is slow")
	}
	return s.Screen.Capture(ctx, lines)
}

// A screen that comes to rest while it cannot be read is read later: its program may not write
// again before someone has been notified of its content.
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

// A hook's report that the screen must confirm is confirmed by the next look, even if the screen
// is unchanged.
func TestScreenConfirmsAHook(t *testing.T) {
	t.Parallel()
	rules, ok, err := adapter.BuiltinRules(adapter.Gemini)
	if !ok || err != nil {
		t.Fatal(err)
	}
	dir := team.Bundle(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		l := newLooker(Facts{Bundle: dir, Generation: "g", Log: slog.New(slog.DiscardHandler)}, &couriertest.Screen{}, rules)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		seen, gone, written := make(chan team.Observation, 9), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(gone)
			l.watch(ctx, written, nil, func(o team.Observation) { seen <- o })
		}()
		<-seen
		for _, confirm := range []bool{false, true} {
			time.Sleep(lookConfirm / 2) //nolint:forbidigo // in a bubble
			hook := team.Observation{Tier: team.TierHook, Activity: team.Idle, At: time.Now(), Confirm: confirm}
			if err := WriteSeen(dir, SeenFile{Generation: "g", Seen: hook}); err != nil {
				t.Fatal(err)
			}
			written <- struct{}{}
			time.Sleep(2 * lookQuiet) //nolint:forbidigo // in a bubble
			if told := len(seen) > 0; told != confirm {
				t.Errorf("it is to be confirmed: %v, told again: %v", confirm, told)
			}
			for len(seen) > 0 {
				<-seen
			}
		}
		cancel()
		<-gone
	})
}
