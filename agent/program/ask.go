package program

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// withdrawWithin bounds withdrawing a request after its turn has ended.
const withdrawWithin = 2 * time.Second

// ask makes an approval request for a call and waits for the answer. refusal is the text for the
// model; "" permits the call, with the approved input.
func (p *Program) ask(ctx context.Context, c *llm.Call, what string) (refusal string, err error) {
	caller := tool.Caller{Name: p.Member.Name, Session: p.id.Session, Role: p.id.Role}
	if p.leads() {
		caller = tool.Lead(p.Member)
	}
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
	case ctx.Err() != nil: // the turn was ended
		return "", errors.Join(err, p.withdraw(ctx, asked))
	}
	return "", err
}

// withdrawAll ends the requests of an earlier life, which nobody waits for.
func (p *Program) withdrawAll(ctx context.Context) error {
	list, err := p.Team.Ledger.Approvals(ctx, ledger.ApprovalFilter{State: ledger.ApprovalPending, Kind: ledger.ApprovePermission, Session: p.id.Session})
	for _, a := range list {
		err = errors.Join(err, p.Team.Ledger.Withdraw(ctx, a.ID, a.Name, "the process that asked has ended"))
	}
	return err
}

func (p *Program) withdraw(ctx context.Context, asked ledger.Approval) error {
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	return p.Team.Ledger.Withdraw(after, asked.ID, asked.Name, "its turn is over")
}
