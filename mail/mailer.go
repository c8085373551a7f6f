package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Mailer posts messages and moves them into mailboxes, from any process.
//
// An entry is in the mailbox once and in its sender's order, whichever process is killed at
// whichever point: an entry that is present but not marked is among the newest, or old
// enough to be searched for in the whole file.
type Mailer struct {
	Layout team.Layout
	Ledger *ledger.Ledger
	// Via mails on behalf of this process: the supervisor's queue. Nil, or an error of its:
	// this process mails.
	Via Settler
}

// Settler mails a delivery that is only posted and returns its new state. After an error the
// caller has to do it.
type Settler interface {
	Settle(ctx context.Context, d ledger.Delivery) (ledger.Delivery, error)
}

// sweepAge is how long mailing a posted message is left to its poster.
const sweepAge = 500 * time.Millisecond

// mailWait bounds how long a mailbox is waited for: until the lock of another program that
// was killed counts as abandoned, and a little longer.
const mailWait = mkdirlock.Stale + 5*time.Second

// markWait bounds how long a mailbox is locked while the mark of its entries is being written: a
// writer may be frozen.
const markWait = 2 * time.Second

// Post posts a message durably and then mails it. An error before it is posted is
// returned unchanged; a delivery that could not be mailed is left to the
// supervisor, with the error in its Reason.
func (m Mailer) Post(ctx context.Context, in ledger.NewMessage) (ledger.Message, []ledger.Delivery, error) {
	msg, ds, err := m.Ledger.Post(ctx, in)
	if err != nil {
		return msg, ds, err
	}
	m.Deliver(ctx, ds)
	return msg, ds, nil
}

// Deliver mails messages that the caller has just posted, and records the progress in ds.
func (m Mailer) Deliver(ctx context.Context, ds []ledger.Delivery) {
	// Posted is a promise: mailing continues when the caller is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mailWait)
	defer cancel()
	for i := range ds {
		if ds[i].State != team.Posted {
			continue // an idempotency key used again
		}
		if err := m.mail(ctx, &ds[i]); err != nil {
			ds[i].Reason = "not mailed yet: " + err.Error()
		}
	}
}

// Collect mails the messages that were posted to a member and are not in its mailbox: a reader of
// the mailbox must not depend on a poster that was killed or gave up.
func (m Mailer) Collect(ctx context.Context, to ledger.Member) error {
	ctx, cancel := context.WithTimeout(ctx, mailWait)
	defer cancel()
	if err := m.Mend(ctx, to); err != nil {
		return err
	}
	out, err := m.Ledger.PostedTo(ctx, to.SessionKey)
	if err != nil || len(out) == 0 {
		return err
	}
	_, err = m.settle(ctx, &out[0].Delivery)
	return err
}

// errLacking means that a mailbox must be restored before an append.
var errLacking = errors.New("the mailbox lacks messages")

// mail writes a posted delivery to its mailbox and marks it mailed, through the supervisor if
// that answers.
func (m Mailer) mail(ctx context.Context, d *ledger.Delivery) error {
	if m.Via != nil {
		short, cancel := context.WithTimeout(ctx, markWait) // it may be frozen
		now, err := m.Via.Settle(short, *d)
		cancel()
		if err == nil {
			*d = now
			return nil
		}
	}
	_, err := m.settle(ctx, d)
	return err
}

// Settle mails a posted delivery in this process, with everything else that is posted to the
// same member, and returns its new state.
func (m Mailer) Settle(ctx context.Context, d ledger.Delivery) (ledger.Delivery, error) {
	_, err := m.settle(ctx, &d)
	return d, err
}

// settle is Settle. It returns the messages that it has marked, each with the time in Unix
// milliseconds.
func (m Mailer) settle(ctx context.Context, d *ledger.Delivery) (all map[string]int64, err error) {
	box, err := m.Box(d.Recipient)
	if err != nil {
		return nil, err
	}
	now, stands := *d, false
	all = map[string]int64{}
	err = box.Settle(ctx, inbox.Settling{
		Wanted: func() (_ bool, err error) {
			now, err = m.Ledger.Delivery(ctx, d.MessageID, d.Recipient)
			return err == nil && now.State == team.Posted && isBoxOf(box, now.Recipient), err
		},
		Newest: func() (string, error) { return m.Ledger.NewestMailed(ctx, now.Session) },
		Due: func() ([]inbox.Due, error) {
			if m.lacking(box) {
				return nil, errLacking
			}
			out, err := m.Ledger.PostedTo(ctx, now.Session)
			return m.due(ctx, out, time.Now()), err
		},
		Note: func(there []inbox.Due) error {
			stands = stands || slices.ContainsFunc(there, func(e inbox.Due) bool { return e.ID == d.MessageID })
			at := time.Now().UnixMilli()
			n, err := m.markMailed(ctx, d.Recipient, there)
			if err == nil && n == len(there) {
				for _, e := range there {
					all[e.ID] = at
				}
			}
			return err
		},
	})
	at, marked := all[d.MessageID]
	switch {
	case err == nil && !isBoxOf(box, now.Recipient): // the recipient was renamed
		*d = now
		return m.settle(ctx, d)
	case marked:
		*d = now
		d.State, d.At, d.Reason, d.Evidence = team.Mailed, at, "", inMailbox
		return all, nil // what befell another's message is its sender's affair
	case errors.Is(err, errLacking) || errors.Is(err, inbox.ErrGone) || errors.Is(err, inbox.ErrOverwritten) || damaged(err):
		if _, err := m.restore(ctx, box, now.Session); err != nil { // this message too
			return all, err
		}
		return all, m.mailed(ctx, d)
	case stands:
		return all, m.mailed(ctx, d)
	case err != nil:
		return all, err
	case now.State == team.Posted: // it has left the outbox since, for its recipient has left
		now, err = m.Ledger.Delivery(ctx, d.MessageID, d.Recipient)
	}
	*d = now
	return all, err
}

// isBoxOf reports whether a mailbox is that of a member's name.
func isBoxOf(box *inbox.Box, name string) bool { return strings.EqualFold(box.Agent(), name) }

// due is what was posted as it is to stand in a mailbox.
func (m Mailer) due(ctx context.Context, out []ledger.Unmailed, now time.Time) []inbox.Due {
	all := make([]inbox.Due, len(out))
	for i, o := range out {
		all[i].Old = !young(o.Delivery, now)
		if o.Color != nil {
			all[i].Entry = entryOf(o.Message, *o.Color)
		} else {
			all[i].Entry = m.entry(ctx, o.Message)
		}
	}
	return all
}

// young reports that a message was posted a moment ago. A clock that was put back makes
// none young.
func young(d ledger.Delivery, now time.Time) bool {
	age := now.Sub(time.UnixMilli(d.At))
	return age >= 0 && age < sweepAge
}

// markMailed marks the entries of a mailbox, and returns how many changed their state.
func (m Mailer) markMailed(ctx context.Context, to string, there []inbox.Due) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, markWait)
	defer cancel()
	marks := make([]ledger.DeliveryMark, len(there))
	for i, e := range there {
		marks[i] = ledger.DeliveryMark{MessageID: e.ID, Recipient: to, State: team.Mailed, Evidence: inMailbox}
	}
	return m.Ledger.MarkMany(ctx, marks)
}

// inMailbox is the evidence of a message that was mailed, whoever did it.
const inMailbox = "in the mailbox file"

func (m Mailer) mailed(ctx context.Context, d *ledger.Delivery) error {
	moved, err := m.Ledger.Mark(ctx, ledger.DeliveryMark{
		MessageID: d.MessageID, Recipient: d.Recipient, State: team.Mailed, Evidence: inMailbox,
	})
	if err == nil && !moved { // it has come further, or its recipient has left
		*d, err = m.Ledger.Delivery(ctx, d.MessageID, d.Recipient)
		return err
	}
	if err != nil {
		return err
	}
	d.State, d.At, d.Reason, d.Evidence = team.Mailed, time.Now().UnixMilli(), "", inMailbox
	return nil
}

// Sweep mails what posters have not, the most urgent first, and returns how many
// messages it mailed and when to look again: zero, or the age at which the next
// one is ours.
func (m Mailer) Sweep(ctx context.Context) (n int, again time.Duration, err error) {
	out, err := m.Ledger.Undelivered(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	var all *multierror.Error
	for _, o := range out {
		if now := time.Now(); young(o.Delivery, now) {
			again = max(again, sweepAge-now.Sub(time.UnixMilli(o.Delivery.At)))
			continue
		}
		if err := m.takeOver(ctx, o); err != nil {
			all = multierror.Append(all, fmt.Errorf("mail %s to %s: %w", o.Message.ID, o.Delivery.Recipient, err))
			again = max(again, time.Second)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		n++
	}
	return n, again, all.ErrorOrNil()
}

// takeOver mails one delivery in its poster's place.
func (m Mailer) takeOver(ctx context.Context, o ledger.Outgoing) error {
	d := o.Delivery
	to, err := m.Ledger.MemberBySession(ctx, d.Session)
	if err != nil {
		return err
	}
	if to.RemovedAt != 0 { // another member may have the name now
		_, err := m.Ledger.Mark(ctx, ledger.DeliveryMark{
			MessageID: d.MessageID, Recipient: d.Recipient, State: team.Dropped, Reason: "the recipient has left",
		})
		return err
	}
	return m.mail(ctx, &d)
}

// entry returns a message in the form of a mailbox entry.
func (m Mailer) entry(ctx context.Context, msg ledger.Message) inbox.Entry {
	from, err := m.Ledger.Member(ctx, msg.From)
	if err != nil {
		return entryOf(msg, "")
	}
	return entryOf(msg, from.Color)
}

// EntryOf returns the future mailbox entry of a message that is not mailed yet.
func EntryOf(p ledger.Unmailed) inbox.Entry {
	color := ""
	if p.Color != nil {
		color = *p.Color
	}
	return entryOf(p.Message, color)
}

func entryOf(msg ledger.Message, color string) inbox.Entry {
	return inbox.Entry{
		From: msg.From, Text: msg.Text, Summary: msg.Summary, ID: msg.ID, Color: color,
		Timestamp: inbox.Timestamp(time.UnixMilli(msg.At)),
	}
}
