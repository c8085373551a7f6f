package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// delegation is the payload of an approval of that kind: what is done when it is
// approved, in the asker's name.
type delegation struct {
	Post  *ledger.NewMessage `json:"post,omitempty"`
	Spawn *SpawnIn           `json:"spawn,omitempty"`
}

// askDelegation queues what a member may not do without approval.
func (t *Team) askDelegation(ctx context.Context, c Caller, subject string, d delegation) (ledger.Approval, error) {
	id := "delegation-" + team.NewUUID()
	if d.Post != nil && d.Post.IdemKey != "" {
		id = "delegation-" + c.Name + "-" + d.Post.IdemKey // asked for once, however often it is sent
	}
	return t.ask(ctx, c, ledger.AskIn{Kind: ledger.ApproveDelegation, RequestID: id, Subject: subject}, d, nil)
}

// delegated reads what an approval lets happen.
func delegated(a ledger.Approval) (*ledger.NewMessage, *SpawnIn, error) {
	var d delegation
	if err := json.Unmarshal(a.Payload, &d); err != nil {
		return nil, nil, fmt.Errorf("read approval %d: %w", a.ID, err)
	}
	return d.Post, d.Spawn, nil
}

// spawnApproved spawns in the asker's name and tells it what came of it. The
// approval is settled before: killed in between, the asker asks again.
func (t *Team) spawnApproved(ctx context.Context, a ledger.Approval, in SpawnIn) error {
	m, err := t.Ledger.MemberBySession(ctx, a.Session)
	if err != nil {
		return err
	}
	out, err := t.spawn(ctx, Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role}, in)
	text := fmt.Sprintf("spawned after approval %d:", a.ID)
	for _, s := range out {
		if s.Error == "" {
			text += " " + s.Name
		}
	}
	if err != nil {
		text = fmt.Sprintf("approval %d: the spawn failed: %v", a.ID, err)
	}
	_, _, perr := t.mailer(Caller{Name: a.AnsweredBy}).Post(ctx, ledger.NewMessage{
		Kind: team.KindInfo, From: a.AnsweredBy, To: m.Name, ToSession: m.SessionKey, Text: text, Summary: inbox.Summary("", text),
	})
	if err == nil {
		err = perr
	}
	return err
}
