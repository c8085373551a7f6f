package program

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// withdrawWithin bounds the withdrawal of a question after the turn that asked it.
const withdrawWithin = 2 * time.Second

// works reports whether a mode has tools that change something.
func works(m team.Mode) bool { return m != team.ModePlan && m != team.ModeDelegate }

// gate decides on a call that changes something: by the team's rules that deny, whatever
// the mode, then by the mode, by the rules that allow, and by whoever answers approvals.
// refusal is what the model is told; "" lets it pass, with the input that was approved.
func (p *Program) gate(ctx context.Context, c *llm.Call, what string) (refusal string, err error) {
	m, err := p.Team.Ledger.MemberBySession(ctx, p.id.Session)
	if err != nil {
		return "", err
	}
	rules, err := p.Team.Permissions(ctx)
	if err != nil {
		return "", err
	}
	r := permit.Of(c.Name, c.Input)
	r.Member, r.Mode, r.Dir = m.Name, m.Spec.Mode, p.Env.Dir
	v, rule := permit.Decide(rules, r)
	switch {
	case v == permit.Deny:
		return "Denied by a rule of the team: " + rule, nil
	case !works(m.Spec.Mode):
		return fmt.Sprintf("Not in mode %s.", m.Spec.Mode), nil
	case m.Spec.Mode == team.ModeBypass, v == permit.Allow:
		return "", nil
	case m.Spec.Mode == team.ModeDontAsk:
		return "Not allowed by a rule of the team, and nobody is asked in mode dontAsk.", nil
	}
	return p.ask(ctx, c, what)
}

// ask takes a call to the team's queue of approvals and waits for the answer.
func (p *Program) ask(ctx context.Context, c *llm.Call, what string) (refusal string, err error) {
	caller := tool.Caller{Name: p.Member.Name, Session: p.id.Session, Role: p.id.Role}
	asked, err := p.Team.AskPermission(ctx, caller, tool.PermissionIn{ToolName: c.Name, ToolUseID: c.ID, Description: what, Input: c.Input})
	if err != nil {
		return err.Error(), nil
	}
	c.Desk.Line("waits for approval %d: %s", asked.ID, what)
	resume, err := c.Desk.Pause(ctx, team.WaitPermission, what)
	if err != nil {
		return "", errors.Join(err, p.withdraw(ctx, asked))
	}
	a, err := p.Team.AwaitApproval(ctx, asked.ID, 0)
	if rerr := resume(ctx); err == nil {
		err = rerr
	}
	switch {
	case err == nil:
		with, err := p.Team.GrantedWith(context.WithoutCancel(ctx), a)
		if err == nil && len(with.Input) > 0 {
			c.Input = with.Input
		}
		return "", err
	case team.IsCode(err, team.CodeDenied):
		return "Not approved: " + err.Error(), nil
	case ctx.Err() != nil: // its turn was ended
		return "", errors.Join(err, p.withdraw(ctx, asked))
	}
	return "", err
}

func (p *Program) withdraw(ctx context.Context, asked ledger.Approval) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	return p.Team.Ledger.Withdraw(after, asked.ID, asked.Name, "its turn is over")
}
