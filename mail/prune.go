package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// KeepRead is how many read messages remain in a mailbox; the ledger has them all.
const KeepRead = 200

// A check reads the whole file. A mailbox is therefore checked again only when it has grown
// by pruneGrowth bytes, and by a quarter: otherwise the cost of a message would grow with
// the amount of unread mail.
const (
	pruneGrowth = 64 << 10
	pruneShare  = 4
)

// Box opens a member's mailbox.
func (m Mailer) Box(name string) (*inbox.Box, error) {
	return inbox.Open(m.Layout.Inboxes(), m.Layout.Locks(), name)
}

// Prune removes the read messages except the newest from a member's mailbox, and marks in the
// ledger that they were read, since the file no longer shows it. Notices that newer ones have
// replaced are marked as read first.
func (m Mailer) Prune(ctx context.Context, to ledger.Member) (int, error) {
	box, err := m.Box(to.Name)
	if err != nil {
		return 0, err
	}
	if err := m.markReplaced(ctx, box, to); err != nil && !damaged(err) {
		return 0, err
	}
	n, err := box.Prune(ctx, KeepRead, func(gone []inbox.Entry) error {
		ids := make([]string, 0, len(gone))
		for _, e := range gone {
			if e.ID != "" {
				ids = append(ids, e.ID)
			}
		}
		got, err := m.Ledger.Received(ctx, to.Name, ids)
		if err != nil {
			return err
		}
		var marks []ledger.DeliveryMark
		for _, e := range gone {
			if r := got[e.ID]; !r.Sent || r.State == team.Dropped || ledger.Reached(r.State, team.Injected) {
				continue // of a foreign program, known to be over, or marked there by a channel
			}
			d, err := m.Ledger.Delivery(ctx, e.ID, to.Name)
			if err != nil {
				return err
			}
			if d.Session == to.SessionKey && d.State != team.Dropped && !ledger.Reached(d.State, team.Injected) {
				marks = append(marks, ledger.DeliveryMark{MessageID: e.ID, Recipient: to.Name, State: team.Read,
					Evidence: "marked as read in the mailbox file", IfStates: []team.DeliveryState{team.Posted, team.Mailed, team.Held}})
			}
		}
		if len(marks) == 0 {
			return nil
		}
		_, err = m.Ledger.MarkMany(ctx, marks)
		return err
	})
	if damaged(err) {
		return 0, m.Restore(ctx, to)
	}
	return n, err
}

// markReplaced marks in the mailbox file the idle notices that the ledger has dropped.
func (m Mailer) markReplaced(ctx context.Context, box *inbox.Box, to ledger.Member) error {
	if to.Name != team.LeadName {
		return nil
	}
	entries, err := box.Unread(ctx)
	if err != nil {
		return err
	}
	var idle, replaced []string
	for _, e := range entries {
		if e.ID != "" && strings.Contains(e.Text, string(team.KindIdle)) {
			idle = append(idle, e.ID)
		}
	}
	got, err := m.Ledger.Received(ctx, to.Name, idle)
	if err != nil {
		return err
	}
	for _, id := range idle {
		if got[id].State == team.Dropped {
			replaced = append(replaced, id)
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	_, err = box.MarkRead(ctx, replaced...)
	return err
}

// PruneAll prunes every mailbox of the roster and returns how many entries went.
func (m Mailer) PruneAll(ctx context.Context) (int, error) {
	members, err := m.Ledger.Members(ctx, false)
	if err != nil {
		return 0, err
	}
	n := 0
	var all *multierror.Error
	for _, to := range members {
		gone, err := m.Prune(ctx, to)
		if n += gone; err != nil {
			all = multierror.Append(all, fmt.Errorf("prune the mailbox of %s: %w", to.Name, err))
		}
	}
	return n, all.ErrorOrNil()
}

// PruneGrown prunes the mailboxes that have grown since sizes, the sizes in bytes by name that
// the last call returned, and returns the next.
func (m Mailer) PruneGrown(ctx context.Context, sizes map[string]int64) (map[string]int64, error) {
	members, err := m.Ledger.Members(ctx, false)
	if err != nil {
		return sizes, err
	}
	next := map[string]int64{}
	var all *multierror.Error
	for _, to := range members {
		size, err := m.boxSize(to.Name)
		if err == nil && size > sizes[to.Name]+max(pruneGrowth, sizes[to.Name]/pruneShare) {
			if _, err = m.Prune(ctx, to); err == nil {
				size, err = m.boxSize(to.Name)
			}
		} else {
			size = min(size, sizes[to.Name])
		}
		if err != nil {
			all = multierror.Append(all, fmt.Errorf("prune the mailbox of %s: %w", to.Name, err))
			continue
		}
		next[to.Name] = size
	}
	return next, all.ErrorOrNil()
}

// boxSize returns the size of a mailbox file in bytes; 0 if it is missing.
func (m Mailer) boxSize(name string) (int64, error) {
	box, err := m.Box(name)
	if err != nil {
		return 0, err
	}
	fi, err := os.Lstat(box.Path())
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
