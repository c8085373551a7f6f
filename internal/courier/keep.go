package courier

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Back-off between attempts to reach an agent's server: short at first, since the first message
// waits for a starting agent; long later, so that an agent that does not return costs nothing.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 5 * time.Second
)

// KeepUp calls session, which holds one connection as long as it lasts, again and again until ctx
// ends. session reports whether it was connected; if so, the next attempt comes soon.
func KeepUp(ctx context.Context, session func(context.Context) (up bool)) {
	wait := retryFirst
	for ctx.Err() == nil {
		if session(ctx) {
			wait = retryFirst
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		wait = min(2*wait, retryMost)
	}
}

// Held returns a Held outcome with the reason for each message.
func Held(mail []team.Mail, reason string) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i] = team.Outcome{ID: m.ID, State: team.Held, Reason: reason}
	}
	return out
}
