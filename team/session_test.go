package team

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestSessionKey(t *testing.T) {
	for _, k := range []SessionKey{
		NewSessionKey("", SessionTeammate), NewSessionKey("reviewer", SessionSubagent), {"default", SessionLead, "my-team"},
		{"scout", SessionCron, "a:b"},
	} {
		got, err := ParseSessionKey(k.String())
		if err != nil || got != k {
			t.Errorf("%s: %+v, %v", k, got, err)
		}
	}
	if k, err := ParseSessionKey(TeammateSessionKey("reviewer")); err != nil || k.Spec != "reviewer" || k.Kind != SessionTeammate {
		t.Errorf("%+v, %v", k, err)
	}
	for _, s := range []string{"", "agent", "agent:x:teammate", "agent:x:teammate:", "agent::teammate:1", "agent:x:other:1", "user:x:main:1"} {
		if k, err := ParseSessionKey(s); CodeOf(err) != CodeInvalid {
			t.Errorf("%q is %+v, %v", s, k, err)
		}
	}
}

func TestLaneWidths(t *testing.T) {
	for _, l := range Lanes() {
		if l.Width() < 1 {
			t.Errorf("%s is %d wide", l, l.Width())
		}
	}
	if w := Lane("nightly").Width(); w != 1 {
		t.Errorf("a lane without a width of its own is %d wide", w)
	}
}

func TestTurnStates(t *testing.T) {
	for _, s := range TurnStates() {
		for _, to := range s.Next() {
			if !slices.Contains(TurnStates(), to) || !s.CanMove(to) {
				t.Errorf("%s to %s", s, to)
			}
		}
		if s.Ended() != (len(s.Next()) == 0) || s.Ended() && s.CanMove(TurnQueued) {
			t.Errorf("%s has ended: %v", s, s.Ended())
		}
	}
	if !TurnRunning.CanMove(TurnQueued) || TurnQueued.CanMove(TurnDone) {
		t.Error("a turn is queued again when its process has ended, and is never done before it ran")
	}
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		f    Filter
		name string
		want bool
	}{
		{Filter{}, "shell", true},
		{Filter{Allow: []string{}}, "shell", false},
		{Filter{Allow: []string{"read", "g*"}}, "grep", true},
		{Filter{Allow: []string{"read", "g*"}}, "shell", false},
		{Filter{Allow: []string{"*"}, Deny: []string{"shell"}}, "shell", false},
		{Filter{Deny: []string{"mcp__*__delete*"}}, "mcp__git__delete_tag", false},
		{Filter{Deny: []string{"mcp__*__delete*"}}, "mcp__git__undelete", true},
		{Filter{Allow: []string{"a*a"}}, "a", false},
		{Filter{Allow: []string{"a*b*c"}}, "axxbyyc", true},
	} {
		if got := c.f.Allows(c.name); got != c.want {
			t.Errorf("%+v allows %q: %v", c.f, c.name, got)
		}
	}
}

func TestAgentSpec(t *testing.T) {
	hot := 3.0
	good := AgentSpec{ID: "reviewer", Name: "Reviewer", Policy: SpecPolicy{Tools: Filter{Allow: []string{}}}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(good)
	var again AgentSpec
	if err != nil || json.Unmarshal(b, &again) != nil || again.Policy.Tools.Allow == nil || again.Policy.Tools.Deny != nil {
		t.Errorf("an empty list and none differ: %s is %+v, %v", b, again, err)
	}
	for name, change := range map[string]func(*AgentSpec){
		"id":          func(s *AgentSpec) { s.ID = "Reviewer" },
		"long id":     func(s *AgentSpec) { s.ID = string(make([]byte, 65)) },
		"main":        func(s *AgentSpec) { s.ID = "main" },
		"kind":        func(s *AgentSpec) { s.ID = AgentClaude },
		"name":        func(s *AgentSpec) { s.Name = " " },
		"escape":      func(s *AgentSpec) { s.Name = "a\x1b[31m" },
		"model":       func(s *AgentSpec) { s.Defaults.Model.Model = "x" },
		"temperature": func(s *AgentSpec) { s.Defaults.Model.Temperature = &hot },
		"output":      func(s *AgentSpec) { s.Defaults.Model.MaxOutputTokens = -1 },
		"budget":      func(s *AgentSpec) { s.Context.MemoryBudget = -1 },
		"pattern":     func(s *AgentSpec) { s.Policy.Skills.Deny = []string{""} },
		"overlay":     func(s *AgentSpec) { s.Workspace.Overlay = "a/../../b" },
	} {
		s := good
		change(&s)
		if err := s.Validate(); CodeOf(err) != CodeInvalid || ReasonOf(err) != "bad_spec" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsageAdd(t *testing.T) {
	var u Usage
	u.Add(Usage{InputTokens: 10, CostKnown: true, Turns: 1})
	if !u.CostKnown || u.Turns != 1 {
		t.Errorf("%+v", u)
	}
	u.Add(Usage{InputTokens: 5, CacheWriteTokens: 3, ReasoningTokens: 2})
	if u.CostKnown || u.InputTokens != 15 || u.CacheWriteTokens != 3 || u.ReasoningTokens != 2 {
		t.Errorf("the sum of a known and an unknown cost is known: %+v", u)
	}
	if s := (Budget{Turns: 4}).Share(Usage{Turns: 3}); s != 0.75 {
		t.Errorf("share of turns %v", s)
	}
}
