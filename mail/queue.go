package mail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Queue mails what other processes have posted. It serialises the senders to one recipient,
// and the first mails what all of them have posted: the others only learn that. Alone, each
// sender would wait for the mailbox's lock, and the kernel would wake one process after the
// other.
type Queue struct {
	mailer   Mailer
	patience time.Duration

	mu         sync.Mutex
	recipients map[string]*recipient // by session
}

// recipient is the queue of the senders to one member.
type recipient struct {
	slot chan struct{} // has room for one
	// mailed are the messages that the last holder of the slot mailed, with the time in Unix
	// milliseconds. It is used only while holding the slot.
	mailed map[string]int64
}

// queuePatience bounds the wait for a mailbox that another program has locked. After that,
// the sender mails by itself.
const queuePatience = 500 * time.Millisecond

// NewQueue returns a queue that mails with m.
func NewQueue(m Mailer) *Queue {
	return &Queue{mailer: m, patience: queuePatience, recipients: map[string]*recipient{}}
}

// Settle mails a delivery that is only posted and returns its new state.
func (q *Queue) Settle(ctx context.Context, d ledger.Delivery) (ledger.Delivery, error) {
	if err := q.settle(ctx, &d); err != nil {
		return d, team.Errorf(team.CodeUnavailable, "mail %s to %s: %w", d.MessageID, d.Recipient, err)
	}
	return d, nil
}

func (q *Queue) settle(ctx context.Context, d *ledger.Delivery) error {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	to := q.recipient(d.Session)
	select {
	case to.slot <- struct{}{}:
		defer func() { <-to.slot }()
	case <-ctx.Done():
		return fmt.Errorf("wait for other senders: %w", ctx.Err())
	}
	if at, ok := to.mailed[d.MessageID]; ok {
		d.State, d.At, d.Reason, d.Evidence = team.Mailed, at, "", inMailbox
		return nil
	}
	all, err := q.mailer.settle(ctx, d)
	if len(all) > 0 {
		to.mailed = all
	}
	return err
}

func (q *Queue) recipient(session string) *recipient {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.recipients[session]
	if r == nil {
		r = &recipient{slot: make(chan struct{}, 1)}
		q.recipients[session] = r
	}
	return r
}
