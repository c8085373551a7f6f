package mail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// gone reports that a mailbox has no file, or an empty one: it never had mail, or the file was
// deleted or emptied. Then the ledger decides.
func gone(box *inbox.Box) bool {
	fi, err := os.Stat(box.Path())
	return errors.Is(err, os.ErrNotExist) || err == nil && fi.Size() == 0
}

// lacking reports that a mailbox has no file or an empty one, or that its restoring
// is due or was cut short.
func (m Mailer) lacking(box *inbox.Box) bool {
	_, lacks := box.Lacks()
	return lacks || gone(box)
}

// overwritten reports that a mailbox lacks the newest message that it has had and that no reader
// is known to have taken: another program has removed it, or has replaced the file by an older
// one.
func (m Mailer) overwritten(ctx context.Context, box *inbox.Box, session string) (bool, error) {
	id, err := m.Ledger.NewestMailed(ctx, session)
	if err != nil || id == "" {
		return false, err
	}
	return m.lacks(ctx, box, id)
}

// lacks reports that a mailbox does not have a message.
func (m Mailer) lacks(ctx context.Context, box *inbox.Box, id string) (bool, error) {
	if m.lacking(box) {
		return true, nil
	}
	there, err := box.Has(ctx, id)
	if damaged(err) {
		return true, nil
	}
	return err == nil && !there, err
}

// Mend reconciles a member's mailbox that lacks the newest message that it has had: what its
// reader has taken is marked as read in the ledger, and what is lost is put back.
func (m Mailer) Mend(ctx context.Context, to ledger.Member) error {
	box, err := m.Box(to.Name)
	if err != nil {
		return err
	}
	if over, err := m.overwritten(ctx, box, to.SessionKey); err != nil || !over {
		return err
	}
	_, err = m.restore(ctx, box, to.SessionKey)
	return err
}

// MendFor is Mend for one message that the mailbox has had.
func (m Mailer) MendFor(ctx context.Context, to ledger.Member, id string) error {
	box, err := m.Box(to.Name)
	if err != nil {
		return err
	}
	if lacks, err := m.lacks(ctx, box, id); err != nil || !lacks {
		return err
	}
	_, err = m.restore(ctx, box, to.SessionKey)
	return err
}

// Rebuild puts back what mailboxes lack that were deleted, emptied or overwritten.
func (m Mailer) Rebuild(ctx context.Context) error {
	members, err := m.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	var all *multierror.Error
	for _, to := range members {
		if err := m.rebuild(ctx, to); err != nil {
			all = multierror.Append(all, fmt.Errorf("rebuild the mailbox of %s: %w", to.Name, err))
		}
	}
	return all.ErrorOrNil()
}

func (m Mailer) rebuild(ctx context.Context, to ledger.Member) error {
	box, err := m.Box(to.Name)
	if err != nil {
		return err
	}
	if !m.lacking(box) {
		return m.Mend(ctx, to)
	}
	_, err = m.restore(ctx, box, to.SessionKey)
	return err
}

// Restore puts back what a mailbox lacks that was found damaged and repaired.
func (m Mailer) Restore(ctx context.Context, to ledger.Member) error {
	box, err := m.Box(to.Name)
	if err == nil {
		_, err = m.restore(ctx, box, to.SessionKey)
	}
	if err != nil {
		return fmt.Errorf("restore the mailbox of %s: %w", to.Name, err)
	}
	return nil
}

// damaged reports that a mailbox was found damaged: its file is repaired and the unreadable part
// is kept aside, but the operation was not done.
func damaged(err error) bool {
	var corrupt *inbox.CorruptError
	return errors.As(err, &corrupt)
}

// restore reconciles a mailbox with the ledger and returns how many messages it put back. Until
// then the mailbox is marked as incomplete: the next process that mails, or starts, continues it.
// If the member was renamed meanwhile, its mailbox has another name.
func (m Mailer) restore(ctx context.Context, box *inbox.Box, session string) (back int, err error) {
	for range 5 {
		var mark string
		if mark, err = box.Lack(context.WithoutCancel(ctx)); err != nil { // even if the deadline has passed
			return back, err
		}
		// Damaged or deleted again meanwhile: nothing was put back.
		var n int
		if mark, n, err = m.putBack(ctx, box, session, mark); damaged(err) || errors.Is(err, inbox.ErrGone) {
			continue
		}
		if errors.Is(err, errRenamed) {
			if _, err := box.Whole(ctx, mark); err != nil {
				return back, err
			}
			to, err := m.Ledger.MemberBySession(ctx, session)
			if err == nil {
				box, err = m.Box(to.Name)
			}
			if err != nil {
				return back, err
			}
			continue
		}
		back += n
		if err != nil {
			return back, err
		}
		if whole, err := box.Whole(ctx, mark); err != nil || whole {
			return back, err
		}
	}
	return back, err // damaged repeatedly: the mark stays
}

// errRenamed reports that a mailbox does not belong to the member any more.
var errRenamed = errors.New("the member was renamed")

// ours fails, under a mailbox's lock, unless the mailbox is that of a session's member.
func (m Mailer) ours(ctx context.Context, box *inbox.Box, session string) error {
	to, err := m.Ledger.MemberBySession(ctx, session)
	if err == nil && !isBoxOf(box, to.Name) {
		err = errRenamed
	}
	return err
}

// putBack is one pass of restore; it ends at damage, and where the file is deleted. It
// returns the mark that stands, and how many messages it put back.
//
// What the mailbox shows decides. What its reader is known to have taken is marked as read
// in the ledger, with how that is known. What is lost comes again; where it had been in
// the file before, it says that it may be known.
func (m Mailer) putBack(ctx context.Context, box *inbox.Box, session, mark string) (string, int, error) {
	out, err := m.Ledger.Mailbox(ctx, session, 0)
	if err != nil {
		return mark, 0, err
	}
	out = slices.DeleteFunc(out, func(o ledger.Outgoing) bool { return o.Delivery.State == team.Dropped })
	back := 0
	var mailed []ledger.DeliveryMark
	mark, err = box.Reconcile(ctx, mark, expected(out), func(traces []inbox.Trace) ([]inbox.Entry, error) {
		var add []inbox.Entry
		var taken []ledger.DeliveryMark
		mailed, back = nil, 0
		if err := m.ours(ctx, box, session); err != nil {
			return nil, err
		}
		for i, o := range out {
			d := o.Delivery
			switch {
			case ledger.Reached(d.State, team.Injected):
				continue
			case d.State == team.Mailed && traces[i].Taken != "":
				taken = append(taken, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: d.Recipient, State: team.Read,
					Evidence: traces[i].Taken, IfStates: []team.DeliveryState{team.Mailed}})
				continue
			case !traces[i].Stands:
				open, err := m.open(ctx, d)()
				if err != nil {
					return nil, err
				}
				if !open {
					continue
				}
				e := m.entry(ctx, o.Message)
				if d.State != team.Posted {
					e.SetMayBeKnown()
					back++
				}
				add = append(add, e)
			}
			if d.State == team.Posted { // of a poster who was killed, maybe
				mailed = append(mailed, ledger.DeliveryMark{MessageID: d.MessageID, Recipient: d.Recipient,
					State: team.Mailed, Evidence: inMailbox})
			}
		}
		_, err := m.Ledger.MarkMany(ctx, taken)
		return add, err
	})
	if err != nil {
		return mark, 0, err
	}
	_, err = m.Ledger.MarkMany(ctx, mailed)
	return mark, back, err
}

// expected are messages as they are, or should be, in a mailbox.
func expected(out []ledger.Outgoing) []inbox.Expected {
	want := make([]inbox.Expected, len(out))
	for i, o := range out {
		want[i].Entry = entryOf(o.Message, "")
		if o.Delivery.State == team.Mailed {
			want[i].Since = time.UnixMilli(o.Delivery.At)
		}
	}
	return want
}

// Lost returns how many messages a member's mailbox has had and lacks, without evidence that they
// were taken. It changes nothing.
func (m Mailer) Lost(ctx context.Context, to ledger.Member) (int, error) {
	id, err := m.Ledger.NewestMailed(ctx, to.SessionKey)
	if err != nil || id == "" {
		return 0, err
	}
	box, err := m.Box(to.Name)
	if err != nil {
		return 0, err
	}
	out, err := m.Ledger.Mailbox(ctx, to.SessionKey, 0)
	if err != nil {
		return 0, err
	}
	traces, err := box.Traces(expected(out))
	if err != nil {
		return 0, err
	}
	n := 0
	for i, tr := range traces {
		if out[i].Delivery.State == team.Mailed && !tr.Stands && tr.Taken == "" {
			n++
		}
	}
	return n, nil
}

// BoxRepair is the outcome of repairing one mailbox.
type BoxRepair struct {
	Damaged  *inbox.CorruptError // the damage and where it is kept now; nil for a sound file
	Restored int                 // messages of the ledger that were put back
}

// RepairBox checks a member's mailbox, sets a damaged file aside, and puts back what
// the ledger has and the member is not known to have taken.
func (m Mailer) RepairBox(ctx context.Context, to ledger.Member) (BoxRepair, error) {
	var out BoxRepair
	box, err := m.Box(to.Name)
	if err != nil {
		return out, err
	}
	if out.Damaged, err = box.Repair(ctx); err != nil {
		return out, err
	}
	mail, err := m.Ledger.Mailbox(ctx, to.SessionKey, 0)
	if err != nil || !slices.ContainsFunc(mail, func(o ledger.Outgoing) bool {
		return o.Delivery.State == team.Mailed || o.Delivery.State == team.Held
	}) && !m.marked(box) {
		return out, err
	}
	out.Restored, err = m.restore(ctx, box, to.SessionKey)
	return out, err
}

func (m Mailer) marked(box *inbox.Box) bool {
	_, lacks := box.Lacks()
	return lacks
}
