package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestModelLines checks that /models lists at most eight models of a provider, with the number of
// the others, and at most sixty in total.
func TestModelLines(t *testing.T) {
	t.Parallel()
	provider := func(name string, n int) config.Listed {
		l := config.Listed{Provider: name}
		for i := range n {
			l.Models = append(l.Models, model.Info{ID: fmt.Sprint("m", i)})
		}
		return l
	}
	got := strings.Join(modelLines([]config.Listed{provider("a", 10), {Provider: "down", Err: errors.New("refused")}, provider("b", 8), provider("c", 1)}), " ")
	want := "a/m0 a/m1 a/m2 a/m3 a/m4 a/m5 a/m6 a/m7 + (2 more) b/m0 b/m1 b/m2 b/m3 b/m4 b/m5 b/m6 b/m7 c/m0"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var many []config.Listed
	for i := range 10 {
		many = append(many, provider(fmt.Sprint("p", i), 8))
	}
	if lines := modelLines(many); len(lines) != modelsAll {
		t.Errorf("%d lines", len(lines))
	}
}

// TestSessionLines checks the description of a session in a list.
func TestSessionLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    tool.SessionInfo
		want string
	}{
		{tool.SessionInfo{State: "open", Label: "dev"}, "dev: idle"},
		{tool.SessionInfo{State: "open", Label: "dev", Turn: team.TurnRunning}, "dev: running"},
		{tool.SessionInfo{State: "open", Label: "kid", Depth: 1, Turn: team.TurnQueued}, "└ kid: queued"},
		{tool.SessionInfo{State: "open", Label: "kid", Depth: 2, Turn: team.TurnFailed}, "  └ kid: idle, failed"},
		{tool.SessionInfo{State: "closed", Label: "kid", Depth: 1, Turn: team.TurnDone}, "└ kid: closed"},
	} {
		if got := sessionLabel(c.s) + ": " + sessionTurn(c.s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
