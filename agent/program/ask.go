package program

import (
	"context"
	"encoding/json"
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
// model; "" permits the call, with the approved input. id is 0 if the request could not be made.
func (p *Program) ask(ctx context.Context, c *llm.Call, what string) (id int64, refusal string, err error) {
	id, given, refusal, err := p.request(ctx, c.Desk, team.WaitPermission, what, tool.PermissionIn{
		ToolName: c.Name, ToolUseID: c.ID, Description: what, Input: c.Input,
	})
	if err == nil && refusal == "" && len(given) > 0 {
		c.Input = given
	}
	return id, refusal, err
}

// request makes a request and waits for the answer; given is the input with which it was approved,
// if that is another one.
func (p *Program) request(ctx context.Context, desk llm.Desk, wait team.WaitFor, what string, in tool.PermissionIn) (id int64, given json.RawMessage, refusal string, err error) {
	caller := tool.Caller{Name: p.Member.Name, Session: p.id.Session, Role: p.id.Role}
	if p.leads() {
		caller = tool.Lead(p.Member)
	}
	asked, err := p.Team.AskPermission(ctx, caller, in)
	if err != nil {
		return 0, nil, err.Error(), nil
	}
	id = asked.ID
	desk.Line("waits for approval %d: %s", id, what)
	resume, err := desk.Pause(ctx, wait, what)
	if err != nil {
		return id, nil, "", errors.Join(err, p.withdraw(ctx, asked))
	}
	a, err := p.Team.AwaitApproval(ctx, id, 0)
	if rerr := resume(ctx); err == nil {
		err = rerr
	}
	switch {
	case err == nil:
		with, err := p.Team.GrantedWith(context.WithoutCancel(ctx), a)
		return id, with.Input, "", err
	case team.IsCode(err, team.CodeDenied):
		return id, nil, "Not approved: " + err.Error(), nil
	case ctx.Err() != nil: // the turn was ended
		return id, nil, "", errors.Join(err, p.withdraw(ctx, asked))
	}
	return id, nil, "", err
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
