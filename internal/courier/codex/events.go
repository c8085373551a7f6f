package codex

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/team"
)

// take handles notifications and requests, in order.
func (a *appServer) take(m rpcMessage) {
	var p struct {
		ThreadID   string          `json:"threadId"`
		TurnID     string          `json:"turnId"`
		ItemID     string          `json:"itemId"`
		ApprovalID string          `json:"approvalId"`
		RequestID  json.RawMessage `json:"requestId"`
		Reason     string          `json:"reason"`
		Command    string          `json:"command"`

		Server      string          `json:"serverName"`
		Message     string          `json:"message"`
		Permissions json.RawMessage `json:"permissions"`
		Meta        struct {
			Kind string `json:"codex_approval_kind"` // set for a request about a tool call
		} `json:"_meta"`

		Thread thread `json:"thread"`
		Turn   struct {
			ID, Status string
			Error      serverError
		}
		Status     threadStatus `json:"status"`
		Item       userMessage  `json:"item"`
		Error      serverError  `json:"error"`
		WillRetry  bool         `json:"willRetry"`
		RateLimits rateLimits   `json:"rateLimits"`
		TokenUsage struct {
			Total struct{ InputTokens, CachedInputTokens, OutputTokens int64 }
		} `json:"tokenUsage"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		return // an unneeded message whose shape changed in a later version
	}
	a.mu.Lock()
	ours, id := p.ThreadID == a.thread, a.thread
	a.mu.Unlock()
	switch m.Method {
	case "thread/started":
		if a.own(p.Thread) && (a.f.Link.Conversation == "" || id != "") {
			a.adopt(p.Thread)
			a.wake()
		} else if p.Thread.ID == a.f.Link.Conversation {
			a.wake()
		}
		return
	case "thread/status/changed":
		if id == "" {
			a.wake()
			return
		}
	case "account/rateLimits/updated":
		a.resets(p.RateLimits)
		return
	}
	if !ours {
		return
	}
	switch m.Method {
	case "thread/status/changed":
		a.changed(p.Status)
	case "turn/started":
		a.mu.Lock()
		a.turn = p.Turn.ID
		a.mu.Unlock()
	case "turn/completed":
		a.mu.Lock()
		if a.turn == p.Turn.ID {
			a.turn = ""
		}
		a.mu.Unlock()
		if p.Turn.Status != "completed" {
			a.breaksOff(p.Turn.ID)
		}
		switch p.Turn.Status {
		case "interrupted": // also by a person, at the agent's own screen
			a.see(team.Observation{Source: m.Method, Turn: p.Turn.ID, Interrupted: true})
		case "failed": // the error notification precedes it, with the text
			a.failed(p.Turn.Error, time.Now())
		}
	case "error":
		if !p.WillRetry {
			a.failed(p.Error, time.Now())
		}
	case "item/started", "item/completed":
		a.has(p.Item)
		a.runs(p.TurnID, p.Item, m.Method == "item/completed")
	case "thread/tokenUsage/updated":
		u := p.TokenUsage.Total
		a.see(team.Observation{Source: m.Method, Usage: &team.Usage{
			InputTokens: u.InputTokens, CachedTokens: u.CachedInputTokens, OutputTokens: u.OutputTokens,
		}})
	case "serverRequest/resolved":
		a.resolved(p.RequestID)
	case askCommand, askChange, askInput, askForm, askGrant:
		ask := &team.Ask{ID: p.ItemID, ToolUseID: p.ItemID, For: team.WaitPermission, Tool: "exec_command", Description: p.Reason, Input: m.Params}
		if p.ApprovalID != "" {
			ask.ID += ":" + p.ApprovalID
		}
		switch m.Method {
		case askChange:
			ask.Tool = "apply_patch"
		case askInput:
			ask.Tool, ask.For = "request_user_input", team.WaitQuestion
		case askForm:
			ask.Tool, ask.Description, ask.ID = "mcp__"+p.Server, p.Message, a.formID(p.TurnID, p.Server, p.Message)
			if p.Meta.Kind == "" {
				ask.For = team.WaitQuestion
			}
		case askGrant:
			ask.Tool = "request_permissions"
			if ask.Description == "" {
				ask.Description = string(p.Permissions)
			}
		}
		if ask.Description == "" {
			ask.Description = p.Command
		}
		a.mu.Lock()
		a.asks[ask.ID] = serverRequest{id: m.ID, method: m.Method, grant: p.Permissions, form: m.Method == askForm && p.Meta.Kind == ""}
		a.mu.Unlock()
		a.see(team.Observation{Activity: team.Waiting, For: ask.For, Source: m.Method, Turn: p.TurnID, Ask: ask})
	}
}

// formID names a request that has no item: the id is the same when the request is sent again, and
// another one when the same question is asked twice.
func (a *appServer) formID(turn, server, message string) string {
	sum := sha256.Sum256([]byte(message))
	id := fmt.Sprintf("form:%s:%s:%x", turn, server, sum[:6])
	a.mu.Lock()
	defer a.mu.Unlock()
	for n, first := 2, id; ; n++ {
		if _, taken := a.asks[id]; !taken {
			return id
		}
		id = fmt.Sprintf("%s:%d", first, n)
	}
}

// resolved forgets a request that was answered, through teamctl or in the TUI.
func (a *appServer) resolved(id json.RawMessage) {
	var settled []string
	a.mu.Lock()
	for ask, r := range a.asks {
		if string(r.id) == string(id) {
			delete(a.asks, ask)
			settled = append(settled, ask)
		}
	}
	a.mu.Unlock()
	for _, s := range settled {
		a.see(team.Observation{Source: "serverRequest/resolved", Settled: s})
	}
}

// changed handles a status change of the thread.
func (a *appServer) changed(s threadStatus) {
	a.order.Lock()
	defer a.order.Unlock()
	a.mu.Lock()
	a.heard++
	a.mu.Unlock()
	a.shows(s)
}

// hearings returns the number of status reports so far.
func (a *appServer) hearings() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard
}

// unlessHeard applies a status from an answer, and returns the current status. Answers are
// processed after notifications that followed them on the connection: a status older than the end
// of a turn would begin that turn again. Every change is notified, so the answer is dropped if a
// notification came since the question.
func (a *appServer) unlessHeard(before int, s threadStatus) threadStatus {
	a.order.Lock()
	defer a.order.Unlock()
	a.mu.Lock()
	now, heard := a.status, a.heard != before
	a.mu.Unlock()
	if heard {
		return now
	}
	a.shows(s)
	return s
}

// shows reports a status of the thread. order is held.
func (a *appServer) shows(s threadStatus) {
	o := team.Observation{Source: "thread/status/changed", Evidence: append([]string{s.Type}, s.ActiveFlags...)}
	switch s.Type {
	case "idle", "systemError":
		o.Activity, o.Ready = team.Idle, true
	case "active":
		o.Activity = team.Working
		for _, f := range s.ActiveFlags {
			switch f {
			case "waitingOnApproval":
				o.Activity, o.For = team.Waiting, team.WaitPermission
			case "waitingOnUserInput":
				o.Activity, o.For = team.Waiting, team.WaitQuestion
			}
		}
	default:
		o.Activity = team.ActivityUnknown
	}
	a.mu.Lock()
	a.status = s
	a.check.Reset(a.every(s))
	switch {
	case s.Type == "active":
		a.limit, a.broken, a.unsaid = nil, false, false
	case a.limit != nil: // at rest because of the limit
		o.Activity, o.Until, o.Since, o.Evidence = a.limit.Activity, a.limit.Until, a.limit.Began(), a.limit.Evidence
	}
	if s.Type != "active" {
		a.turn = ""
	}
	if s.atRest() {
		a.rests++
	}
	o.Turn, o.Conversation = a.turn, a.thread
	joined := a.joined
	if s.Type == "systemError" && a.limit == nil && !a.broken { // the error's details follow
		a.unsaid = true
	}
	unsaid, owes := a.unsaid, a.owesText()
	a.mu.Unlock()
	if owes {
		a.wake()
	}
	if !unsaid {
		a.see(o)
	}
	if !joined && (unsaid || s.Type == "active") {
		a.wake()
	}
}

// userMessage is an item of a thread, with the fields used here.
type userMessage struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	ClientID string `json:"clientId"`
}

// has records that the conversation has a message, and reports it once.
func (a *appServer) has(i userMessage) {
	if i.Type != "userMessage" || i.ClientID == "" {
		return
	}
	evidence := "item " + i.ID
	a.mu.Lock()
	a.forget(i.ClientID)
	_, known := a.seen[i.ClientID]
	a.seen[i.ClientID] = evidence
	a.mu.Unlock()
	if !known {
		a.see(team.Observation{Source: "item userMessage", Receipts: []team.Receipt{{ID: i.ClientID, State: team.Accepted, Evidence: evidence}}})
	}
}
