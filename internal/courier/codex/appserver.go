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

// appServer is the channel to a Codex whose app-server listens on a socket of the
// agent's own, with its TUI attached.
//
// A message is a turn/start with the message's id as clientUserMessageId. An idle
// thread begins a turn; a busy one takes it at the next tool boundary, and the
// server decides which, so there is no race. The id comes back as the item's
// clientId at the moment when the conversation has it: that is the receipt, and it
// stays in the thread for whoever asks later.
//
// Notifications of a thread go to its subscribers, and a thread without a turn
// cannot be subscribed to. Its status goes to everybody: when it becomes active,
// the channel subscribes and reads up what it missed. A request for approval that
// is open is sent again to every new subscriber.
type appServer struct {
	f      courier.Facts
	report courier.Report
	cancel context.CancelFunc
	done   sync.WaitGroup
	given  *courier.Journal // used by Deliver only

	// order is held from a look at what the thread does until that is reported. It is taken
	// before mu, and not by what the supervisor's loop calls.
	order sync.Mutex

	mu     sync.Mutex
	conn   *rpc
	thread string
	joined bool   // subscribed to thread
	turn   string // under way, "" none or not known
	status threadStatus
	seen   map[string]string        // mail id -> the evidence that the thread has it
	asks   map[string]serverRequest // by id of the Ask
	tried  map[string]bool          // mail given on this connection
	mode   team.Mode                // that it is to work in
	moved  bool                     // it is said with every turn: the thread has, or had, another
	told   team.Mode                // that a turn was last begun with
	rests  int                      // how often the server has said that the thread is at rest
	heard  int                      // how often it has said what the thread does
	began  map[string]int           // rests when a turn was accepted with a mail on this connection
	// What turns have taken and the thread is not seen to have, and the turn that was broken
	// off last.
	steered   []steered
	brokenOff string
	commands  map[string]string // commands that run: item -> its turn
	limit     *team.Observation // the usage limit that ended the last turn
	broken    bool              // an error ended the last turn, and was told
	unsaid    bool              // the thread is at rest by an error that was not told yet
	reset     time.Time         // of a window that is used up
	poke      chan struct{}     // capacity 1: look at the thread again
}

type serverRequest struct {
	id     json.RawMessage
	method string
	grant  json.RawMessage // what askGrant wants
	form   bool            // of askForm: a person is to fill it in
}

type threadStatus struct {
	Type        string   `json:"type"` // notLoaded, idle, systemError, active
	ActiveFlags []string `json:"activeFlags"`
}

// atRest: no turn is under way. systemError is what an error of the model has ended.
func (s threadStatus) atRest() bool { return s.Type == "idle" || s.Type == "systemError" }

// thread is what the server tells of one.
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
	askForm    = "mcpServer/elicitation/request"    // a tool of somebody's MCP server, or a form of its
	askGrant   = "item/permissions/requestApproval" // more rights for this turn
)

// Open is the Opener of adapter.WayAppServer.
func Open(_ context.Context, f courier.Facts, _ courier.Screen, r courier.Report) (courier.Channel, error) {
	if f.Link.Socket == "" {
		return nil, team.Errorf(team.CodeInternal, "open a channel to %s: its link has no socket", f.AgentID)
	}
	given, err := courier.OpenJournal(string(f.Bundle), f.Generation)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &appServer{
		given: given,
		f:     f, report: r, cancel: cancel,
		mode: f.Mode, moved: !adapter.SameMode(f.Link, f.Link.Mode, f.Mode),
		commands: map[string]string{}, seen: map[string]string{}, asks: map[string]serverRequest{}, poke: make(chan struct{}, 1),
	}
	a.done.Go(func() { courier.KeepUp(ctx, a.session) })
	return a, nil
}

// Close is Channel's.
func (a *appServer) Close() {
	a.cancel()
	a.done.Wait()
	a.given.Close()
}

// session is one connection.
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
		err := conn.serve(ctx, a.take)
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
	for lasting := true; lasting; {
		select {
		case <-a.poke:
			a.look(ctx, conn)
		case <-ended:
			lasting = false
		case <-ctx.Done():
			lasting = false
		}
	}
	a.mu.Lock()
	a.conn, a.joined, a.turn, a.status = nil, false, "", threadStatus{}
	a.broken, a.unsaid = false, false
	for i := range a.steered { // what becomes of their turns is told to nobody
		a.steered[i].lost = true
	}
	clear(a.asks) // open ones are sent again
	clear(a.commands)
	a.mu.Unlock()
	if ctx.Err() == nil {
		a.see(team.Observation{Activity: team.ActivityUnknown, Source: "app-server connection ended"})
	}
	return true
}

func (a *appServer) connect(ctx context.Context) (*rpc, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return dialRPC(ctx, a.f.Link.Socket)
}

func (a *appServer) hello(ctx context.Context, conn *rpc) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return conn.hello(ctx, nil)
}

func (a *appServer) wake() {
	select {
	case a.poke <- struct{}{}:
	default:
	}
}

// see reports, with what every observation of this channel has.
func (a *appServer) see(o team.Observation) {
	o.Tier = team.TierChannel
	if o.At.IsZero() {
		o.At = time.Now()
	}
	a.report(o)
}

// look finds the thread, subscribes to it and reads up what was missed.
func (a *appServer) look(ctx context.Context, conn *rpc) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	a.mu.Lock()
	id, joined, unsaid := a.thread, a.joined, a.unsaid
	a.mu.Unlock()
	if id == "" {
		t, err := a.find(ctx, conn)
		if err != nil || t.ID == "" {
			return // thread/started will tell
		}
		a.adopt(t)
		id = t.ID
	}
	if !joined {
		heard := a.hearings()
		out, err := a.resume(ctx, conn, id)
		no := (*rpcError)(nil)
		// What is left unsaid by now has a turn, which can be asked for any moment.
		for tries := 0; unsaid && tries < wordsTries && errors.As(err, &no) && courier.Pause(ctx, wordsPoll); tries++ {
			heard = a.hearings()
			out, err = a.resume(ctx, conn, id)
		}
		if errors.As(err, &no) {
			// It has no turn yet: its first one will wake us.
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
		// What was told meanwhile, to everybody, may be newer than the answer.
		if status := a.unlessHeard(heard, out.Status); status.Type != "active" {
			a.lastTurn(ctx, conn, id)
			// The status comes before the words.
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
	if owes {
		a.giveAgain(ctx, conn, id)
	}
	a.prompt(ctx, conn)
}

// resume subscribes to a thread and returns it. One without a turn is refused.
func (a *appServer) resume(ctx context.Context, conn *rpc, id string) (thread, error) {
	var out struct{ Thread thread }
	err := conn.call(ctx, "thread/resume", map[string]any{"threadId": id, "excludeTurns": true}, &out)
	return out.Thread, err
}

// find is the agent's thread among those that are loaded: the one that the link
// names, else the newest that a person or the launch began in its directory. The
// server makes threads of its own beside it, for titles.
func (a *appServer) find(ctx context.Context, conn *rpc) (thread, error) {
	var loaded struct{ Data []string }
	if err := conn.call(ctx, "thread/loaded/list", struct{}{}, &loaded); err != nil {
		return thread{}, err
	}
	var best thread
	for _, id := range loaded.Data {
		var out struct{ Thread thread }
		if err := conn.call(ctx, "thread/read", map[string]string{"threadId": id}, &out); err != nil {
			continue // gone meanwhile
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

// adopt takes a thread as the agent's conversation.
func (a *appServer) adopt(t thread) {
	a.order.Lock()
	defer a.order.Unlock()
	a.mu.Lock()
	fresh := a.thread != t.ID
	if fresh {
		a.thread, a.joined, a.turn = t.ID, false, ""
		clear(a.asks)
	}
	a.mu.Unlock()
	if fresh {
		a.see(team.Observation{Ready: true, Conversation: t.ID, Source: "thread loaded"})
		a.shows(t.Status)
	}
}

// read takes the receipts that the thread itself holds.
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

// promptID names the first message of a generation among the messages of a thread.
func (a *appServer) promptID() string { return "prompt-" + a.f.Generation }

// prompt gives the first message, where it is the channel's to give.
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
	if err := a.start(ctx, conn, id, a.promptID(), a.f.Link.Prompt); err != nil {
		a.f.Log.Warn("prompt not given", "member", a.f.Name, "err", err)
	}
}

// start gives one text to a thread.
func (a *appServer) start(ctx context.Context, conn *rpc, thread, id, text string) error {
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

// Deliver is Channel's.
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

// Settles is true: the thread tells what it has.
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
		return o // given on this connection; its receipt is on the way
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
	err = a.start(ctx, conn, id, m.ID, m.Text)
	if no := (*rpcError)(nil); errors.As(err, &no) {
		a.mu.Lock()
		delete(a.tried, m.ID)
		a.mu.Unlock()
		o.State, o.Reason = team.Held, no.Error()
	} else if err != nil {
		o.Reason = err.Error() // it may have it
	}
	return o
}

// ambiguous says why it cannot be shown yet whether the thread has what was handed
// over earlier: a busy one may hold it back until its next tool boundary. The answer
// that a turn has begun may overtake the word that the thread is busy, so an idle that
// was told before the answer says nothing of that turn.
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
		return "" // no turn, so no message
	}
	if err != nil {
		return fmt.Sprintf("the thread cannot be read: %v", err)
	}
	return ""
}

// Interrupt is Channel's.
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
			return nil // nothing is under way
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

// SetMode is Channel's: the mode goes with each turn from the next one on, also where it
// is the one of the start again.
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

// Answer is Channel's.
func (a *appServer) Answer(ctx context.Context, r team.Reply) error {
	a.mu.Lock()
	conn := a.conn
	req, ok := a.asks[r.ID]
	a.mu.Unlock()
	if conn == nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its app-server is not reached", a.f.AgentID)
	}
	if !ok {
		return team.Errorf(team.CodeNotFound, "answer %s: nobody waits for %s any more", a.f.AgentID, r.ID)
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
			action = "accept" // once: nothing is said of keeping it
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
	if !r.Allow && r.Feedback != "" { // the protocol has no place for words
		a.mu.Lock()
		id := a.thread
		a.mu.Unlock()
		if err := a.start(ctx, conn, id, "reply-"+r.ID, r.Feedback); err != nil {
			return fmt.Errorf("answer %s: say why: %w", a.f.AgentID, err)
		}
	}
	return nil
}
