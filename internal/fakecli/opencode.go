package fakecli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// OpenCode is the HTTP server of an opencode TUI: it has the behaviour seen in 1.18 on the paths
// implemented here. A post is answered before its message is in the session, and a message that is
// posted twice, with the same ids, is in it once. The model gets it at the next tool boundary. A
// message that arrives while a turn is aborted or fails stays in the session until a later turn
// takes it: the session is reported idle before that turn is over, and again when it is. Posting
// an existing message without parts begins a turn. All other paths answer with a page.
type OpenCode struct {
	Engine *Engine
	// Beat is the interval of the heartbeats of a stream. Set it before the first client.
	Beat time.Duration

	secret  string
	session string // id of a new session
	mux     *http.ServeMux
	srv     *http.Server
	done    sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc

	mu       sync.Mutex
	sessions []obj
	messages []obj
	streams  map[chan []byte]func()
	open     map[string]*approval // by request id
	asked    map[string]obj
	last     int
	agents   []string // of the prompts
	newest   string   // user message that the model was last asked with
	retry    obj      // status while it waits for a retry
	ending   bool     // its turn was broken and is not over
	stores   func(id string) (keep bool)

	posts  chan obj // in the order in which they are stored
	keep   func()   // called when the session has another message
	dialog func(ctx context.Context, command string) bool
}

// endTakes is how long a broken turn continues.
const endTakes = 200 * time.Millisecond

// StartOpenCode serves on a loopback address until Close.
func StartOpenCode(addr, secret string, e *Engine, approve bool) (*OpenCode, error) {
	s := newOpenCode(secret, e, approve)
	if err := s.serve(addr); err != nil {
		return nil, err
	}
	return s, nil
}

// newOpenCode wires a server to its engine; it does not serve yet.
func newOpenCode(secret string, e *Engine, approve bool) *OpenCode {
	ctx, stop := context.WithCancel(context.Background())
	s := &OpenCode{Engine: e, Beat: 10 * time.Second, secret: secret, session: "ses_1", ctx: ctx, stop: stop, streams: map[chan []byte]func(){}, open: map[string]*approval{}, asked: map[string]obj{}, posts: make(chan obj, 1000)}
	e.Seen = func(t Text) {
		s.mu.Lock()
		s.newest = max(s.newest, t.ID)
		s.mu.Unlock()
	}
	e.Answering = func() {
		s.mu.Lock()
		s.last++
		m := obj{"id": s.mint(), "role": "assistant", "parentID": s.newest, "sessionID": s.sessionID()}
		s.messages = append(s.messages, m)
		s.mu.Unlock()
		s.tell("message.updated", obj{"info": m})
	}
	e.Failed = s.failed
	e.Broken = s.broken
	e.Compacted = s.compacted
	var total Used
	e.Wrote = func(role string, _ any, used Used) { // one turn at a time
		if role != "assistant" {
			return
		}
		total.Input += used.Input
		total.Output += used.Output
		s.tell("session.updated", obj{"info": obj{"cost": 0, "tokens": obj{
			"input": total.Input, "output": total.Output, "reasoning": 0, "cache": obj{"read": 0, "write": 0},
		}}})
	}
	e.Active = func(turn string) {
		st := "idle"
		if turn != "" {
			st = "busy"
		}
		s.tell("session.status", obj{"status": obj{"type": st}})
	}
	if approve {
		e.Allow = s.allow
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /session", func(w http.ResponseWriter, _ *http.Request) { s.write(w, s.sessions) })
	mux.HandleFunc("POST /session", s.create)
	mux.HandleFunc("POST /tui/select-session", func(w http.ResponseWriter, _ *http.Request) { s.write(w, true) })
	mux.HandleFunc("GET /session/status", s.status)
	mux.HandleFunc("GET /session/{id}/message", s.list)
	mux.HandleFunc("POST /session/{id}/prompt_async", s.prompt)
	mux.HandleFunc("POST /session/{id}/abort", func(w http.ResponseWriter, _ *http.Request) {
		if s.Engine.Turn() != "" {
			s.tell("session.error", obj{"error": obj{"name": "MessageAbortedError", "data": obj{"message": "Aborted"}}})
		}
		s.write(w, s.Engine.Interrupt())
	})
	mux.HandleFunc("GET /permission", s.permissions)
	mux.HandleFunc("GET /question", func(w http.ResponseWriter, _ *http.Request) { s.write(w, []obj{}) })
	mux.HandleFunc("POST /permission/{id}/reply", s.reply)
	mux.HandleFunc("GET /event", s.events)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html>")
	})
	s.mux = mux
	return s
}

func (s *OpenCode) serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		s.stop()
		return fmt.Errorf("serve a fake opencode: %w", err)
	}
	s.srv = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "opencode" || pass != s.secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.mux.ServeHTTP(w, r)
	})}
	s.done.Go(func() {
		if err := s.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			l.Close()
		}
	})
	s.done.Go(func() { s.Engine.Run(s.ctx) })
	s.done.Go(func() {
		for {
			select {
			case m := <-s.posts:
				s.store(m)
			case <-s.ctx.Done():
				return
			}
		}
	})
	return nil
}

// Close ends the server and its session.
func (s *OpenCode) Close() {
	s.stop()
	s.Drop()
	s.srv.Close()
	s.done.Wait()
}

// Agents returns the agents named by the prompts, in order; "" for a prompt without one.
func (s *OpenCode) Agents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.agents)
}

// Drop ends every stream of events.
func (s *OpenCode) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range s.streams {
		end()
	}
}

func (s *OpenCode) write(w http.ResponseWriter, v any) {
	s.mu.Lock()
	b, err := json.Marshal(v)
	s.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}

// mint returns an ascending id, like opencode's; mu is held.
func (s *OpenCode) mint() string {
	return fmt.Sprintf("msg_%012x%014d", uint64(time.Now().UnixMilli())*0x1000&0xffffffffffff+1, s.last)
}

// sessionID is the only session's; mu is held.
func (s *OpenCode) sessionID() string {
	if len(s.sessions) == 0 {
		return ""
	}
	return s.sessions[0]["id"].(string)
}

func (s *OpenCode) create(w http.ResponseWriter, r *http.Request) {
	var in struct{ Title string }
	if json.NewDecoder(r.Body).Decode(&in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	o := obj{"id": s.session, "title": in.Title}
	s.mu.Lock()
	s.sessions = append(s.sessions, o)
	s.mu.Unlock()
	s.write(w, o)
}

func (s *OpenCode) status(w http.ResponseWriter, _ *http.Request) {
	st := obj{}
	turn := s.Engine.Turn()
	s.mu.Lock()
	if turn != "" && !s.ending {
		st[s.session] = obj{"type": "busy"}
	}
	if s.retry != nil {
		st[s.session] = s.retry
	}
	s.mu.Unlock()
	s.write(w, st)
}

// list answers with all messages, or with the newest ones before a message, and names the page before.
func (s *OpenCode) list(w http.ResponseWriter, r *http.Request) {
	out := []obj{}
	s.mu.Lock()
	for _, m := range s.messages {
		parts := []obj{}
		if text, ok := m["text"]; ok {
			parts = append(parts, obj{"type": "text", "text": text, "id": m["part"]})
		}
		if m["compaction"] == true {
			parts = append(parts, obj{"type": "compaction", "auto": true})
		}
		out = append(out, obj{"info": m, "parts": parts})
	}
	s.mu.Unlock()
	if before, err := strconv.Atoi(r.FormValue("before")); err == nil && before < len(out) {
		out = out[:before]
	}
	if limit, err := strconv.Atoi(r.FormValue("limit")); err == nil && limit < len(out) {
		w.Header().Set("X-Next-Cursor", strconv.Itoa(len(out)-limit))
		out = out[len(out)-limit:]
	}
	s.write(w, out)
}

// Stores sets a function that is called before a posted message enters the session; it may block,
// and return that the message never enters.
func (s *OpenCode) Stores(f func(id string) (keep bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores = f
}

func (s *OpenCode) prompt(w http.ResponseWriter, r *http.Request) {
	var in struct {
		MessageID, Agent string
		Parts            []struct{ ID, Text string }
	}
	if json.NewDecoder(r.Body).Decode(&in) != nil || !strings.HasPrefix(in.MessageID, "msg") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	known := s.has(in.MessageID)
	if len(in.Parts) > 0 {
		s.agents = append(s.agents, in.Agent)
	}
	s.mu.Unlock()
	switch {
	case known && len(in.Parts) == 0:
		s.Engine.Begin()
		w.WriteHeader(http.StatusNoContent)
		return
	case len(in.Parts) == 0: // would be a turn about an empty message
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
	w.(http.Flusher).Flush()
	s.posts <- obj{"id": in.MessageID, "role": "user", "sessionID": r.PathValue("id"), "text": in.Parts[0].Text, "part": in.Parts[0].ID}
}

// has reports whether the session has a message; mu is held.
func (s *OpenCode) has(id string) bool {
	return slices.ContainsFunc(s.messages, func(m obj) bool { return m["id"] == id })
}

// store puts a message into the session.
func (s *OpenCode) store(m obj) {
	id, text := m["id"].(string), m["text"].(string)
	s.mu.Lock()
	stores := s.stores
	s.mu.Unlock()
	if stores != nil && !stores(id) {
		return
	}
	s.mu.Lock()
	known := s.has(id)
	if !known {
		s.messages = append(s.messages, m)
	}
	s.mu.Unlock()
	if s.keep != nil {
		s.keep()
	}
	s.tell("message.updated", obj{"info": obj{"id": id, "role": "user", "sessionID": m["sessionID"]}})
	s.tell("message.part.updated", obj{"part": obj{"id": m["part"], "messageID": id, "type": "text", "text": text}})
	if known {
		s.Engine.Begin()
		return
	}
	s.Engine.Send(Text{ID: id, Text: text}, true)
}

func (s *OpenCode) permissions(w http.ResponseWriter, _ *http.Request) {
	out := []obj{}
	s.mu.Lock()
	for _, a := range s.asked {
		out = append(out, a)
	}
	s.mu.Unlock()
	s.write(w, out)
}

// allow asks, over HTTP and by the dialog of its terminal if there is one, and waits for
// the first answer; the session stays busy.
func (s *OpenCode) allow(ctx context.Context, call, tool string, input json.RawMessage) bool {
	s.mu.Lock()
	id := "per_" + rand.Text() // no other, of an earlier process either
	a := &approval{answer: make(chan bool, 1)}
	ask := obj{"id": id, "sessionID": s.sessionID(), "permission": strings.ToLower(tool), "patterns": []string{commandOf(input)}, "metadata": obj{}, "tool": obj{"messageID": "msg_1", "callID": call}}
	s.open[id], s.asked[id] = a, ask
	s.mu.Unlock()
	s.tell("permission.asked", ask)
	asking, end := context.WithCancel(ctx)
	var shown sync.WaitGroup
	if s.dialog != nil {
		shown.Go(func() {
			ok := s.dialog(asking, commandOf(input))
			if asking.Err() == nil {
				a.give(ok)
			}
		})
	}
	ok := false
	select {
	case ok = <-a.answer:
	case <-ctx.Done():
	}
	end()
	shown.Wait()
	s.mu.Lock()
	delete(s.open, id)
	delete(s.asked, id)
	s.mu.Unlock()
	s.tell("permission.replied", obj{"requestID": id})
	return ok
}

func (s *OpenCode) reply(w http.ResponseWriter, r *http.Request) {
	var in struct{ Reply string }
	err := json.NewDecoder(r.Body).Decode(&in)
	s.mu.Lock()
	a := s.open[r.PathValue("id")]
	s.mu.Unlock()
	if err != nil || a == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	a.give(in.Reply != "reject")
	s.write(w, true)
}

// compacted leaves the session with a summary of all that was in it, which the model goes
// on with.
func (s *OpenCode) compacted(context.Context) {
	s.mu.Lock()
	var ids [3]string
	for i := range ids {
		s.last++
		ids[i] = s.mint()
	}
	s.messages = append(s.messages,
		obj{"id": ids[0], "role": "user", "sessionID": s.sessionID(), "compaction": true},
		obj{"id": ids[1], "role": "assistant", "sessionID": s.sessionID(), "parentID": ids[0], "mode": "compaction", "summary": true, "finish": "stop"},
		obj{"id": ids[2], "role": "user", "sessionID": s.sessionID(), "text": "Continue if you have next steps"},
	)
	s.newest = ids[2]
	added := s.messages[len(s.messages)-3:]
	s.mu.Unlock()
	for _, m := range added {
		s.tell("message.updated", obj{"info": m})
	}
	s.tell("session.compacted", nil)
}

// broken is the rest of a turn that was interrupted or has failed.
func (s *OpenCode) broken(ctx context.Context) {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.tell("session.status", obj{"status": obj{"type": "idle"}})
	t := time.NewTimer(endTakes)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.ending = false
	s.mu.Unlock()
}

// failed waits to try again where a limit is reached, for two hours or as long as the
// words say by "within 5s", and shows that it waits. Another error ends the turn.
func (s *OpenCode) failed(ctx context.Context, words string) bool {
	if !strings.Contains(words, "limit") {
		e := obj{"name": "APIError", "data": obj{"message": words, "isRetryable": false}}
		s.mu.Lock()
		for i, was := range slices.Backward(s.messages) { // the answer that was begun
			if was["role"] != "assistant" {
				continue
			}
			m := maps.Clone(was)
			m["error"], m["time"] = e, obj{"created": time.Now().UnixMilli(), "completed": time.Now().UnixMilli()}
			s.messages[i] = m
			break
		}
		s.mu.Unlock()
		s.tell("session.error", obj{"error": e})
		return false
	}
	wait := 2 * time.Hour
	if _, span, ok := strings.Cut(words, " within "); ok {
		if d, err := time.ParseDuration(span); err == nil {
			wait = d
		}
	}
	st := obj{"type": "retry", "attempt": 1, "message": words, "next": time.Now().Add(wait).UnixMilli()}
	keep := func(st obj) {
		s.mu.Lock()
		s.retry = st
		s.mu.Unlock()
	}
	keep(st)
	defer keep(nil)
	s.tell("session.status", obj{"status": st})
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tell sends an event of the session to every stream.
func (s *OpenCode) tell(typ string, p obj) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := obj{"sessionID": s.sessionID()}
	for k, v := range p {
		all[k] = v
	}
	b, err := json.Marshal(obj{"type": typ, "properties": all})
	if err != nil {
		return
	}
	for c, end := range s.streams {
		select {
		case c <- b:
		default:
			end() // too slow: it connects again
		}
	}
}

func (s *OpenCode) events(w http.ResponseWriter, r *http.Request) {
	s.done.Add(1)
	defer s.done.Done()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	c := make(chan []byte, 1000)
	s.mu.Lock()
	s.streams[c] = end
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.streams, c)
		s.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	line := []byte(`{"type":"server.connected","properties":{}}`)
	beat := time.NewTicker(s.Beat)
	defer beat.Stop()
	for {
		fmt.Fprintf(w, "data: %s\n\n", line)
		w.(http.Flusher).Flush()
		select {
		case line = <-c:
		case <-beat.C:
			line = []byte(`{"type":"server.heartbeat","properties":{}}`)
		case <-ctx.Done():
			return
		}
	}
}
