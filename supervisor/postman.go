package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Postman mails for other processes what they have posted. Those who post to one member at
// a time come one after the other, and the first brings what all of them have: the
// others are only told. By themselves each of them would stand in line for the mailbox's
// lock, and the kernel would wake one process after the other.
//
// Nothing depends on it. Who gets no answer mails by himself.
type Postman struct {
	mailer Mailer

	mu    sync.Mutex
	desks map[string]*desk // by session
}

// desk is where those wait who have posted to one member.
type desk struct {
	turn chan struct{} // has room for one
	// mailed are the messages that the last one brought, with the time in Unix
	// milliseconds. Who has the turn may use it.
	mailed map[string]int64
}

// postmanPatience bounds the wait for a mailbox that another program holds. Who has
// waited for so long does the rest by himself.
const postmanPatience = 500 * time.Millisecond

// NewPostman mails with m.
func NewPostman(m Mailer) *Postman { return &Postman{mailer: m, desks: map[string]*desk{}} }

// Write takes one delivery that was only posted, as JSON in the arguments of op, and
// returns how far it has come once it is mailed. It is a ledger.Writer only so that it can
// be served like one.
func (p *Postman) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	var d ledger.Delivery
	if err := json.Unmarshal(op.Args, &d); err != nil {
		return nil, team.Errorf(team.CodeInvalid, "decode a delivery: %w", err)
	}
	if err := p.mail(ctx, &d); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "mail %s to %s: %w", d.MessageID, d.Recipient, err)
	}
	return json.Marshal(d)
}

func (p *Postman) mail(ctx context.Context, d *ledger.Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, postmanPatience)
	defer cancel()
	desk := p.desk(d.Session)
	select {
	case desk.turn <- struct{}{}:
		defer func() { <-desk.turn }()
	case <-ctx.Done():
		return fmt.Errorf("wait for others: %w", ctx.Err())
	}
	if at, ok := desk.mailed[d.MessageID]; ok {
		d.State, d.At, d.Reason, d.Evidence = team.Mailed, at, "", inMailbox
		return nil
	}
	all, err := p.mailer.settle(ctx, d)
	if len(all) > 0 {
		desk.mailed = all
	}
	return err
}

func (p *Postman) desk(session string) *desk {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.desks[session]
	if d == nil {
		d = &desk{turn: make(chan struct{}, 1)}
		p.desks[session] = d
	}
	return d
}
