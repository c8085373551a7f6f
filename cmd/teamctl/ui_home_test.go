package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestDeletedTeamIsClosed checks that a screen closes a team that was deleted with the next list of the
// teams, unless it follows it still, and no other.
func TestDeletedTeamIsClosed(t *testing.T) {
	t.Setenv(team.EnvHome, t.TempDir())
	a := &app{out: &output{stdout: io.Discard, stderr: io.Discard}, served: true} // it starts no supervisor
	env, err := a.tools()
	if err != nil {
		t.Fatal(err)
	}
	h := &screenHome{app: a, teams: map[string]*screenTeam{}, ctx: t.Context(), door: tool.DoorScreen}
	defer h.close()
	ended := map[string]bool{}
	for _, name := range []string{"kept", "deleted", "followed"} {
		if _, err := env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Open(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		h.teams[name].unattend = func() { ended[name] = true }
	}
	ctx, leave := context.WithCancel(t.Context())
	seen, left := make(chan bool, 1), make(chan error, 1)
	followed := h.teams["followed"]
	go func() {
		left <- followed.Follow(ctx, func() view.Interest { return view.Interest{} }, func(view.Snapshot) {
			select {
			case seen <- true:
			default:
			}
		})
	}()
	<-seen
	if n := followed.followed.Load(); n != 1 {
		t.Errorf("it is followed %d times", n)
	}
	for _, name := range []string{"deleted", "followed"} {
		if _, err := env.Delete(t.Context(), tool.Person(), name, tool.DeleteIn{}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(want ...string) {
		t.Helper()
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		if err := h.Teams(ctx, nil, func([]view.Glance) { enough() }); ctx.Err() == nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(h.teams)); !slices.Equal(got, want) {
			t.Errorf("it has %v open, want %v", got, want)
		}
	}
	followed.followed.Add(1) // its follower may have found the ledger gone
	list("followed", "kept")
	followed.followed.Add(-1)
	leave()
	<-left
	list("kept")
	if len(ended) != 2 || ended["kept"] {
		t.Errorf("not attended any more: %v", ended)
	}
}
