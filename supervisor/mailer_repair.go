package supervisor

import (
	"context"
	"errors"
	"slices"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// BoxRepair says what became of one mailbox.
type BoxRepair struct {
	Damaged  *inbox.CorruptError // what was found and where it is now; nil for a sound file
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
	mark, lacks := box.Lacks()
	mail, err := m.Ledger.Mailbox(ctx, to.SessionKey, 0)
	if err != nil {
		return out, err
	}
	waits := func(o ledger.Outgoing) bool { return o.Delivery.State == team.Mailed || o.Delivery.State == team.Held }
	if slices.ContainsFunc(mail, waits) && gone(box) {
		if mark, err = box.Renew(ctx); err != nil {
			return out, err
		}
		lacks = true
	}
	var errs []error
	for _, o := range mail {
		switch o.Delivery.State {
		case team.Mailed, team.Held:
			added, err := box.AppendOnceIf(ctx, m.entry(ctx, o.Message), m.open(ctx, o.Delivery))
			if added {
				out.Restored++
			}
			errs = append(errs, err)
		case team.Posted: // its poster's or the supervisor's to mail
		case team.Injected, team.Accepted, team.Read, team.Answered, team.Dropped:
		}
	}
	if err := errors.Join(errs...); err != nil || !lacks {
		return out, err
	}
	_, err = box.Whole(ctx, mark)
	return out, err
}
