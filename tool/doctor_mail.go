package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// lateMail is how long a message may be posted before the doctor tells that it is in no
// mailbox: posters and supervisors take less.
const lateMail = 2 * time.Second

// mailCheck reports messages that lie in the ledger and not in the mailbox that they are
// for.
func (e *Env) mailCheck(ctx context.Context, info TeamInfo) (_ Check, bad bool) {
	t, err := e.Open(ctx, info.Key)
	if err != nil {
		return Check{}, false // orphanCheck has told it
	}
	late, err := t.lateMail(ctx, time.Now().Add(-lateMail))
	if err = errors.Join(err, t.Close()); err != nil {
		return checked("team "+info.Key, "%v", err).warn("look at " + info.Path), true
	}
	if late == "" {
		return Check{}, false
	}
	return checked("team "+info.Key, "messages that are posted and not in the mailbox yet: %s", late).
		warn("a program may hold its lock, " + t.Layout.Inboxes() + "/NAME.json.lock or .lock there; reading the mailbox, the next message and teamctl doctor --repair put them there"), true
}

// lateMail names the members with mail that was posted before a time and not mailed, each
// with how many messages; "" for none.
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
