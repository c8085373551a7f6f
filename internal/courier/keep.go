package courier

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Back-off between two attempts to reach an agent's server: short, for an agent
// that starts is waited for by its first message; long, for one that does not come
// back must cost nothing.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 5 * time.Second
)

// KeepUp runs session, which holds one connection for as long as it lasts, again
// and again until ctx ends. session reports whether it was up; then the next
// attempt is soon.
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

// Held answers for every mail with the reason why it is not given now.
func Held(mail []team.Mail, reason string) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i] = team.Outcome{ID: m.ID, State: team.Held, Reason: reason}
	}
	return out
}
