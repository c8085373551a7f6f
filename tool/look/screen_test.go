package look

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// painter is a supervisor that gives each of its frames and ends.
type painter struct {
	tool.Supervisor
	frames []string
	err    error
}

func (p *painter) View(_ context.Context, _ string, each func([]string)) error {
	for _, f := range p.frames {
		each([]string{f})
	}
	return p.err
}

// TestScreenFollow checks that a screen is followed by the next supervisor once one has ended, that one that has not
// changed meanwhile is not shown again, and that the end of the member ends it.
func TestScreenFollow(t *testing.T) {
	t.Parallel()
	env := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	opened, err := env.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, _, err = opened.Ledger.AddMember(t.Context(), ledger.Member{
		Name: "ann", SessionKey: "agent:demo:teammate:ann", Role: team.RoleExecutor,
		Desired: team.WantRunning, Observed: team.Running, Activity: team.Working,
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	gone := team.Errorf(team.CodeUnavailable, "it has ended")
	sups := []*painter{
		{frames: []string{"a", "b"}, err: gone},
		{frames: []string{"b", "c"}, err: team.Errorf(team.CodeNotFound, "ann has exited")},
	}
	env.Dial = func(context.Context, team.Layout, bool) (tool.Supervisor, error) {
		if len(sups) == 0 {
			return nil, gone
		}
		next := sups[0]
		sups = sups[1:]
		return next, nil
	}
	var shown []string
	show := func(f view.Frame) { shown = append(shown, strings.Join(f.Lines, "|")) }
	if err := ScreenFollow(t.Context(), opened, "ann", show); !team.IsCode(err, team.CodeNotFound) || !slices.Equal(shown, []string{"a", "b", "c"}) {
		t.Errorf("%v: %q, want a, b and c, and its exit", err, shown)
	}
	if err := ScreenFollow(t.Context(), opened, "ann", show); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("without a supervisor: %v", err)
	}
}
