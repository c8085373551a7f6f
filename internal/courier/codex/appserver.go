package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// appServer is the channel to a Codex whose app-server listens on a socket of its own, with its
// TUI attached.
//
// A message is a turn/start with the message's id as clientUserMessageId. An idle thread begins a
// turn; a busy one takes the message at the next tool boundary. The server decides which, so there
// is no race. The id returns as the item's clientId once the conversation has the message: that is
// the receipt, and it stays in the thread, where it can be read later.
//
// Notifications of a thread go to its subscribers, and a thread without a turn cannot be
// subscribed to. Status changes go to all clients: when the thread becomes active, the channel
// subscribes and reads what it missed. The server sends open approval requests again to each new
// subscriber.
type appServer struct {
	f      courier.Facts
	report courier.Report
	cancel context.CancelFunc
	done   sync.WaitGroup
	given  *courier.Journal // used only by Deliver
	*silence

	// order is held from reading the status of the thread until that is reported. It is locked
	// before mu, and never by methods that the supervisor's loop calls.
	order sync.Mutex

	mu     sync.Mutex
	conn   *rpc
	thread string
	joined bool   // subscribed to thread
	turn   string // id of the current turn, "" if none or unknown
	status threadStatus
	seen   map[string]string        // message id -> evidence that the thread has it
	asks   map[string]serverRequest // by id of the Ask
	caught bool                     // the requests that were open when it subscribed have come again
	tried  map[string]bool          // messages sent on this connection
	mode   team.Mode                // mode to work in
	moved  bool                     // send the mode with every turn: the thread has or had another one
	told   team.Mode                // mode sent with the last turn
	rests  int                      // number of reports that the thread is at rest
	heard  int                      // number of status reports
	began  map[string]int           // message id -> rests when a turn accepted it on this connection
	// steered holds the texts that turns have accepted and the thread does not show yet; brokenOff
	// is the turn that was broken off last.
	steered   []steered
	brokenOff string
	commands  map[string]string // running commands: item -> its turn
	limit     *team.Observation // usage limit that ended the last turn
	broken    bool              // an error ended the last turn and was reported
	unsaid    bool              // an error ended the last turn and was not reported yet
	reset     time.Time         // when the used-up window ends
	poke      chan struct{}     // capacity 1: look at the thread again
}

type serverRequest struct {
	id     json.RawMessage
	method string
	grant  json.RawMessage // permissions that askGrant requests
	form   bool            // askForm: a form to be filled in by a person
}

type threadStatus struct {
	Type        string   `json:"type"` // notLoaded, idle, systemError, active
	ActiveFlags []string `json:"activeFlags"`
}

// atRest reports whether no turn is running. An error of the model leaves systemError.
func (s threadStatus) atRest() bool { return s.Type == "idle" || s.Type == "systemError" }

// thread is a thread as the server describes it.
type thread struct {
	ID           string       `json:"id"`
	Ephemeral    bool         `json:"ephemeral"`
	ThreadSource string       `json:"threadSource"`
	Cwd          string       `json:"cwd"`
	CreatedAt    int64        `json:"createdAt"`
	Status       threadStatus `json:"status"`
}

// Methods of codex app-server, as of 0.169.
const (
	askCommand = "item/commandExecution/requestApproval"
	askChange  = "item/fileChange/requestApproval"
	askInput   = "item/tool/requestUserInput"
	askForm    = "mcpServer/elicitation/request"    // a tool of another MCP server, or a form of such a server
	askGrant   = "item/permissions/requestApproval" // additional permissions for this turn
)

// Open is the courier.Opener of adapter.WayAppServer.
func Open(_ context.Context, f courier.Facts, _ courier.Screen, r courier.Report) (courier.Channel, error) {
	a, err := newAppServer(f, r, patience{askWithin, askAtWork, askAtRest})
	if err != nil {
		return nil, err
	}
	a.start()
	return a, nil
}

func newAppServer(f courier.Facts, r courier.Report, p patience) (*appServer, error) {
	if f.Link.Socket == "" {
		return nil, team.Errorf(team.CodeInternal, "open a channel to %s: its link has no socket", f.AgentID)
	}
	given, err := courier.OpenJournal(string(f.Bundle), f.Generation)
	if err != nil {
		return nil, err
	}
	return &appServer{
		given: given, f: f, report: r, silence: newSilence(p),
		mode: f.Mode, moved: !adapter.SameMode(f.Link, f.Link.Mode, f.Mode),
		commands: map[string]string{}, seen: map[string]string{}, asks: map[string]serverRequest{}, poke: make(chan struct{}, 1),
	}, nil
}

// start begins to connect.
func (a *appServer) start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	a.see(team.Observation{Activity: team.ActivityUnknown, Source: "app-server has not shown its thread yet"}) // its screen does not count
	a.done.Go(func() { courier.KeepUp(ctx, a.session) })
}

// Close implements courier.Channel.
func (a *appServer) Close() {
	a.cancel()
	a.done.Wait()
	a.given.Close()
}

// session serves one connection.
func (a *appServer) session(ctx context.Context) (up bool) {
	conn, err := a.connect(ctx)
	if err != nil {
		a.f.Log.Debug("app-server not reached", "member", a.f.Name, "err", err)
		return false
	}
	var reader sync.WaitGroup
	ended := make(chan struct{})
	reader.Go(func() {
		defer close(ended)
		err := conn.serve(ctx, a.hears, a.take)
		if ctx.Err() == nil {
			a.f.Log.Info("app-server connection ended", "member", a.f.Name, "err", err)
		}
	})
	defer reader.Wait()
	defer conn.close()

	if err := a.hello(ctx, conn); err != nil {
		a.f.Log.Warn("app-server does not answer", "member", a.f.Name, "err", err)
		return false
	}
	a.mu.Lock()
	a.conn, a.tried, a.began = conn, map[string]bool{}, map[string]int{}
	a.mu.Unlock()
	a.wake()
	a.mute.Store(false)
	a.check.Reset(a.rest)
	for lasting := true; lasting; {
		select {
		case <-a.poke:
			a.look(ctx, conn)
		case <-a.check.C:
			a.askState(ctx, conn)
		case <-a.heardNow:
			a.askState(ctx, conn)
		case <-ended:
			lasting = false
		case <-ctx.Done():
			lasting = false
		}
	}
	a.mu.Lock()
	a.conn, a.joined, a.caught, a.turn, a.status = nil, false, false, "", threadStatus{}
	a.broken, a.unsaid = false, false
	for i := range a.steered { // the end of their turns was not observed
		a.steered[i].lost = true
	}
	clear(a.asks) // open requests are sent again
	clear(a.commands)
	a.mu.Unlock()
	if ctx.Err() == nil {
		a.see(team.Observation{Activity: team.ActivityUnknown, Source: "app-server connection ended"})
	}
	return true
}

func (a *appServer) wake() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// look finds the thread, subscribes to it and reads what was missed.
func (a *appServer) look(ctx context.Context, conn *rpc) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	a.mu.Lock()
	id, joined, unsaid := a.thread, a.joined, a.unsaid
	a.mu.Unlock()
	if id == "" {
		t, err := a.find(ctx, conn)
		if err != nil || t.ID == "" {
			return // thread/started follows
		}
		a.adopt(t)
		id = t.ID
	}
	if !joined {
		heard := a.hearings()
		out, err := a.resume(ctx, conn, id)
		no := (*rpcError)(nil)
		// A thread with an unreported error has a turn, so it can be subscribed to soon.
		for tries := 0; unsaid && tries < wordsTries && errors.As(err, &no) && courier.Pause(ctx, wordsPoll); tries++ {
			heard = a.hearings()
			out, err = a.resume(ctx, conn, id)
		}
		if errors.As(err, &no) {
			// It has no turn yet: the first turn wakes this loop.
			if unsaid {
				a.unnamed()
			}
			a.prompt(ctx, conn)
			return
		}
		if err != nil {
			return
		}
		a.mu.Lock()
		a.joined = true
		a.mu.Unlock()
		// A status change received since then may be newer than the answer.
		if status := a.unlessHeard(heard, out.Status); status.Type != "active" {
			a.lastTurn(ctx, conn, id)
			// The status arrives before the error's text.
			for tries := 0; a.owesWords() && tries < wordsTries && courier.Pause(ctx, wordsPoll); tries++ {
				a.lastTurn(ctx, conn, id)
			}
			a.unnamed()
		}
	}
	a.mu.Lock()
	owes := a.owesText()
	a.mu.Unlock()
	if err := a.read(ctx, conn, id); err != nil {
		a.f.Log.Warn("thread not read", "member", a.f.Name, "err", err)
		return
	}
	a.mu.Lock()
	a.caught = a.joined && a.thread == id
	a.mu.Unlock()
	if owes {
		a.giveAgain(ctx, conn, id)
	}
	a.prompt(ctx, conn)
}

// resume subscribes to a thread and returns it. The server refuses a thread without a turn.
func (a *appServer) resume(ctx context.Context, conn *rpc, id string) (thread, error) {
	var out struct{ Thread thread }
	err := conn.call(ctx, "thread/resume", map[string]any{"threadId": id, "excludeTurns": true}, &out)
	return out.Thread, err
}

// find returns the agent's thread among the loaded ones: the one that the link names, else the
// newest one that a person or the launch began in the agent's directory. The server also creates
// threads of its own, for titles.
func (a *appServer) find(ctx context.Context, conn *rpc) (thread, error) {
	var loaded struct{ Data []string }
	if err := conn.call(ctx, "thread/loaded/list", struct{}{}, &loaded); err != nil {
		return thread{}, err
	}
	var best thread
	for _, id := range loaded.Data {
		var out struct{ Thread thread }
		if err := conn.call(ctx, "thread/read", map[string]string{"threadId": id}, &out); err != nil {
			continue // unloaded meanwhile
		}
		t := out.Thread
		if t.ID == a.f.Link.Conversation {
			return t, nil
		}
		if a.own(t) && (best.ID == "" || t.CreatedAt >= best.CreatedAt) {
			best = t
		}
	}
	return best, nil
}

func (a *appServer) own(t thread) bool {
	return !t.Ephemeral && t.ThreadSource == "user" && t.Cwd == a.f.Dir
}

// adopt makes a thread the agent's conversation.
func (a *appServer) adopt(t thread) {
	a.order.Lock()
	defer a.order.Unlock()
	a.mu.Lock()
	fresh := a.thread != t.ID
	if fresh {
		a.thread, a.joined, a.caught, a.turn = t.ID, false, false, ""
		clear(a.asks)
	}
	a.mu.Unlock()
	if fresh {
		a.see(team.Observation{Ready: true, Conversation: t.ID, Source: "thread loaded"})
		a.shows(t.Status)
	}
}

// read takes receipts from the items of the thread.
func (a *appServer) read(ctx context.Context, conn *rpc, id string) error {
	var cursor any
	for {
		var out struct {
			Data []struct {
				Item   userMessage
				TurnID string
			}
			NextCursor any
		}
		err := conn.call(ctx, "thread/items/list", map[string]any{"threadId": id, "cursor": cursor, "sortDirection": "desc", "limit": 200}, &out)
		if err != nil {
			return err
		}
		for _, d := range out.Data {
			a.has(d.Item)
		}
		if out.NextCursor == nil || len(out.Data) == 0 {
			return nil
		}
		cursor = out.NextCursor
	}
}

// promptID is the id of a generation's first message in the thread.
func (a *appServer) promptID() string { return "prompt-" + a.f.Generation }

// prompt sends the first message if the link leaves that to the channel.
func (a *appServer) prompt(ctx context.Context, conn *rpc) {
	if a.f.Link.Prompt == "" {
		return
	}
	a.mu.Lock()
	_, known := a.seen[a.promptID()]
	id, tried := a.thread, a.tried[a.promptID()]
	a.tried[a.promptID()] = true
	a.mu.Unlock()
	if known || tried {
		return
	}
	if err := a.begin(ctx, conn, id, a.promptID(), a.f.Link.Prompt); err != nil {
		a.f.Log.Warn("prompt not given", "member", a.f.Name, "err", err)
	}
}

// begin sends one text to a thread.
func (a *appServer) begin(ctx context.Context, conn *rpc, thread, id, text string) error {
	var out struct{ Turn struct{ ID string } }
	in := map[string]any{
		"threadId": thread, "clientUserMessageId": id,
		"input": []any{map[string]string{"type": "text", "text": text}},
	}
	a.mu.Lock()
	mode, moved := a.mode, a.moved
	a.mu.Unlock()
	if moved {
		maps.Copy(in, adapter.CodexTurn(a.f.Link, mode))
	}
	a.check.Reset(a.answer)
	err := conn.call(ctx, "turn/start", in, &out)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.turn = out.Turn.ID
	a.began[id] = a.rests
	a.took(id, text, out.Turn.ID)
	if a.owesText() {
		a.wake()
	}
	if moved {
		a.told = mode
	}
	joined := a.joined
	a.mu.Unlock()
	if !joined {
		a.wake()
	}
	return nil
}

// Deliver implements courier.Channel.
func (a *appServer) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	a.mu.Lock()
	conn, id := a.conn, a.thread
	a.mu.Unlock()
	if conn == nil || id == "" {
		return courier.Held(mail, "the app-server of "+a.f.Name+" is not reached yet")
	}
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i] = a.deliver(ctx, conn, id, m)
	}
	return out
}

// Settles returns true: the thread shows which messages it has.
func (a *appServer) Settles() bool { return true }

func (a *appServer) deliver(ctx context.Context, conn *rpc, id string, m team.Mail) team.Outcome {
	o := team.Outcome{ID: m.ID, State: team.Injected}
	again, err := a.given.Note(a.f.Generation, m.ID)
	if err != nil {
		o.State, o.Reason = team.Held, err.Error()
		return o
	}
	again = again || m.Again
	a.mu.Lock()
	evidence, known := a.seen[m.ID]
	tried := a.tried[m.ID]
	a.mu.Unlock()
	switch {
	case known:
		o.State, o.Evidence = team.Accepted, evidence
		return o
	case tried && !m.Again:
		return o // sent on this connection; the receipt follows
	case again:
		if reason := a.ambiguous(ctx, conn, id, m.ID); reason != "" {
			o.State, o.Reason = team.Held, reason
			return o
		}
		a.mu.Lock()
		evidence, known = a.seen[m.ID]
		a.mu.Unlock()
		if known {
			o.State, o.Evidence = team.Accepted, evidence
			return o
		}
	}
	a.mu.Lock()
	a.tried[m.ID] = true
	a.mu.Unlock()
	err = a.begin(ctx, conn, id, m.ID, m.Text)
	if no := (*rpcError)(nil); errors.As(err, &no) {
		a.mu.Lock()
		delete(a.tried, m.ID)
		a.mu.Unlock()
		o.State, o.Reason = team.Held, no.Error()
	} else if err != nil {
		o.Reason = err.Error() // the thread may have it
	}
	return o
}

// ambiguous returns why it cannot be determined yet whether the thread has an earlier delivery, ""
// if it can: a busy thread may hold a message back until its next tool boundary. The answer to
// turn/start may overtake the report that the thread is busy, so an idle report from before the
// answer says nothing about that turn.
func (a *appServer) ambiguous(ctx context.Context, conn *rpc, id, mail string) string {
	a.mu.Lock()
	began, here := a.began[mail]
	if slices.ContainsFunc(a.steered, func(s steered) bool { return s.id == mail && s.lost }) {
		a.mu.Unlock()
		return "its turn was broken off: what the thread lacks of that is given again when it is at rest"
	}
	busy := !a.status.atRest() || here && began == a.rests
	a.mu.Unlock()
	if busy {
		return "an earlier handover may still wait for the turn"
	}
	err := a.read(ctx, conn, id)
	if no := (*rpcError)(nil); errors.As(err, &no) {
		return "" // a thread without a turn has no message
	}
	if err != nil {
		return fmt.Sprintf("the thread cannot be read: %v", err)
	}
	return ""
}

// Interrupt implements courier.Channel.
func (a *appServer) Interrupt(ctx context.Context) error {
	a.mu.Lock()
	conn, id, turn := a.conn, a.thread, a.turn
	a.mu.Unlock()
	if conn == nil || id == "" {
		return team.Errorf(team.CodeUnavailable, "interrupt %s: its app-server is not reached", a.f.AgentID)
	}
	if turn == "" { // the turn began before this connection
		var out struct{ Data []struct{ ID, Status string } }
		if err := conn.call(ctx, "thread/turns/list", map[string]any{"threadId": id, "limit": 1, "sortDirection": "desc"}, &out); err != nil {
			return fmt.Errorf("interrupt %s: %w", a.f.AgentID, err)
		}
		if len(out.Data) == 0 || out.Data[0].Status != "inProgress" {
			return nil // no turn is running
		}
		turn = out.Data[0].ID
	}
	err := conn.call(ctx, "turn/interrupt", map[string]string{"threadId": id, "turnId": turn}, nil)
	if no := (*rpcError)(nil); errors.As(err, &no) {
		a.f.Log.Info("nothing interrupted", "member", a.f.Name, "err", no) // it had just ended
		return nil
	}
	if err == nil {
		err = a.endCommands(ctx, conn, id, turn)
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", a.f.AgentID, err)
	}
	return nil
}

// SetMode implements courier.Channel: from the next turn on, each turn carries the mode, also
// after a return to the mode of the start.
func (a *appServer) SetMode(mode team.Mode) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !adapter.SameMode(a.f.Link, a.mode, mode) {
		a.moved = true
	}
	a.mode = mode
	if !a.moved || a.told != "" && adapter.SameMode(a.f.Link, a.told, mode) {
		return ""
	}
	return adapter.WithItsNextMessage
}

// Answer implements courier.Channel.
func (a *appServer) Answer(ctx context.Context, r team.Reply) error {
	a.mu.Lock()
	conn, caught := a.conn, a.caught
	req, ok := a.asks[r.ID]
	a.mu.Unlock()
	if conn == nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its app-server is not reached", a.f.AgentID)
	}
	if !ok && !caught {
		return team.Errorf(team.CodeUnavailable, "answer %s: its app-server has not shown its open requests yet", a.f.AgentID)
	}
	if !ok {
		return team.Errorf(team.CodeNotFound, "answer %s: request %s no longer needs an answer", a.f.AgentID, r.ID)
	}
	var result any
	switch req.method {
	case askInput:
		answers := r.Input
		if len(answers) == 0 {
			answers = json.RawMessage(`{}`)
		}
		result = map[string]any{"answers": answers}
	case askForm:
		action := "decline"
		if r.Allow {
			action = "accept" // once only
		}
		answer := map[string]any{"action": action}
		if r.Allow && req.form && len(r.Input) > 0 {
			answer["content"] = r.Input
		}
		result = answer
	case askGrant:
		grant := json.RawMessage(`{}`)
		if r.Allow {
			grant = req.grant
		}
		result = map[string]any{"permissions": grant, "scope": "turn"}
	default:
		decision := "decline"
		if r.Allow {
			decision = "accept"
		}
		result = map[string]string{"decision": decision}
	}
	if err := conn.send(ctx, map[string]any{"id": req.id, "result": result}); err != nil {
		return fmt.Errorf("answer %s: %w", a.f.AgentID, err)
	}
	if !r.Allow && r.Feedback != "" { // the protocol has no field for feedback
		a.mu.Lock()
		id := a.thread
		a.mu.Unlock()
		if err := a.begin(ctx, conn, id, "reply-"+r.ID, r.Feedback); err != nil {
			return fmt.Errorf("answer %s: send the reason: %w", a.f.AgentID, err)
		}
	}
	return nil
}
