package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// serverError is an error that ended a turn of Codex.
type serverError struct {
	Message string `json:"message"`
	Info    any    `json:"codexErrorInfo"` // a word, or an object
}

// limitExceeded is Codex's code for a usage limit.
const limitExceeded = "usageLimitExceeded"

// rateLimits is Codex's report about its account after a request.
type rateLimits struct {
	Primary   *rateWindow `json:"primary"`
	Secondary *rateWindow `json:"secondary"`
}

type rateWindow struct {
	UsedPercent int64 `json:"usedPercent"`
	ResetsAt    int64 `json:"resetsAt"` // Unix seconds
}

// resets records when a used-up window ends. This is exact to the second, while the text of the
// error names only a minute.
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

// lastTurn reads how the last turn of a thread ended, if that happened before the channel
// subscribed.
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
		return // the thread has no turn
	}
	a.order.Lock()
	defer a.order.Unlock()
	if a.busy() {
		return // another turn has begun
	}
	if t := out.Data[0]; t.Error != nil && t.CompletedAt > 0 { // its text means the next such hour after that time
		at := time.Unix(t.CompletedAt, 0)
		if t.Error.Info != limitExceeded { // its turn may have begun in the same second
			at = at.Add(min(time.Since(at), time.Second-time.Millisecond))
		}
		a.fails(*t.Error, at)
	}
}

// busy reports whether a turn is running.
func (a *appServer) busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status.Type == "active"
}

// failed handles an error that ended a turn at a time.
func (a *appServer) failed(e serverError, at time.Time) {
	a.order.Lock()
	defer a.order.Unlock()
	a.fails(e, at)
}

// fails reports an error that ended a turn. order is held.
func (a *appServer) fails(e serverError, at time.Time) {
	if e.Info != limitExceeded {
		a.brokenBy(e, at)
		return
	}
	until, _ := adapter.LimitIn(adapter.Codex, e.Message, at)
	a.mu.Lock()
	if a.limit != nil { // reported already
		a.mu.Unlock()
		return
	}
	if a.reset.After(time.Now()) {
		until = a.reset
	}
	o := team.Observation{Activity: team.Limited, Until: until, Since: at, Source: "error " + limitExceeded, Evidence: []string{e.Message}, Conversation: a.thread}
	a.limit, a.unsaid = &o, false
	a.mu.Unlock()
	a.see(o)
}

// brokenBy reports an error that ended a turn, once, and then the rest of the thread if that was
// not reported yet: a reader of one report needs the other. order is held.
func (a *appServer) brokenBy(e serverError, at time.Time) {
	a.mu.Lock()
	if a.broken || a.limit != nil {
		a.mu.Unlock()
		return
	}
	a.broken = true
	unsaid := a.unsaid
	a.unsaid = false
	status, thread := a.status, a.thread
	a.mu.Unlock()
	a.see(team.Observation{Source: "error", At: at, Failed: e.words(), Conversation: thread})
	if unsaid {
		a.see(team.Observation{Activity: team.Idle, Ready: true, Source: "thread/status/changed", Evidence: []string{status.Type}, Conversation: thread})
	}
}

// wordsTries and wordsPoll bound how often, and at which interval, the text of an error is
// requested before the error is reported without it.
const (
	wordsTries = 40
	wordsPoll  = 50 * time.Millisecond
)

// owesWords reports whether an error without known text has put the thread at rest.
func (a *appServer) owesWords() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unsaid
}

// unnamed reports a thread that is at rest after an error without text.
func (a *appServer) unnamed() {
	a.order.Lock()
	defer a.order.Unlock()
	if a.owesWords() {
		a.brokenBy(serverError{}, time.Now())
	}
}

// words returns the readable text of an error: its message may be a JSON answer of the provider.
func (e serverError) words() string {
	var answer struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(e.Message), &answer) == nil && answer.Error.Message != "" {
		return answer.Error.Message
	}
	return cmp.Or(strings.TrimSpace(e.Message), "an error that Codex does not name")
}
