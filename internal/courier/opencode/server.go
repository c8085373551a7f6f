package opencode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// server is the channel to an opencode whose TUI serves HTTP on a port of its own, with a
// password.
//
// A message is a prompt_async with a message id chosen by the channel: an idle session begins a
// turn, a busy one takes the message at the next tool boundary. opencode orders messages by id, so
// an id begins with the time, as opencode's own ids do. It ends with a hash of the mail's id, so
// that the session itself shows which mail it was sent, also after a kill. The text part has an id
// chosen by the channel as well: a message that is posted twice is in the session once.
//
// The answer to prompt_async comes before the session has the message, by seconds on a busy
// machine, and may never come although the server has taken the message. The receipt is therefore
// the message as the session has it, with its text, seen in an event or by reading.
type server struct {
	f      courier.Facts
	report courier.Report
	cancel context.CancelFunc
	done   sync.WaitGroup
	client *http.Client
	late   chan struct{} // capacity 1: a request got no answer

	mu       sync.Mutex
	up       bool
	session  string
	seen     map[string]string  // hash of the mail's id -> message id
	mail     map[string]letter  // message id -> the text posted under it, until its receipt
	stored   map[string]textSum // our message id -> the text that the session has of it
	answered string             // newest message that is the parent of an answer
	given    string             // newest of our messages in the session
	tried    string             // our message for which a turn was last begun
	tries    int                // number of turns begun for it
	regiven  map[string]string  // our message taken away by a compaction -> its replacement
	doubt    bool               // there was a compaction, and its effect is not known yet
	asks     map[string]team.WaitFor
	listed   bool // the requests that were open when the connection began are in asks
	busy     bool
	stamp    string // newest id of the session
	mode     team.Mode
	next     time.Time // time of the next retry, zero for none

	patience time.Duration // bound of the wait for the stream; used only by connection
	beats    time.Duration // how long a stream with heartbeats may bring nothing
	beating  atomic.Bool   // the server sends heartbeats
	unshown  string        // a new session that the TUI does not show yet; used only by connection
}

// A server that is asked for its events during its start may never answer that request: it is
// asked again after patienceFirst, and later at longer intervals for a busy machine.
const (
	patienceFirst = 3 * time.Second
	patienceMost  = time.Minute
)

// beatsWithin is how long the stream of a server that sends heartbeats may bring nothing. 1.18.33
// sends one every 10 s.
const beatsWithin = 90 * time.Second

// Open is the courier.Opener of adapter.WayServer.
func Open(_ context.Context, f courier.Facts, _ courier.Screen, r courier.Report) (courier.Channel, error) {
	if f.Link.URL == "" {
		return nil, team.Errorf(team.CodeInternal, "open a channel to %s: its link has no address", f.AgentID)
	}
	s := newServer(f, r)
	s.start()
	return s, nil
}

func newServer(f courier.Facts, r courier.Report) *server {
	return &server{
		f: f, report: r, late: make(chan struct{}, 1), client: &http.Client{Transport: &http.Transport{}},
		patience: patienceFirst, beats: beatsWithin, mode: f.Mode,
		session: f.Link.Conversation, seen: map[string]string{}, mail: map[string]letter{}, stored: map[string]textSum{}, regiven: map[string]string{},
		asks: map[string]team.WaitFor{},
	}
}

// start begins to connect.
func (s *server) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.see(team.Observation{Activity: team.ActivityUnknown, Source: "server has not shown its session yet"}) // its screen does not count
	s.done.Go(func() { courier.KeepUp(ctx, s.connection) })
	s.done.Go(func() { s.lookLate(ctx) })
}

// Close implements courier.Channel.
func (s *server) Close() {
	s.cancel()
	s.done.Wait()
	s.client.CloseIdleConnections()
}

// statusError is an answer without success: the request had no effect.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

// request sends a request to the server. out may be nil.
func (s *server) request(ctx context.Context, method, path string, in, out any) error {
	_, err := s.fetch(ctx, method, path, in, out)
	return err
}

// fetch is request; it returns the header of the answer.
func (s *server) fetch(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	resp, err := s.open(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Header, err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return nil, fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return resp.Header, nil
}

func (s *server) open(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.f.Link.URL+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.f.Link.Secret != "" {
		req.SetBasicAuth(s.f.Link.User, s.f.Link.Secret)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, &statusError{resp.StatusCode, strings.TrimSpace(string(b))}
	}
	// The server answers unknown paths with its web page.
	if t := resp.Header.Get("Content-Type"); strings.HasPrefix(t, "text/html") {
		resp.Body.Close()
		return nil, &statusError{http.StatusNotFound, method + " " + path + " is answered with a page"}
	}
	return resp, nil
}

// connection handles one stream of events, and the requests due at its start.
func (s *server) connection(ctx context.Context) (up bool) {
	stream, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(s.patience, cancel)
	resp, err := s.open(stream, http.MethodGet, "/event", nil)
	intime := late.Stop()
	if !intime && err == nil {
		resp.Body.Close()
		err = context.Canceled
	}
	if err != nil {
		if !intime { // a refused connection, before the server listens, says nothing about how long an answer takes
			s.patience = min(2*s.patience, patienceMost)
		}
		s.f.Log.Debug("server not reached", "member", s.f.Name, "err", err)
		return false
	}
	defer resp.Body.Close()
	if err := s.begin(ctx); err != nil {
		s.f.Log.Warn("server does not answer", "member", s.f.Name, "err", err)
		return false
	}
	if id := s.unshown; id != "" {
		s.unshown = ""
		s.done.Go(func() { s.show(ctx, id) })
	}
	w := s.watchBeats(stream)
	defer w.end()
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
		if err == nil {
			w.heard(ctx, line)
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			s.take(ctx, bytes.TrimSpace(data))
		}
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	s.up = false
	s.mu.Unlock()
	if ctx.Err() == nil {
		s.see(team.Observation{Activity: team.ActivityUnknown, Source: "event stream ended"})
	}
	return true
}

func (s *server) see(o team.Observation) {
	o.Tier = team.TierChannel
	if o.At.IsZero() {
		o.At = time.Now()
	}
	s.report(o)
}

// begin finds or creates the session, reads its messages, and sends the first message.
func (s *server) begin(ctx context.Context) error {
	s.mu.Lock()
	id := s.session
	s.mu.Unlock()
	if id == "" {
		within, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		var err error
		if id, err = s.find(within); err != nil {
			return err
		}
	}
	all, err := s.read(ctx, id, "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s.mu.Lock()
	s.session, s.up, s.listed = id, true, false
	clear(s.asks)
	s.mu.Unlock()
	s.see(team.Observation{Ready: true, Conversation: id, Source: "session"})
	if len(all) > 0 {
		s.endedBy(all[len(all)-1].Info)
	}
	s.restore(ctx, all, false)
	if err := s.sync(ctx, id); err != nil {
		return err
	}
	if s.f.Link.Prompt != "" {
		if o := s.give(ctx, id, promptPrefix+s.f.Generation, s.f.Link.Prompt, false); o.State == team.Held {
			return errors.New(o.Reason)
		}
	}
	return nil
}

// find returns the session of this generation, by its title. It creates a missing session and
// shows it in the TUI.
func (s *server) find(ctx context.Context) (string, error) {
	title := s.f.AgentID + " " + s.f.Generation
	var all []struct{ ID, Title string }
	if err := s.request(ctx, http.MethodGet, "/session", nil, &all); err != nil {
		return "", err
	}
	for _, o := range all {
		if o.Title == title {
			return o.ID, nil
		}
	}
	var made struct{ ID string }
	if err := s.request(ctx, http.MethodPost, "/session", map[string]string{"title": title}, &made); err != nil {
		return "", err
	}
	s.unshown = made.ID
	return made.ID, nil
}

// messageInfo is a message of a session.
type messageInfo struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionID"`
	Role      string `json:"role"`
	ParentID  string `json:"parentID"`
	Mode      string `json:"mode"`
	Finish    string `json:"finish"`
	// Set on an answer that an error has ended.
	Error *sessionError `json:"error"`
	Time  struct{ Created, Completed int64 }
}

// sessionMessage is a message with its parts.
type sessionMessage struct {
	Info  messageInfo
	Parts []messagePart
}

type messagePart struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"text"`
	// Set on a compaction: the first message that it left unchanged.
	Tail string `json:"tail_start_id"`
}

// sync requests the current status: the stream reports only changes.
func (s *server) sync(ctx context.Context, id string) error {
	var status map[string]sessionStatus
	if err := s.request(ctx, http.MethodGet, "/session/status", nil, &status); err != nil {
		return err
	}
	s.changed(status[id], "GET /session/status")
	s.takeUp(ctx)
	var asks []permissionRequest
	if err := s.request(ctx, http.MethodGet, "/permission", nil, &asks); err != nil {
		return err
	}
	for _, a := range asks {
		s.asked(a, team.WaitPermission)
	}
	var questions []permissionRequest
	if err := s.request(ctx, http.MethodGet, "/question", nil, &questions); err != nil {
		return err
	}
	for _, a := range questions {
		s.asked(a, team.WaitQuestion)
	}
	s.mu.Lock()
	s.listed = true
	s.mu.Unlock()
	return nil
}

type sessionStatus struct {
	Type    string `json:"type"` // idle, busy or retry; absent means idle
	Message string `json:"message"`
	Next    int64  `json:"next"` // of retry: Unix milliseconds
}

func (s *server) changed(st sessionStatus, source string) {
	o := team.Observation{Source: source, Evidence: []string{st.Type}}
	var next time.Time
	switch st.Type {
	case "", "idle":
		o.Activity, o.Ready = team.Idle, true
	case "busy":
		o.Activity = team.Working
	case "retry":
		o.Activity = team.Working
		if next = time.UnixMilli(st.Next); time.Until(next) > longRetry {
			o.Activity, o.Until, o.Since = team.Limited, next, s.began(next)
		}
		o.Evidence = append(o.Evidence, st.Message)
	default:
		o.Activity = team.ActivityUnknown
	}
	s.mu.Lock()
	s.busy, s.next = o.Activity != team.Idle, next
	for _, w := range s.asks { // the session stays busy while it waits
		if s.busy {
			o.Activity, o.For = team.Waiting, w
		}
	}
	o.Conversation = s.session
	s.mu.Unlock()
	s.see(o)
}

// permissionRequest is an open permission request or question.
type permissionRequest struct {
	ID         string          `json:"id"`
	SessionID  string          `json:"sessionID"`
	Permission string          `json:"permission"`
	Patterns   []string        `json:"patterns"`
	Metadata   json.RawMessage `json:"metadata"`
	Questions  json.RawMessage `json:"questions"`
	Tool       struct {
		CallID string `json:"callID"`
	} `json:"tool"`
}

func (s *server) asked(p permissionRequest, what team.WaitFor) {
	s.mu.Lock()
	ours := p.SessionID == s.session // a sub-agent's request is left to the TUI
	if ours {
		s.asks[p.ID] = what
	}
	s.mu.Unlock()
	if !ours {
		return
	}
	ask := &team.Ask{ID: p.ID, For: what, Tool: p.Permission, ToolUseID: p.Tool.CallID,
		Description: strings.Join(p.Patterns, "\n"), Input: p.Metadata}
	switch p.Permission { // for a shell it lists each command of the line, for files the paths relative to the repository
	case "bash":
		ask.Command = ask.Description
	case "edit", "read":
		ask.Paths = p.Patterns
	}
	if what == team.WaitQuestion {
		ask.Tool, ask.Input = "question", p.Questions
	}
	s.see(team.Observation{Activity: team.Waiting, For: what, Source: "permission.asked", Ask: ask})
}

// message records one message of the session.
func (s *server) message(m messageInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rest, ok := strings.CutPrefix(m.ID, "msg_"); ok && len(rest) > stampLen {
		s.stamp = max(s.stamp, rest[:stampLen])
	}
	switch {
	case m.Role == "user" && len(m.ID) > hashLen:
		hash := m.ID[len(m.ID)-hashLen:]
		s.seen[hash] = max(s.seen[hash], m.ID)
		if minted(m.ID) {
			s.given = max(s.given, m.ID)
		}
	case m.compacted():
		// Its subject is a summary now, and later answers refer to that.
		s.doubt = s.doubt || s.given > s.answered
	case m.Role == "assistant" && m.Mode != compaction:
		s.answered = max(s.answered, m.ParentID)
	}
}

// take handles events, in order.
func (s *server) take(ctx context.Context, data []byte) {
	var e struct {
		Type       string
		Properties json.RawMessage
	}
	var p struct {
		SessionID string
		RequestID string
		Status    sessionStatus
		Error     sessionError
		Part      struct {
			messagePart
			MessageID string
		}
		Info struct {
			messageInfo
			Cost   float64
			Tokens struct {
				Input, Output int64
				Cache         struct{ Read int64 }
			}
		}
	}
	if json.Unmarshal(data, &e) != nil || json.Unmarshal(e.Properties, &p) != nil {
		return // an unneeded event whose shape changed in a later version
	}
	s.mu.Lock()
	ours := p.SessionID == s.session
	s.mu.Unlock()
	if !ours {
		return
	}
	switch e.Type {
	case "session.status":
		s.changed(p.Status, e.Type)
		s.takeUp(ctx)
	case "message.updated":
		s.message(p.Info.messageInfo)
	case "message.part.updated":
		s.part(p.Part.MessageID, p.Part.messagePart, e.Type)
	case "session.compacted":
		s.mu.Lock()
		s.doubt = true
		s.mu.Unlock()
		s.restoreNow(ctx)
	case "session.error":
		s.failed(p.Error, time.Time{}, e.Type)
	case "session.updated":
		t := p.Info.Tokens
		s.see(team.Observation{Source: e.Type, Usage: &team.Usage{
			InputTokens: t.Input, OutputTokens: t.Output, CachedTokens: t.Cache.Read, CostUSD: p.Info.Cost,
		}})
	case "permission.asked", "question.asked":
		var a permissionRequest
		if json.Unmarshal(e.Properties, &a) != nil {
			return
		}
		what := team.WaitPermission
		if e.Type == "question.asked" {
			what = team.WaitQuestion
		}
		s.asked(a, what)
	case "permission.replied", "question.replied", "question.rejected":
		s.mu.Lock()
		_, open := s.asks[p.RequestID]
		delete(s.asks, p.RequestID)
		busy := s.busy
		s.mu.Unlock()
		if open {
			o := team.Observation{Source: e.Type, Settled: p.RequestID}
			if busy {
				o.Activity = team.Working
			}
			s.see(o)
		}
	}
}

// SetMode implements courier.Channel: each prompt names the agent for the mode.
func (s *server) SetMode(mode team.Mode) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
	return adapter.OpencodeWhen(s.f.Link, mode)
}

// Interrupt implements courier.Channel.
func (s *server) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	up, id := s.up, s.session
	s.mu.Unlock()
	if !up {
		return team.Errorf(team.CodeUnavailable, "interrupt %s: its server is not reached", s.f.AgentID)
	}
	if err := s.request(ctx, http.MethodPost, "/session/"+id+"/abort", struct{}{}, nil); err != nil {
		return fmt.Errorf("interrupt %s: %w", s.f.AgentID, err)
	}
	s.mu.Lock()
	s.next = time.Time{} // of a finished turn: nothing is left to interrupt
	s.mu.Unlock()
	return nil
}

// Answer implements courier.Channel.
func (s *server) Answer(ctx context.Context, r team.Reply) error {
	s.mu.Lock()
	what, ok := s.asks[r.ID]
	listed := s.listed
	s.mu.Unlock()
	if !ok && !listed {
		return team.Errorf(team.CodeUnavailable, "answer %s: its server has not listed its open requests yet", s.f.AgentID)
	}
	if !ok {
		return team.Errorf(team.CodeNotFound, "answer %s: request %s no longer needs an answer", s.f.AgentID, r.ID)
	}
	path, body := "/permission/"+r.ID+"/reply", map[string]any{"reply": "reject"}
	switch {
	case what == team.WaitQuestion && r.Allow:
		path, body = "/question/"+r.ID+"/reply", map[string]any{"answers": r.Input}
	case what == team.WaitQuestion:
		path, body = "/question/"+r.ID+"/reject", map[string]any{}
	case r.Allow:
		body["reply"] = "once"
	case r.Feedback != "":
		body["message"] = r.Feedback
	}
	err := s.request(ctx, http.MethodPost, path, body, nil)
	if no := (*statusError)(nil); errors.As(err, &no) && no.status == http.StatusNotFound {
		return team.Errorf(team.CodeNotFound, "answer %s: request %s no longer needs an answer", s.f.AgentID, r.ID)
	}
	if err != nil {
		return fmt.Errorf("answer %s: %w", s.f.AgentID, err)
	}
	return nil
}
