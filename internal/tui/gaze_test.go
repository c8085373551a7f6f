package tui

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
)

// Keys tell that somebody looks, not each of them, and the focus tells it at once.
func TestGaze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGaze()
		told := func(e term.Event) string {
			g.input(e)
			got := [2]string{}
			for i, c := range []<-chan bool{g.looks, g.teams} {
				select {
				case here := <-c:
					got[i] = map[bool]string{true: "looks", false: "left"}[here]
				default:
				}
			}
			if got[0] != got[1] {
				t.Errorf("the team is told %q, the list of teams %q", got[0], got[1])
			}
			return got[0]
		}
		key := term.Event{Kind: term.Key, Key: "j"}
		for i, step := range []struct {
			e    term.Event
			want string
		}{
			{key, "looks"}, {key, ""}, {term.Event{Kind: term.Focus}, "left"}, {term.Event{Kind: term.Mouse}, ""},
			{term.Event{Kind: term.Focus, Focused: true}, "looks"}, {key, ""},
		} {
			if got := told(step.e); got != step.want {
				t.Errorf("step %d: %q, want %q", i, got, step.want)
			}
		}
		time.Sleep(gazeFor) //nolint:forbidigo // in a bubble: the time is not real
		if got := told(key); got != "looks" {
			t.Errorf("a key after a pause: %q", got)
		}
		g.input(term.Event{Kind: term.Focus}) // not read: the newest counts
		if got := told(term.Event{Kind: term.Focus, Focused: true}); got != "looks" {
			t.Errorf("the newest: %q", got)
		}
	})
}
