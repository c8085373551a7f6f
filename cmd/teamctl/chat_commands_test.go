package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/ledger"
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

// TestTypedAnswer checks which answers to a question a line of a chat may give.
func TestTypedAnswer(t *testing.T) {
	t.Parallel()
	colour := team.Question{Text: "Which?", Options: []string{"Red", "dark blue"}}
	some := team.Question{Text: "Which ones?", Options: []string{"red", "dark blue"}, Several: true}
	for _, c := range []struct {
		asked []team.Question
		text  string
		want  string // the answer
		why   string // it is refused
		hint  string
	}{
		{[]team.Question{colour}, "red", "Red", "", ""},
		{[]team.Question{colour}, "Dark Blue", "dark blue", "", ""},
		{[]team.Question{colour}, "green", "", `"green" is not one of the options of request 4: Which? (Red / dark blue)`, "teamctl approvals approve 4 --answer TEXT takes other answers, too"},
		{[]team.Question{colour}, "red, dark blue", "", "not one of the options", "--answer"},
		{[]team.Question{colour}, "", "", "request 4 asks: Which? (Red / dark blue)", "/approve 4 ANSWER"},
		{[]team.Question{some}, "dark blue,red", "dark blue, red", "", ""},
		{[]team.Question{some}, "red, green", "", "not one of the options", "--answer"},
		{[]team.Question{{Text: "Why?"}}, "because, so to say", "because, so to say", "", ""},
		{[]team.Question{colour, some}, "red", "", "request 4 asks 2 questions", "one --answer for each question"},
		{nil, "well done", "", "", ""},
	} {
		payload, err := json.Marshal(map[string]any{"questions": c.asked})
		if err != nil {
			t.Fatal(err)
		}
		got, err := typedAnswer(tool.AnswerIn{Approve: true, Feedback: c.text}, ledger.Approval{ID: 4, Kind: ledger.ApprovePermission, Payload: payload})
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) || !strings.Contains(team.HintOf(err), c.hint) || team.ReasonOf(err) != team.ReasonQuestion {
				t.Errorf("%q: %v (%s), want %q (%s)", c.text, err, team.HintOf(err), c.why, c.hint)
			}
			continue
		}
		want := tool.AnswerIn{Approve: true, Answers: []string{c.want}}
		if c.asked == nil {
			want = tool.AnswerIn{Approve: true, Feedback: c.text}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", c.text, got, err, want)
		}
	}
}
