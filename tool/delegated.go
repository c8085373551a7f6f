package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// delegation is the payload of a delegation request: the action that its approval triggers, in the
// requester's name.
type delegation struct {
	Post  *ledger.NewMessage `json:"post,omitempty"`
	Spawn *SpawnIn           `json:"spawn,omitempty"`
}

// askDelegation queues an action that the member may take only with approval.
func (t *Team) askDelegation(ctx context.Context, c Caller, subject string, d delegation) (ledger.Approval, error) {
	id := "delegation-" + team.NewUUID()
	if d.Post != nil && d.Post.IdemKey != "" {
		id = "delegation-" + c.Name + "-" + d.Post.IdemKey // one request, however often it is sent
	}
	return t.ask(ctx, c, ledger.AskIn{Kind: ledger.ApproveDelegation, RequestID: id, Subject: subject}, d, nil)
}

// delegated returns the action that an approval triggers.
func delegated(a ledger.Approval) (*ledger.NewMessage, *SpawnIn, error) {
	var d delegation
	if err := json.Unmarshal(a.Payload, &d); err != nil {
		return nil, nil, fmt.Errorf("read approval %d: %w", a.ID, err)
	}
	return d.Post, d.Spawn, nil
}

// spawnIntent returns the stored form of an approved spawn, for the supervisor. The spawn is
// validated now, in the requester's name, so that an impossible one is not approved.
func (t *Team) spawnIntent(ctx context.Context, a ledger.Approval, in SpawnIn) (json.RawMessage, error) {
	m, err := t.Ledger.MemberBySession(ctx, a.Session)
	if err != nil {
		return nil, err
	}
	asked, err := t.spawnIn(ctx, Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}, in)
	if err != nil {
		return nil, err
	}
	n, err := many(in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(supervisor.Approved{Spawn: asked, Count: n})
}

// carryOut makes the supervisor carry out an approved action. After a kill or a lost answer, the
// next supervisor does it, since the intent was stored with the answer.
func (t *Team) carryOut(ctx context.Context, a ledger.Approval) error {
	out, err := supervise(ctx, t, func(s Supervisor) (ledger.Outcome, error) { return s.CarryOut(ctx, a.ID) })
	if err != nil {
		return fmt.Errorf("approval %d is kept and carried out by the next supervisor: %w", a.ID, err)
	}
	if out.Error != nil {
		return out.Error
	}
	return nil
}
