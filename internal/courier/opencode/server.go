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
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// server is the channel to an opencode whose TUI serves HTTP on a port of the
// agent's own, with a password.
//
// A message is a prompt_async with a message id that we mint: an idle session
// begins a turn, a busy one takes it at the next tool boundary. opencode orders
// messages by their ids, so an id begins with the time, as its own do; it ends with
// a hash of the mail's id, by which the session itself tells what it was given,
// also after a kill. The text is a part with an id of our own as well: posted twice, a
// message stands in the session once.
//
// The answer to prompt_async comes before the session has the message, seconds before on
// a busy machine, and may never come to a server that takes it all the same. So the
// receipt is the message as the session has it, with its text: by an event, or by reading.
type server struct {
	f      courier.Facts
	report courier.Report
	cancel context.CancelFunc
	done   sync.WaitGroup
	client *http.Client
	late   chan struct{} // capacity 1: a post had no answer

	mu       sync.Mutex
	up       bool
	session  string
	seen     map[string]string  // hash of the mail's id -> message id
	mail     map[string]letter  // message id -> what was posted under it, and has no receipt yet
	stored   map[string]textSum // message id of ours -> the text that the session has of it
	answered string             // newest message that an answer has as its parent
	given    string             // newest of our messages in the session
	tried    string             // of our messages: the one that a turn was last begun for
	tries    int                // and how often
	regiven  map[string]string  // our message that a compaction has taken away -> the one that it was given again as
	doubt    bool               // there was a compaction: what it has taken away is not known yet
	asks     map[string]team.WaitFor
	busy     bool
	stamp    string // newest among the ids of the session
	mode     team.Mode
	next     time.Time // of a retry, zero for none

	patience time.Duration // for the beginning of the stream; used by connection only
	unshown  string        // a session that was made and that nobody has the TUI show yet; as patience
}

// A server that is asked for its events while it starts may never answer that request:
// it is asked again after patienceFirst, and then after longer, for a busy machine.
const (
	patienceFirst = 3 * time.Second
	patienceMost  = time.Minute
)

// Open is the Opener of adapter.WayServer.
func Open(_ context.Context, f courier.Facts, _ courier.Screen, r courier.Report) (courier.Channel, error) {
	if f.Link.URL == "" {
		return nil, team.Errorf(team.CodeInternal, "open a channel to %s: its link has no address", f.AgentID)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{
		f: f, report: r, cancel: cancel, late: make(chan struct{}, 1), client: &http.Client{Transport: &http.Transport{}},
		patience: patienceFirst, mode: f.Mode,
		session: f.Link.Conversation, seen: map[string]string{}, mail: map[string]letter{}, stored: map[string]textSum{}, regiven: map[string]string{},
		asks: map[string]team.WaitFor{},
	}
	s.done.Go(func() { courier.KeepUp(ctx, s.connection) })
	s.done.Go(func() { s.lookLate(ctx) })
	return s, nil
}

// Close is Channel's.
func (s *server) Close() {
	s.cancel()
	s.done.Wait()
	s.client.CloseIdleConnections()
}

// statusError is an answer that is not a success: the server did not do it.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s", e.status, e.text) }

// request asks the server. out may be nil.
func (s *server) request(ctx context.Context, method, path string, in, out any) error {
	resp, err := s.open(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	return nil
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
	// What it does not know it answers with its web page.
	if t := resp.Header.Get("Content-Type"); strings.HasPrefix(t, "text/html") {
		resp.Body.Close()
		return nil, &statusError{http.StatusNotFound, method + " " + path + " is answered with a page"}
	}
	return resp, nil
}

// connection is one stream of events, and what has to be asked when it begins.
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
		if !intime { // a refusal, for nobody listens yet, says nothing of how long an answer takes
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
	r := bufio.NewReader(resp.Body)
	for {
		line, err := r.ReadBytes('\n')
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

// begin finds or makes the session, reads what it has, and gives the first message.
func (s *server) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s.mu.Lock()
	id := s.session
	s.mu.Unlock()
	if id == "" {
		var err error
		if id, err = s.find(ctx); err != nil {
			return err
		}
	}
	all, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.session, s.up = id, true
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

// find is the session of this generation, by its title; it is made when there is
// none, and shown in the TUI.
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
	// Of an answer that an error has ended.
	Error *sessionError `json:"error"`
	Time  struct{ Created, Completed int64 }
}

// sessionMessage is a message with what it consists of.
type sessionMessage struct {
	Info  messageInfo
	Parts []messagePart
}

type messagePart struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Text string `json:"text"`
	// Of a compaction: the first message that it has left as it was.
	Tail string `json:"tail_start_id"`
}

// read takes what the session already has, and returns it.
func (s *server) read(ctx context.Context, id string) (all []sessionMessage, err error) {
	if err := s.request(ctx, http.MethodGet, "/session/"+id+"/message", nil, &all); err != nil {
		return nil, err
	}
	for _, m := range all {
		s.message(m.Info)
		for _, p := range m.Parts {
			s.part(m.Info.ID, p, "GET /session/message")
		}
	}
	return all, nil
}

// sync asks what it does now: the stream tells changes only.
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
	return nil
}

type sessionStatus struct {
	Type    string `json:"type"` // idle, busy, retry; absent is idle
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
	for _, w := range s.asks { // it stays busy while it waits
		if s.busy {
			o.Activity, o.For = team.Waiting, w
		}
	}
	o.Conversation = s.session
	s.mu.Unlock()
	s.see(o)
}

// permissionRequest is a permission or question that is asked.
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
	ours := p.SessionID == s.session // a sub-agent's is the TUI's to ask
	if ours {
		s.asks[p.ID] = what
	}
	s.mu.Unlock()
	if !ours {
		return
	}
	ask := &team.Ask{ID: p.ID, For: what, Tool: p.Permission, ToolUseID: p.Tool.CallID,
		Description: strings.Join(p.Patterns, "\n"), Input: p.Metadata}
	switch p.Permission { // of a shell it names each command of the line, of files those from the repository's root
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

// message notes one message of the session.
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
		// What it was about is a summary now, and the answers that follow are to that.
		s.doubt = s.doubt || s.given > s.answered
	case m.Role == "assistant" && m.Mode != compaction:
		s.answered = max(s.answered, m.ParentID)
	}
}

// take is called for every event, in order.
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
		return // a shape that a later version gave to something that we do not need
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

// SetMode is Channel's: each prompt says which agent it is for.
func (s *server) SetMode(mode team.Mode) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
	return adapter.OpencodeWhen(s.f.Link, mode)
}

// Interrupt is Channel's.
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
	s.next = time.Time{} // of a turn that is over: nobody has to break it off again
	s.mu.Unlock()
	return nil
}

// Answer is Channel's.
func (s *server) Answer(ctx context.Context, r team.Reply) error {
	s.mu.Lock()
	what, ok := s.asks[r.ID]
	s.mu.Unlock()
	if !ok {
		return team.Errorf(team.CodeNotFound, "answer %s: nobody waits for %s any more", s.f.AgentID, r.ID)
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
		return team.Errorf(team.CodeNotFound, "answer %s: nobody waits for %s any more", s.f.AgentID, r.ID)
	}
	if err != nil {
		return fmt.Errorf("answer %s: %w", s.f.AgentID, err)
	}
	return nil
}
