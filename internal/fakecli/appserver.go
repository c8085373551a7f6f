package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

// AppServer is a codex app-server with one thread, as created by its TUI: it has exactly the
// behaviour seen in 0.169 over a unix socket.
//
// A thread without a turn cannot be resumed. Status changes go to every client, everything else to
// clients that have resumed the thread. A turn/start on a busy thread steers it. An open approval
// request is sent to each client that resumes, and the first answer settles it for all.
type AppServer struct {
	Engine *Engine
	// Thread is its id; "" until a client begins or resumes one.
	Thread string
	Cwd    string
	// Approve makes every tool call ask.
	Approve bool
	// Begins is called when a thread begins; it may be nil.
	Begins func() error

	srv  *http.Server
	done sync.WaitGroup
	ctx  context.Context
	stop context.CancelFunc

	policy  atomic.Value // string: what the last turn was begun with
	content atomic.Value // string: what the last form was filled in with

	mu      sync.Mutex
	clients map[*client]bool
	items   []obj
	coming  []obj // items that are stored with the texts that they name, and then told
	started bool  // it has had a turn
	flags   []string
	open    *approval
	last    int
	shells  map[string]shell // commands that run, by item
	used    Used
	// The error that ended the last turn, and when.
	broken   obj
	brokenAt time.Time
}

type client struct {
	ws     *websocket.Conn
	joined bool
}

type approval struct {
	id     int
	method string
	params obj
	answer chan bool
}

// give answers unless it is answered already.
func (a *approval) give(ok bool) {
	select {
	case a.answer <- ok:
	default:
	}
}

type obj = map[string]any

// StartAppServer serves on the socket until Close.
func StartAppServer(socket string, e *Engine, thread, cwd string, approve bool) (*AppServer, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve a fake app-server: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &AppServer{Engine: e, Thread: thread, Cwd: cwd, Approve: approve, clients: map[*client]bool{}, shells: map[string]shell{}, ctx: ctx, stop: stop}
	e.Takes = s.takes
	e.Seen = s.seen
	e.Active = s.active
	e.Said = func(text string) { s.item("agentMessage", obj{"text": text}) }
	e.Wrote = s.wrote
	e.Failed = s.failed
	e.Runs = s.runs
	e.Drops = true // what was steered into an interrupted turn and not come to
	e.Ended = func(turn string, err error) {
		if errors.Is(err, context.Canceled) {
			s.tell(false, "turn/completed", obj{"threadId": s.thread(), "turn": obj{"id": turn, "status": "interrupted"}})
		}
	}
	e.Keeps = func(talk []message) (users []message) { // it keeps what users have said
		for _, m := range talk {
			if m.Role == "user" {
				users = append(users, m)
			}
		}
		return users
	}
	if approve {
		e.Allow = s.allow
	}
	s.srv = &http.Server{Handler: http.HandlerFunc(s.accept), ReadHeaderTimeout: 10 * time.Second}
	s.done.Go(func() {
		if err := s.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			l.Close()
		}
	})
	s.done.Go(func() { e.Run(ctx) })
	return s, nil
}

// Close ends the server and its thread.
func (s *AppServer) Close() {
	s.stop()
	s.Drop()
	s.srv.Close()
	s.done.Wait()
}

// Policy returns the policy of the last turn, as JSON.
func (s *AppServer) Policy() string {
	last, _ := s.policy.Load().(string)
	return last
}

// Commands are the command lines that run, sorted.
func (s *AppServer) Commands() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.shells {
		lines = append(lines, c.line)
	}
	slices.Sort(lines)
	return lines
}

// Content returns the fields of the last completed form, as JSON; "" for none.
func (s *AppServer) Content() string {
	last, _ := s.content.Load().(string)
	return last
}

// Drop ends every connection, as a restart of the network would.
func (s *AppServer) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		_ = c.ws.CloseNow()
	}
}

func (s *AppServer) accept(w http.ResponseWriter, r *http.Request) {
	s.done.Add(1)
	defer s.done.Done()
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ws.SetReadLimit(-1) // the program takes messages of any size
	c := &client{ws: ws}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.clients, c)
		s.mu.Unlock()
		_ = ws.CloseNow()
	}()
	for {
		_, b, err := ws.Read(s.ctx)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
			Result struct {
				Decision, Action string
				Permissions      map[string]any
				Content          json.RawMessage
			}
		}
		if json.Unmarshal(b, &m) != nil {
			return
		}
		if m.Method == "" {
			s.content.Store(string(m.Result.Content))
			s.settle(string(m.ID), m.Result.Decision == "accept" || m.Result.Action == "accept" || len(m.Result.Permissions) > 0)
			continue
		}
		result, no := s.call(c, m.Method, m.Params)
		if m.ID == nil {
			continue
		}
		if no != "" {
			s.send(c, obj{"id": m.ID, "error": obj{"code": -32600, "message": no}})
			continue
		}
		s.send(c, obj{"id": m.ID, "result": result})
		if m.Method == "thread/resume" {
			s.send(c, obj{"method": tokenUsage, "params": s.usage()}) // a client that resumes gets the usage so far
			s.mu.Lock()
			open := s.open
			s.mu.Unlock()
			if open != nil {
				s.send(c, obj{"method": open.method, "id": open.id, "params": open.params})
			}
		}
	}
}

func (s *AppServer) send(c *client, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_ = c.ws.Write(s.ctx, websocket.MessageText, b)
	}
}

// tell sends a notification, to subscribers only or to all.
func (s *AppServer) tell(all bool, method string, params obj, id ...int) {
	s.mu.Lock()
	var to []*client
	for c := range s.clients {
		if all || c.joined {
			to = append(to, c)
		}
	}
	s.mu.Unlock()
	m := obj{"method": method, "params": params}
	if len(id) > 0 {
		m["id"] = id[0]
	}
	for _, c := range to {
		s.send(c, m)
	}
}

func (s *AppServer) thread() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Thread
}

// begin creates a thread with the id, or resumes the stored one.
func (s *AppServer) begin(id string, resume bool) error {
	s.mu.Lock()
	begins := s.Begins
	s.mu.Unlock()
	if begins != nil {
		if err := begins(); err != nil {
			return err
		}
	}
	file, err := homeFile(".codex", "sessions", id+".json")
	if err != nil {
		return err
	}
	k := kept{}
	if resume {
		if k, err = readKept(file); err != nil {
			return err
		}
		if err := s.Engine.Load(k.Talk); err != nil {
			return err
		}
	}
	s.Engine.Keep = func(talk json.RawMessage) {
		s.mu.Lock()
		k := kept{Talk: talk, Items: slices.Concat(s.coming, s.items)}
		s.mu.Unlock()
		writeKept(file, k)
	}
	s.Engine.Compact = compactFile("codex")
	s.mu.Lock()
	s.Thread, s.items, s.started = id, k.Items, resume
	s.last = len(k.Items)
	s.mu.Unlock()
	s.tell(true, "thread/started", obj{"thread": s.info()})
	return nil
}

func (s *AppServer) info() obj {
	return obj{"id": s.thread(), "ephemeral": false, "threadSource": "user", "cwd": s.Cwd, "createdAt": 1, "status": s.status()}
}

func (s *AppServer) status() obj {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
		return obj{"type": "systemError"}
	case s.Engine.Turn() == "":
		return obj{"type": "idle"}
	}
	return obj{"type": "active", "activeFlags": append([]string{}, s.flags...)}
}

func (s *AppServer) call(c *client, method string, params json.RawMessage) (result any, no string) {
	var p struct {
		ThreadID            string
		TurnID              string
		ClientUserMessageID string
		Input               []struct{ Text string }
		ProcessID           string
		ApprovalPolicy      string
		SandboxPolicy       obj
	}
	if json.Unmarshal(params, &p) != nil && method != "initialized" {
		return nil, "bad params"
	}
	switch method {
	case "initialize":
		home, err := homeFile(".codex", "x")
		if err != nil {
			return nil, err.Error()
		}
		return obj{"userAgent": "codex-tui/0.169.0 (fake)", "codexHome": filepath.Dir(home)}, ""
	case "config/read":
		levels, err := codexTrust(nil)
		if err != nil {
			return nil, err.Error()
		}
		projects := obj{}
		for dir, level := range levels {
			projects[dir] = obj{"trust_level": level}
		}
		return obj{"config": obj{"projects": projects}}, ""
	case "initialized":
		return nil, ""
	case "thread/loaded/list":
		loaded := []string{"title-of-it"}
		if id := s.thread(); id != "" {
			loaded = append(loaded, id)
		}
		return obj{"data": loaded}, ""
	case "thread/start":
		if err := s.begin(fmt.Sprintf("thread-%d-%d", time.Now().UnixMilli(), os.Getpid()), false); err != nil {
			return nil, err.Error()
		}
		return obj{"thread": s.info()}, ""
	case "thread/resume":
		if s.thread() == "" {
			if err := s.begin(p.ThreadID, true); err != nil {
				return nil, "no rollout found for thread id " + p.ThreadID
			}
		}
	}
	if p.ThreadID != s.thread() {
		if method == "thread/read" {
			return obj{"thread": obj{"id": p.ThreadID, "ephemeral": true, "threadSource": "thread_title", "cwd": s.Cwd, "status": obj{"type": "idle"}}}, ""
		}
		return nil, "thread not found: " + p.ThreadID
	}
	s.mu.Lock()
	started := s.started
	s.mu.Unlock()
	switch method {
	case "thread/read":
		return obj{"thread": s.info()}, ""
	case "thread/resume":
		if !started {
			return nil, "no rollout found for thread id " + s.thread()
		}
		s.mu.Lock()
		c.joined = true
		s.mu.Unlock()
		return obj{"thread": s.info()}, ""
	case "thread/items/list":
		if !started {
			return nil, "no rollout found for thread id " + s.thread()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return obj{"data": append([]obj{}, s.items...), "nextCursor": nil}, ""
	case "thread/turns/list":
		status := "completed"
		if s.Engine.Turn() != "" {
			status = "inProgress"
		}
		turn := obj{"id": s.Engine.Turn(), "status": status}
		s.mu.Lock()
		if s.broken != nil && status == "completed" {
			turn["status"], turn["error"], turn["completedAt"] = "failed", s.broken, s.brokenAt.Unix()
		}
		s.mu.Unlock()
		return obj{"data": []any{turn}}, ""
	case "turn/start":
		var text string
		for _, i := range p.Input {
			text += i.Text
		}
		// No lock here: a text that is late after a lost connection would be given again.
		if b, err := json.Marshal(obj{"approval": p.ApprovalPolicy, "sandbox": p.SandboxPolicy}); err == nil {
			s.policy.Store(string(b))
		}
		turn := s.Engine.Send(Text{ID: p.ClientUserMessageID, Text: text}, true)
		return obj{"turn": obj{"id": turn, "status": "inProgress"}}, ""
	case "thread/backgroundTerminals/list":
		list := []obj{}
		s.mu.Lock()
		for item, c := range s.shells {
			list = append(list, obj{"itemId": item, "processId": strconv.Itoa(c.pid), "command": c.line, "cwd": s.Cwd})
		}
		s.mu.Unlock()
		return obj{"data": list, "nextCursor": nil}, ""
	case "thread/backgroundTerminals/terminate":
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.shells {
			if strconv.Itoa(c.pid) == p.ProcessID {
				return obj{"terminated": syscall.Kill(-c.pid, syscall.SIGKILL) == nil}, ""
			}
		}
		return obj{"terminated": false}, ""
	case "turn/interrupt":
		if p.TurnID != s.Engine.Turn() || !s.Engine.Interrupt() {
			return nil, "no active turn to interrupt"
		}
		return obj{}, ""
	}
	return nil, "unknown method " + method
}

// shell is a command of a turn.
type shell struct {
	line string
	pid  int // of its group
}

// runs reports a command of a turn, which an interrupt leaves running and Close ends.
func (s *AppServer) runs(line string, pid int) (ended func()) {
	s.mu.Lock()
	s.last++
	i := obj{"type": "commandExecution", "id": fmt.Sprintf("item-%d", s.last), "command": line}
	id := i["id"].(string)
	s.shells[id] = shell{line, pid}
	s.mu.Unlock()
	turn := s.Engine.Turn()
	s.tell(false, "item/started", obj{"threadId": s.thread(), "turnId": turn, "item": i})
	s.done.Add(1)
	stop := context.AfterFunc(s.ctx, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	return func() {
		defer s.done.Done()
		stop()
		s.mu.Lock()
		delete(s.shells, id)
		s.mu.Unlock()
		s.tell(false, "item/completed", obj{"threadId": s.thread(), "turnId": turn, "item": i})
	}
}

func (s *AppServer) item(typ string, more obj) {
	s.mu.Lock()
	i := s.newItem(typ, more)
	s.items = slices.Insert(s.items, 0, i)
	s.mu.Unlock()
	s.tellItem(i)
}

// newItem is a new item, which stands first in the list; mu is held.
func (s *AppServer) newItem(typ string, more obj) obj {
	s.last++
	i := obj{"type": typ, "id": fmt.Sprintf("item-%d", s.last)}
	maps.Copy(i, more)
	return obj{"turnId": "t", "item": i}
}

func (s *AppServer) tellItem(i obj) {
	s.tell(false, "item/started", obj{"threadId": s.thread(), "item": i["item"]})
	s.tell(false, "item/completed", obj{"threadId": s.thread(), "item": i["item"]})
}

// failed reports an error that ends the turn, after the resulting status: a text that ends in
// "within 5s" names the time until a window of the account begins again.
func (s *AppServer) failed(_ context.Context, words string) bool {
	info := "other"
	if strings.Contains(words, "usage limit") {
		info = "usageLimitExceeded"
	}
	if _, span, ok := strings.Cut(words, " within "); ok {
		if d, err := time.ParseDuration(span); err == nil {
			s.tell(true, "account/rateLimits/updated", obj{"rateLimits": obj{"primary": obj{"usedPercent": 100, "resetsAt": time.Now().Add(d).Unix()}}})
		}
	}
	e := obj{"message": words, "codexErrorInfo": info}
	s.mu.Lock()
	s.broken, s.brokenAt = e, time.Now()
	s.mu.Unlock()
	s.tell(true, "thread/status/changed", obj{"threadId": s.thread(), "status": obj{"type": "systemError"}})
	s.tell(false, "error", obj{"threadId": s.thread(), "turnId": "t", "willRetry": false, "error": e})
	s.item("agentMessage", obj{"text": words})
	s.tell(false, "turn/completed", obj{"threadId": s.thread(), "turn": obj{"id": s.Engine.Turn(), "status": "failed", "error": e}})
	return false
}

// wrote reports the usage of the thread so far.
func (s *AppServer) wrote(role string, _ any, used Used) {
	if role != "assistant" {
		return
	}
	s.mu.Lock()
	s.used.Input += used.Input
	s.used.Output += used.Output
	s.mu.Unlock()
	s.tell(false, tokenUsage, s.usage())
}

const tokenUsage = "thread/tokenUsage/updated"

func (s *AppServer) usage() obj {
	s.mu.Lock()
	total := s.used
	s.mu.Unlock()
	return obj{"threadId": s.thread(), "turnId": "t", "tokenUsage": obj{"total": obj{
		"inputTokens": total.Input, "cachedInputTokens": 0, "outputTokens": total.Output, "totalTokens": total.Input + total.Output,
	}}}
}

// takes makes the items of texts that are about to be stored: a thread has both or neither,
// whenever its server is killed.
func (s *AppServer) takes(in []Text) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range in {
		s.coming = slices.Insert(s.coming, 0, s.newItem("userMessage", obj{"clientId": t.ID}))
	}
}

// seen reports the item of a text that is stored, the first that was taken.
func (s *AppServer) seen(Text) {
	s.mu.Lock()
	last := len(s.coming) - 1
	i := s.coming[last]
	s.coming = s.coming[:last]
	s.items = slices.Insert(s.items, 0, i)
	s.mu.Unlock()
	s.tellItem(i)
}

func (s *AppServer) active(turn string) {
	s.mu.Lock()
	s.started = true
	if turn != "" {
		s.broken = nil
	}
	s.mu.Unlock()
	if is := s.status(); is["type"] != "systemError" { // that was reported with the error
		status := obj{"type": "idle"}
		if turn != "" {
			status = obj{"type": "active", "activeFlags": []string{}}
		}
		s.tell(true, "thread/status/changed", obj{"threadId": s.thread(), "status": status})
	}
	if turn != "" {
		s.tell(false, "turn/started", obj{"threadId": s.thread(), "turn": obj{"id": turn}})
	}
}

// allow asks every subscriber and waits for the first answer.
func (s *AppServer) allow(ctx context.Context, call, tool string, input json.RawMessage) bool {
	thread := s.thread()
	s.mu.Lock()
	s.last++
	a := &approval{id: s.last, answer: make(chan bool, 1), method: "item/commandExecution/requestApproval", params: obj{
		"threadId": thread, "turnId": "t", "itemId": call, "command": "/bin/bash -lc '" + commandOf(input) + "'", "reason": "need it",
	}}
	if server, name, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__"); ok {
		a.method, a.params = "mcpServer/elicitation/request", obj{
			"threadId": thread, "turnId": "t", "serverName": server, "mode": "form", "requestedSchema": obj{"type": "object", "properties": obj{}},
			"message": fmt.Sprintf("Allow the %s MCP server to run tool %q?", server, name), "_meta": obj{"codex_approval_kind": "mcp_tool_call"},
		}
	} else if tool == "ask_form" { // a form of an MCP server, for a person to fill in
		a.method, a.params = "mcpServer/elicitation/request", obj{
			"threadId": thread, "turnId": "t", "serverName": "other", "mode": "form", "message": "Which colour?",
			"requestedSchema": obj{"type": "object", "properties": obj{"colour": obj{"type": "string"}}, "required": []string{"colour"}},
		}
	} else if tool == "request_permissions" {
		a.method, a.params = "item/permissions/requestApproval", obj{
			"threadId": thread, "turnId": "t", "itemId": call, "cwd": s.Cwd, "startedAtMs": 1, "permissions": obj{"network": obj{"enabled": true}},
		}
	}
	s.open, s.flags = a, []string{"waitingOnApproval"}
	s.mu.Unlock()
	s.tell(true, "thread/status/changed", obj{"threadId": s.thread(), "status": s.status()})
	s.tell(false, a.method, a.params, a.id)
	ok := false
	select {
	case ok = <-a.answer:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.open, s.flags = nil, nil
	s.mu.Unlock()
	s.tell(false, "serverRequest/resolved", obj{"threadId": s.thread(), "requestId": a.id})
	s.tell(true, "thread/status/changed", obj{"threadId": s.thread(), "status": s.status()})
	return ok
}

// settle handles the answer to a request.
func (s *AppServer) settle(id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil && fmt.Sprint(s.open.id) == id {
		s.open.give(ok)
	}
}
