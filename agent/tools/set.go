package tools

import (
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Tools returns the tools of the space.
func (s *Space) Tools() []Tool {
	return []Tool{
		s.readTool(), s.lsTool(), s.globTool(), s.grepTool(), s.writeTool(), s.editTool(), s.todoTool(),
		s.shellTool(), s.shellOutputTool(), s.shellKillTool(), s.fetchTool(),
	}
}

// Policy restricts the tools of a session, in addition to its mode.
type Policy struct {
	Spec team.Filter      // of the agent's spec
	Kind team.SessionKind // of the session
	Mode team.Mode
}

// Filter returns the tools that a session's request lists, by name: the same ones can be called.
func (p Policy) Filter(all []Tool) []Tool {
	out := slices.DeleteFunc(slices.Clone(all), func(t Tool) bool { return !p.has(t) })
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (p Policy) has(t Tool) bool {
	if !p.Spec.Allows(t.Name) {
		return false
	}
	named := p.Spec.Names(t.Name)
	if p.Kind == team.SessionSubagent || p.Kind == team.SessionCron {
		switch t.Class {
		case Shell, Fetch, MCP, Session:
			if !named {
				return false
			}
		case Own:
			if strings.HasPrefix(t.Name, "shell_") && !p.Spec.Names("shell") {
				return false
			}
		case Read, Edit, Team:
		}
	}
	switch p.Mode {
	case team.ModePlan:
		return t.Class == Read || t.Class == Team || t.Class == Own && !strings.HasPrefix(t.Name, "shell_")
	case team.ModeDelegate:
		return t.Class == Team || t.Class == Session || t.Name == "todo"
	case team.ModeDefault, team.ModeAcceptEdits, team.ModeBypass, team.ModeDontAsk:
	}
	return true
}
