package services

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Mailboxes keeps the mailboxes in agreement with the ledger: it mails messages that their posters
// have not mailed, restores missing entries, prunes read ones, and follows the files that other
// programs change.
type Mailboxes struct {
	loop.Quiet
	team   loop.Team
	repair time.Duration // from a post to the check whether it was mailed
	lead   func(context.Context) error
	boot   func() (string, error)

	pruning bool
	sizes   map[string]int64 // in bytes by name, at the last pruning
}

// NewMailboxes returns the service. A posted message that is not mailed after repair is mailed.
// lead is called when the lead's mailbox has changed, and may be nil. boot identifies the boot of
// the machine.
func NewMailboxes(t loop.Team, repair time.Duration, lead func(context.Context) error, boot func() (string, error)) *Mailboxes {
	return &Mailboxes{team: t, repair: repair, lead: lead, boot: boot}
}

// Start follows the mailboxes.
func (m *Mailboxes) Start(ctx context.Context, bus loop.Bus) error {
	m.Bus = bus
	ready := make(chan error, 1)
	bus.Go("watch the mailboxes", func(ctx context.Context) func() {
		wait, err := m.team.Mailer().Watch(ctx, m.team.Log, m.lead)
		ready <- err
		if err == nil {
			wait()
		}
		return nil
	})
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ready completes the work left by an earlier supervisor.
func (m *Mailboxes) Ready() {
	m.sweep()
	m.Bus.Go("rebuild mailboxes", func(ctx context.Context) func() {
		mailer := m.team.Mailer()
		boot, err := m.boot()
		if err == nil {
			err = mailer.AfterBoot(ctx, boot)
		}
		if err := errors.Join(err, mailer.Rebuild(ctx)); err != nil && ctx.Err() == nil {
			m.team.Log.Warn("rebuild mailboxes", "err", err)
		}
		return nil
	})
	m.prune()
}

// Event schedules a check after a post whether it was mailed.
func (m *Mailboxes) Event(e ledger.Event) {
	if e.What == team.EventMessagePosted && !m.Bus.Armed("repair") {
		m.Bus.After("repair", m.repair, m.look)
	}
}

func (m *Mailboxes) look() {
	m.sweep()
	m.prune()
}

// sweep mails all messages that are posted and not mailed.
func (m *Mailboxes) sweep() {
	m.Bus.Go("mail posted messages", func(ctx context.Context) func() {
		n, again, err := m.team.Mailer().Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			m.team.Log.Warn("mail posted messages", "err", err)
		}
		if n > 0 {
			m.team.Log.Info("mailed what its poster had not", "messages", n)
		}
		if again <= 0 {
			return nil
		}
		return func() { m.Bus.After("repair", again, m.look) }
	})
}

// prune prunes the mailboxes that have grown.
func (m *Mailboxes) prune() {
	if m.pruning {
		return
	}
	m.pruning = true
	sizes := m.sizes
	m.Bus.Go("prune mailboxes", func(ctx context.Context) func() {
		next, err := m.team.Mailer().PruneGrown(ctx, sizes)
		if err != nil && ctx.Err() == nil {
			m.team.Log.Warn("prune mailboxes", "err", err)
		}
		return func() { m.pruning, m.sizes = false, next }
	})
}
