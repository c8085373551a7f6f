package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// lateMail is how long a posted message may be missing in its mailbox before the doctor reports
// it: posters and supervisors take less.
const lateMail = 2 * time.Second

// mailCheck reports messages that are in the ledger and not in the recipient's mailbox.
func (e *Env) mailCheck(ctx context.Context, info TeamInfo) (_ Check, bad bool) {
	t, err := e.Open(ctx, info.Key)
	if err != nil {
		return Check{}, false // orphanCheck has reported it
	}
	late, err := t.lateMail(ctx, time.Now().Add(-lateMail))
	lost, lostErr := t.lostMail(ctx)
	if err = errors.Join(err, lostErr, t.Close()); err != nil {
		return checked("team "+info.Key, "%v", err).warn("look at " + info.Path), true
	}
	if lost != "" {
		return checked("team "+info.Key, "messages that were in a mailbox and are missing, with no sign that they were read: %s", lost).
			warn("another program has overwritten it; reading the mailbox, the next message and teamctl doctor --repair put them back"), true
	}
	if late == "" {
		return Check{}, false
	}
	return checked("team "+info.Key, "messages that are posted and not in the mailbox yet: %s", late).
		warn("a program may hold its lock, " + t.Layout.Inboxes() + "/NAME.json.lock or .lock there; reading the mailbox, the next message and teamctl doctor --repair put them there"), true
}

// lostMail returns the members whose mailboxes lack messages that were mailed, each with their
// number; "" for none. It skips a mailbox that is being written, or is damaged.
func (t *Team) lostMail(ctx context.Context) (string, error) {
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return "", err
	}
	var names []string
	for _, to := range members {
		n, err := t.mailer(Caller{}).Lost(ctx, to)
		switch {
		case team.ReasonOf(err) == team.ReasonUnsettled:
		case err != nil:
			return "", err
		case n > 0:
			names = append(names, fmt.Sprintf("%s (%d)", to.Name, n))
		}
	}
	return strings.Join(names, ", "), nil
}

// lateMail returns the members with mail that was posted before a time and not mailed, each with
// the number of messages; "" for none.
func (t *Team) lateMail(ctx context.Context, before time.Time) (string, error) {
	out, err := t.Ledger.Undelivered(ctx, 0)
	if err != nil {
		return "", err
	}
	out = slices.DeleteFunc(out, func(o ledger.Outgoing) bool { return o.Delivery.At > before.UnixMilli() })
	counts := map[string]int{}
	var names []string
	for _, o := range out {
		if counts[o.Delivery.Recipient]++; counts[o.Delivery.Recipient] == 1 {
			names = append(names, o.Delivery.Recipient)
		}
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%s (%d)", n, counts[n])
	}
	return strings.Join(names, ", "), nil
}
