package look

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// panics returns what f panics with.
func panics(f func()) (what any) {
	defer func() { what = recover() }()
	f()
	return nil
}

// TestPanicsReachTheCaller checks that a panic of a goroutine that asks a supervisor reaches the one that
// follows the team, and the one that reads the changes of all teams, with its stack.
func TestPanicsReachTheCaller(t *testing.T) {
	t.Parallel()
	s := newTeams(t)
	s.create("a")
	s.env.Ping = func(context.Context, team.Layout) error { panic("boom") }
	crash := func(what any) bool {
		text, ok := what.(string)
		return ok && strings.HasPrefix(text, "boom\n") && strings.Contains(text, "await")
	}
	open, err := s.env.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if what := panics(func() {
		err := Follow(ctx, open, func() view.Interest { return view.Interest{} }, func(view.Snapshot) {})
		t.Errorf("Follow returns %v", err)
	}); !crash(what) {
		t.Errorf("Follow panics with %v", what)
	}
	w, err := FollowTeams(t.Context(), s.env, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	limit := time.After(patience)
	var what any
	for done := false; what == nil && !done; {
		what = panics(func() {
			select {
			case <-w.Changes():
			case <-limit:
				done = true
			}
		})
	}
	if !crash(what) {
		t.Errorf("the changes of all teams panic with %v", what)
	}
}
