package courier

import (
	"context"
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

// lastTurn reads how the last turn of a thread has ended, of which nobody told before
// the channel had subscribed.
func (a *appServer) lastTurn(ctx context.Context, conn *rpc, id string) {
	var out struct {
		Data []struct {
			Status      string
			Error       *serverError
			CompletedAt int64 // Unix seconds
		}
	}
	err := conn.call(ctx, "thread/turns/list", map[string]any{"threadId": id, "limit": 1, "sortDirection": "desc"}, &out)
	if err != nil || len(out.Data) == 0 {
		return // it has none
	}
	if t := out.Data[0]; t.Error != nil && t.CompletedAt > 0 { // its words mean an hour after that
		a.failed(*t.Error, time.Unix(t.CompletedAt, 0))
	}
}

// failed reports a turn that a usage limit has ended, and when. Another error is the
// agent's to show: its thread is at rest.
func (a *appServer) failed(e serverError, at time.Time) {
	if e.Info != "usageLimitExceeded" {
		return
	}
	until, _ := adapter.LimitIn(adapter.Codex, e.Message, at)
	a.mu.Lock()
	if a.limit != nil { // told already
		a.mu.Unlock()
		return
	}
	if a.reset.After(time.Now()) {
		until = a.reset
	}
	o := team.Observation{Activity: team.Limited, Until: until, Since: at, Source: "error usageLimitExceeded", Evidence: []string{e.Message}, Conversation: a.thread}
	a.limit = &o
	a.mu.Unlock()
	a.see(o)
}
