package mail

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/team"
)

// Watch follows the mailboxes that other programs change until ctx ends: it reconciles those
// that have become shorter or another file, and calls lead when the lead's mailbox has
// changed, and once at the start. lead may be nil. wait waits for the end.
func (m Mailer) Watch(ctx context.Context, log *slog.Logger, lead func(context.Context) error) (wait func(), err error) {
	w, err := inbox.Watch(ctx, m.Layout.Inboxes())
	if err != nil {
		return nil, err
	}
	var done sync.WaitGroup
	if lead != nil {
		changes := w.Changes(team.LeadName)
		done.Go(func() { watchLead(ctx, w, changes, log, lead) })
	}
	done.Go(func() { m.watch(ctx, w, log) })
	return func() {
		done.Wait()
		_ = w.Close() // it was only read
	}, nil
}

// watch reconciles each mailbox that has become shorter or another file as soon as that is
// seen: whether another program had read what it removed can be found out only for a while.
func (m Mailer) watch(ctx context.Context, w *inbox.Watcher, log *slog.Logger) {
	seen := map[string]os.FileInfo{}
	for {
		var name string
		select {
		case name = <-w.Named():
		case <-w.Done():
			return
		case <-ctx.Done():
			return
		}
		box, err := m.Box(name)
		if err != nil {
			continue // not a member's
		}
		now, err := os.Lstat(box.Path())
		if err != nil {
			continue // it may be back already; otherwise the next writer restores it
		}
		before := seen[name]
		seen[name] = now
		if before != nil && os.SameFile(before, now) && now.Size() >= before.Size() {
			continue
		}
		to, err := m.Ledger.Member(ctx, name)
		if err == nil {
			err = m.Mend(ctx, to)
		}
		if err != nil && ctx.Err() == nil && !team.IsCode(err, team.CodeNotFound) {
			log.Warn("reconcile a mailbox", "agent", name, "err", err)
		}
	}
}

// watchLead calls lead for every change of the lead's mailbox: other programs ask the lead
// by writing there.
func watchLead(ctx context.Context, w *inbox.Watcher, changes <-chan struct{}, log *slog.Logger, lead func(context.Context) error) {
	said := ""
	for {
		err := lead(ctx)
		if ctx.Err() != nil {
			return
		}
		// A refused request stays in the mailbox and is refused again.
		if err != nil && err.Error() != said {
			log.Warn("take up what the lead was asked", "err", err)
		}
		said = ""
		if err != nil {
			said = err.Error()
		}
		select {
		case <-changes:
		case <-w.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}
