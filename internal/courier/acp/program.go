package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Program is the process of a member whose agent speaks the Agent Client Protocol.
type Program struct {
	Team   *tool.Team
	Caller tool.Caller
	Member ledger.Member
	Env    agent.Env
	Exe    string    // path of teamctl, whose command mcp serves the team's tools to the agent
	Err    io.Writer // standard error of the agent
	// Printable escapes foreign text so that a terminal shows all of it and obeys none of it.
	Printable func(string) string
}

// Run starts the agent and delivers its mail until the agent or the team ends. A value from
// in.Interrupt ends the current turn.
func (p *Program) Run(ctx context.Context, id agent.Identity, in agent.TalkIn, argv []string) error {
	tools := ToolServer{Name: "teamctl", Command: p.Exe, Args: []string{"mcp"}, Env: map[string]string{}}
	for _, kv := range p.Env.Environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "TEAMCTL_") {
			tools.Env[name] = value
		}
	}
	conv, err := Start(ctx, In{Argv: argv, Env: p.Env.Environ, Dir: p.Env.Dir, Tools: tools, Out: p.Env.Out, Err: p.Err, Permit: p.permit})
	if err != nil {
		return err
	}
	in.Quota = &account{Program: p}
	err = agent.Talk(ctx, id, p.Env, conv, in)
	if cerr := conv.Close(); err != nil {
		err = errors.Join(err, cerr)
	}
	return err
}

// permit forwards the agent's request to the team's queue and waits for the answer.
func (p *Program) permit(ctx context.Context, ask team.Ask) (team.Reply, error) {
	r := team.Reply{ID: ask.ID, For: ask.For}
	m, err := p.Team.Ledger.MemberBySession(ctx, p.Caller.Session)
	if err != nil {
		return r, err
	}
	if m.Spec.Mode == team.ModeBypass {
		r.Allow = true
		return r, nil
	}
	asked, err := p.request(ctx, ask)
	if err != nil {
		return r, err
	}
	a, err := p.Team.AwaitApproval(ctx, asked.ID, 0)
	switch {
	case err == nil:
		with, err := p.Team.GrantedWith(context.WithoutCancel(ctx), a)
		if err != nil {
			return r, err
		}
		if len(with.Input) > 0 { // the protocol has no field for it
			r.Feedback = approval.OtherInput(with.Input)
			return r, nil
		}
		r.Allow, r.Mode = true, with.Mode
	case team.IsCode(err, team.CodeDenied):
		r.Feedback = err.Error()
	case ctx.Err() != nil: // the turn was ended
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
		defer cancel()
		return r, errors.Join(err, p.Team.Ledger.Withdraw(after, asked.ID, asked.Name, "its turn is over"))
	default:
		return r, err
	}
	return r, nil
}

// withdrawWithin bounds withdrawing a request after its turn has ended.
const withdrawWithin = 2 * time.Second

// request adds one request to the queue; a finished plan is a request for plan approval.
func (p *Program) request(ctx context.Context, ask team.Ask) (ledger.Approval, error) {
	if ask.For == team.WaitPlan {
		_, _ = fmt.Fprintf(p.Env.Out, "%s: waits for approval of its plan\n", p.Member.AgentID)
		return p.Team.AskPlan(ctx, p.Caller, tool.PlanIn{Content: ask.Plan, Path: ask.PlanPath})
	}
	in := tool.PermissionIn{ToolName: ask.Tool, ToolUseID: ask.ID, Description: ask.Description, Input: ask.Input, FixedInput: true}
	if in.ToolName == "" {
		in.ToolName = "tool"
	}
	if len(in.Input) > 0 && !json.Valid(in.Input) {
		in.Input = nil
	}
	_, _ = fmt.Fprintf(p.Env.Out, "%s: waits for permission: %s\n", p.Member.AgentID, p.Printable(ask.Description))
	return p.Team.AskPermission(ctx, p.Caller, in)
}

// getenv returns a variable of the member's environment.
func (p *Program) getenv(name string) string {
	for i := len(p.Env.Environ) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(p.Env.Environ[i], "="); k == name {
			return v
		}
	}
	return ""
}
