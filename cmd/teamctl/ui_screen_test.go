package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// painter is a supervisor with the screen of a member whose program writes whenever it is looked at.
type painter struct {
	tool.Supervisor
	log   string
	texts []string // the next ones; "" is a supervisor that has ended
}

func (p *painter) Capture(context.Context, string, int) (string, error) {
	text := p.texts[0]
	p.texts = p.texts[1:]
	f, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := f.WriteString("x"); err != nil {
		return "", errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil || text == "" {
		return "", errors.Join(errors.New("it has ended"), err)
	}
	return text, nil
}

// TestScreenOfAMember checks that a supervisor that answers is not looked for again, that one that has ended is
// replaced, and that a screen that has not changed is not shown again.
func TestScreenOfAMember(t *testing.T) {
	t.Parallel()
	env := &tool.Env{Home: team.Home{Dir: t.TempDir()}}
	if _, err := env.TeamCreate(t.Context(), tool.Person(), tool.TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	opened, err := env.Open(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	s := &screenTeam{team: opened, env: env, key: "demo"}
	defer s.close()
	_, _, err = opened.Ledger.AddMember(t.Context(), ledger.Member{
		Name: "ann", SessionKey: "agent:demo:teammate:ann", Role: team.RoleExecutor,
		Desired: team.WantRunning, Observed: team.Running, Activity: team.Working,
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	p := &painter{log: opened.Layout.Bundle("ann").Log(), texts: []string{"a\n", "a\n", "b\n", "", "c\n"}}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o700); err != nil {
		t.Fatal(err)
	}
	dials := 0
	env.Dial = func(context.Context, team.Layout, bool) (tool.Supervisor, error) {
		dials++
		return p, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown []string
	err = s.Screen(ctx, "ann", func(f view.Frame) {
		if shown = append(shown, strings.Join(f.Lines, "|")); len(p.texts) == 0 {
			cancel()
		}
	})
	if err != nil || !slices.Equal(shown, []string{"a", "b", "c"}) || dials != 2 {
		t.Errorf("%v: %q, %d supervisors; want a, b and c of 2", err, shown, dials)
	}
}
