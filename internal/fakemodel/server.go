package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/teamctl/teamctl/internal/script"
)

// maxBody bounds a request: conversations of tests are small.
const maxBody = 64 << 20

// Server is a scripted model. Use Start.
type Server struct {
	// URL is http://127.0.0.1:PORT, without a slash.
	URL string

	srv  *http.Server
	done sync.WaitGroup
	ids  atomic.Int64
	log  func(Request)

	mu       sync.Mutex
	requests []Request
	more     chan struct{} // closed by the next request
	fault    func(Request) *Fault
	strict   bool
	cache    []string // bodies that were answered, in strict mode
	refused  []string // why requests were refused, in strict mode
}

// Start serves on addr, a loopback address; "" is a free port of 127.0.0.1. log, when
// not nil, is called with each request, one at a time.
func Start(addr string, log func(Request)) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serve a model: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), log: log, more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.answers(anthropic{}))
	mux.HandleFunc("POST /v1/messages/count_tokens", constant(`{"input_tokens":100}`))
	mux.HandleFunc("POST /v1/responses", s.answers(responses{}))
	mux.HandleFunc("POST /v1/chat/completions", s.answers(chat{}))
	mux.HandleFunc("GET /v1/models", constant(`{"object":"list","has_more":false,"data":[{"id":"fake-model","object":"model","type":"model","display_name":"fake","created":1,"owned_by":"fake"}]}`))
	mux.HandleFunc("POST /v1beta/models/{call}", s.geminiCall)
	mux.HandleFunc("GET /v1beta/models", constant(`{"models":[{"name":"models/gemini-2.5-pro","displayName":"fake","inputTokenLimit":1000000,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"]}]}`))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // are you there?
			return
		}
		http.Error(w, fmt.Sprintf(`{"error":{"type":"not_found_error","message":"no %s %s here"}}`, r.Method, r.URL.Path), http.StatusNotFound)
	})
	s.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Minute} // a client may keep a connection that it has not used yet
	s.done.Go(func() {
		if err := s.srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			l.Close()
		}
	})
	return s, nil
}

// Close ends all running answers and returns when they have ended.
func (s *Server) Close() error {
	err := s.srv.Close()
	s.done.Wait()
	return err
}

// id returns an identifier for an answer, unique in the life of the server.
func (s *Server) id(prefix string) string { return fmt.Sprintf("%s_fake%06d", prefix, s.ids.Add(1)) }

// question is a request in the words that all protocols share.
type question struct {
	parts  []script.Part
	tools  []script.Tool
	stream bool
	model  string
	json   bool // wants JSON of a schema: side work, whatever tools it has
}

// reply writes an answer.
type reply struct {
	s     *Server
	model string
	say   string
	call  *script.Tool // else text
	input json.RawMessage

	rich  bool // with reasoning and in pieces, as real models answer
	usage tokens
}

// tokens are counted in bytes / 4 in strict mode.
type tokens struct{ input, cached, output int }

// pieces cuts a text into deltas for streaming: in the middle of escaped multi-byte characters.
func (r reply) pieces(text string) []string {
	if !r.rich {
		return []string{text}
	}
	var out []string
	rs := []rune(text)
	for len(rs) > 0 {
		n := min(5, len(rs))
		out, rs = append(out, string(rs[:n])), rs[n:]
	}
	return out
}

// protocol reads a question from a body and writes a reply.
type protocol interface {
	name() string
	ask(body []byte) (question, error)
	whole(r reply) any
	events(r reply) []event
	fail(status int, words string) any
}

// event is one server-sent event; name may be empty.
type event struct {
	name string
	data any
}

func constant(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func (s *Server) answers(p protocol) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, p) }
}

// answer serves one request for an answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p protocol) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		writeJSON(w, http.StatusBadRequest, p.fail(http.StatusBadRequest, err.Error()))
		return
	}
	q, err := p.ask(body)
	if err == nil && s.isStrict() {
		if err = check(p, body); err != nil {
			s.refuse(p.name() + ": " + err.Error())
		}
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, p.fail(http.StatusBadRequest, err.Error()))
		return
	}
	rec := Request{Protocol: p.name(), Path: r.URL.Path, Stream: q.stream, Body: string(body), Side: len(q.tools) == 0 || q.json}
	for _, t := range q.tools {
		rec.Tools = append(rec.Tools, strings.TrimPrefix(t.Space+"__"+t.Name, "__"))
	}
	q.parts = script.Merge(q.parts)
	if n := len(q.parts); n > 0 && !q.parts[n-1].Model {
		rec.New = q.parts[n-1].Text
	}
	st := script.Step{Say: "side"}
	if q.json {
		st.Say = `{"reasoning":"scripted","next_speaker":"user","title":"side"}`
	}
	if !rec.Side {
		var ok bool
		if st, ok = script.Next(q.parts); !ok {
			st.Say = "ok"
		}
	}
	out := reply{s: s, model: q.model, say: st.Say, rich: s.isStrict(), usage: s.count(string(body))}
	switch {
	case st.Status != 0:
		rec.Answer = fmt.Sprintf("fail %d", st.Status)
	case st.Tool != "" || st.Shell != "":
		t, in, ok := script.Resolve(st, q.tools)
		if ok {
			out.call, out.input = &t, in
			rec.Answer = "call " + t.Name + " " + string(in)
			break
		}
		out.say = "no tool here runs a shell"
		fallthrough
	default:
		rec.Answer = "say " + out.say
	}
	s.record(rec)

	fault := s.faultOf(rec)
	if fault != nil && fault.How == Forget {
		out.usage = tokens{input: min(out.usage.input, forgetful), output: out.usage.output}
	}
	if fault == nil && !wait(r, st.Wait) {
		return
	}
	switch {
	case fault != nil && fault.Status != 0:
		maps.Copy(w.Header(), fault.Header)
		writeJSON(w, fault.Status, p.fail(fault.Status, fault.Text))
	case st.Status != 0:
		writeJSON(w, st.Status, p.fail(st.Status, st.Say))
	case !q.stream || fault != nil && fault.Whole:
		writeJSON(w, http.StatusOK, p.whole(out))
	case fault != nil:
		writeBroken(w, r, p, p.events(out), fault)
	default:
		writeEvents(w, p.events(out))
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

func writeEvents(w http.ResponseWriter, events []event) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	for _, e := range events {
		_, _ = io.WriteString(w, e.text()) // the client may have gone
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
}

// obj is a JSON object that is written.
type obj = map[string]any
