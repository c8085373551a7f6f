package program

import (
	"cmp"
	"context"
	"time"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// CallLine returns a tool call as the screen of its agent shows it.
func CallLine(name string, input []byte, failed bool, took time.Duration, note string) string {
	return llm.CallLine(name, input, failed, took, note)
}

// Prompt is the content of a session's next request besides its conversation.
type Prompt struct {
	System    string `json:"system"`    // before it
	Ephemeral string `json:"ephemeral"` // after it, not stored
}

// Preview renders the prompt of a session's next request in a process that does not run the
// session. It lacks what only the running process knows: its background commands, and results that
// children announce before the turn begins.
func Preview(ctx context.Context, t *tool.Team, s ledger.Session) (out Prompt, err error) {
	m, err := t.Ledger.MemberBySession(ctx, s.Member)
	if err != nil {
		return out, err
	}
	p := &Program{Team: t, Member: m, Env: agent.Env{Dir: cmp.Or(m.Worktree, m.Spec.Cwd)}}
	p.begin(agent.Identity{Session: m.SessionKey, Name: m.Name})
	spec, err := p.spec(ctx, s)
	if err != nil {
		return out, err
	}
	cfg, err := config.Load(t.Layout.Home)
	if err != nil {
		return out, err
	}
	ref, err := p.modelOf(ctx, s, spec, cfg)
	if err != nil {
		return out, err
	}
	_, info, err := cfg.Open(ref)
	if err != nil {
		return out, err
	}
	key, err := team.ParseSessionKey(s.Key)
	if err != nil {
		return out, err
	}
	filters, err := p.skillFilters(ctx, s, spec)
	if err != nil {
		return out, err
	}
	list, loads := p.skillsOf(filters...)
	if loads, err = p.filter(ctx, s, m, spec, loads); err != nil {
		return out, err
	}
	if len(loads) == 0 {
		list = nil
	}
	out.System = p.system(key.Kind, spec, list, info)
	remembered, err := p.recall(ctx, s, spec)
	if err != nil {
		return out, err
	}
	todo, err := p.list(ctx, s.Key)
	if err != nil {
		return out, err
	}
	out.Ephemeral, err = p.ephemeral(ctx, behind{memory: remembered, todo: tools.TodoText(todo)})
	return out, err
}
