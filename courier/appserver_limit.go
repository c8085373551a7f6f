package courier

import (
	"time"

	"github.com/teamctl/teamctl/adapter"
	"github.com/teamctl/teamctl/team"
)

// serverError is the error that ended a turn of Codex.
type serverError struct {
	Message string `json:"message"`
	Info    any    `json:"codexErrorInfo"` // a word, or an object
}

// rateLimits is what Codex tells of its account after a request.
type rateLimits struct {
	Primary   *rateWindow `json:"primary"`
	Secondary *rateWindow `json:"secondary"`
}

type rateWindow struct {
	UsedPercent int64 `json:"usedPercent"`
	ResetsAt    int64 `json:"resetsAt"` // Unix seconds
}

// resets notes when a window that is used up begins anew: to the second, where the
// words of the error name a minute.
func (a *appServer) resets(r rateLimits) {
	var reset time.Time
	for _, w := range []*rateWindow{r.Primary, r.Secondary} {
		if w == nil || w.UsedPercent < 100 || w.ResetsAt == 0 {
			continue
		}
		if at := time.Unix(w.ResetsAt, 0); at.After(reset) {
			reset = at
		}
	}
	a.mu.Lock()
	a.reset = reset
	a.mu.Unlock()
}

// failed reports a turn that a usage limit has ended. Another error is the agent's to
// show: its thread is at rest.
func (a *appServer) failed(e serverError) {
	if e.Info != "usageLimitExceeded" {
		return
	}
	now := time.Now()
	until, _ := adapter.LimitIn(adapter.Codex, e.Message, now)
	a.mu.Lock()
	if a.reset.After(now) {
		until = a.reset
	}
	o := team.Observation{Activity: team.Limited, Until: until, Since: now, Source: "error usageLimitExceeded", Evidence: []string{e.Message}, Conversation: a.thread}
	a.limit = &o
	a.mu.Unlock()
	a.see(o)
}
