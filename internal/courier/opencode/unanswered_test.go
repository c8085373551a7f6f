package opencode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// opencode keeps a message that arrives while a turn is aborted but does not process it: a turn is
// begun for it once the session is at rest, also by the next supervisor, and the model gets it
// once.
func TestServerTakesUpWhatABrokenTurnLeft(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("supervisor killed %v", killed), func(t *testing.T) {
			r, addr := openCodeRig(t)
			startOpenCode(t, r, addr, false)
			r.open(t)
			r.Wait(t, "the session", 0, up)
			r.Deliver(t, false, "m1", "@@shell sleep 600\n@@say never")
			r.Asked(t, "never")
			r.Deliver(t, false, "m2", "a word of mine", "m3", "@@say after")
			r.Wait(t, "the receipt", 0, couriertest.Receipt("m2"))
			r.Wait(t, "the receipt", 0, couriertest.Receipt("m3"))
			if err := r.Ch.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
			if killed {
				r.Ch.Close()
				r.open(t)
			}
			r.Asked(t, "@@say after")
			if out := r.Deliver(t, true, "m2", "a word of mine", "m3", "@@say after"); out[0].State != team.Accepted || out[1].State != team.Accepted {
				t.Errorf("asked again: %+v", out)
			}
			r.Deliver(t, false, "m4", "@@say the end")
			r.Asked(t, "@@say the end")
			for _, text := range []string{"a word of mine", "@@say after"} {
				if n := r.Model.Arrivals(text); n != 1 {
					t.Errorf("%q came %d times", text, n)
				}
			}
		})
	}
}

// The session is reported to be at rest while a failed or interrupted turn is not over: a message
// posted at that moment is processed too.
func TestServerTakesUpWhatCameTooEarly(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	for i, text := range []string{"@@fail 400 bad thing", "@@shell sleep 600\n@@say never"} {
		from := r.Mark()
		r.Deliver(t, false, fmt.Sprint("broken", i), text)
		r.Asked(t, text)
		if i == 0 {
			r.Wait(t, "the failure", from, func(o team.Observation) bool { return o.Failed != "" })
		} else if err := r.Ch.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		id, after := fmt.Sprint("m", i), fmt.Sprintf("@@say after %d", i)
		r.Deliver(t, false, id, after)
		r.Wait(t, "the receipt", from, couriertest.Receipt(id))
		r.Asked(t, after)
		if n := r.Model.Arrivals(after); n != 1 {
			t.Errorf("%q came %d times", after, n)
		}
	}
}

// keptServer is an opencode at rest whose session has one message, m1, that no turn has processed.
type keptServer struct {
	list  http.HandlerFunc // answers the reading of the session
	begin http.HandlerFunc // answers what begins a turn
	more  chan string      // events; nil: none
	ended chan struct{}
}

// start serves it to a rig until the test ends.
func (k keptServer) start(t *testing.T, r *rig) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /session", answers(t, []any{map[string]any{"id": "ses_1", "title": r.facts.AgentID + " " + r.facts.Generation}}))
	mux.HandleFunc("GET /session/ses_1/message", k.list)
	mux.HandleFunc("GET /session/status", answers(t, map[string]any{}))
	mux.HandleFunc("GET /permission", answers(t, []any{}))
	mux.HandleFunc("GET /question", answers(t, []any{}))
	mux.HandleFunc("POST /session/ses_1/prompt_async", k.begin)
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			w.(http.Flusher).Flush()
			select {
			case line := <-k.more:
				fmt.Fprintf(w, "data: %s\n\n", line)
			case <-q.Context().Done():
				return
			case <-k.ended:
				return
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		close(k.ended)
		s.Close()
	})
	r.facts.Link.URL = s.URL
}

// answers returns a handler that answers with v as JSON.
func answers(t *testing.T, v any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
}

// kept returns the session of a keptServer, by the parts of its message.
func kept(parts ...map[string]string) []any {
	return []any{map[string]any{
		"info": map[string]any{"id": "msg_1fddbd09b000" + messageHash("m1"), "role": "user"}, "parts": append([]map[string]string{}, parts...),
	}}
}

// event returns an event of the session.
func event(t *testing.T, typ string, p map[string]any) string {
	p["sessionID"] = "ses_1"
	b, err := json.Marshal(map[string]any{"type": typ, "properties": p})
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// A turn that never reaches an answer is not begun for ever, and none is begun for a message that
// does not have its text yet.
func TestServerTakesUpWithinBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		session []any
		want    int
	}{{kept(map[string]string{"type": "text", "text": "hello"}), takeUpTries}, {kept(), 0}} {
		t.Run(fmt.Sprint(c.want), func(t *testing.T) {
			r, _ := openCodeRig(t)
			var posts atomic.Int32
			more := make(chan string, 4*takeUpTries)
			rest := event(t, "session.status", map[string]any{"status": map[string]any{"type": "idle"}})
			begin := func(w http.ResponseWriter, _ *http.Request) {
				posts.Add(1)
				more <- rest
				w.WriteHeader(http.StatusNoContent)
			}
			for range 2 * takeUpTries {
				more <- rest
			}
			more <- event(t, "permission.asked", map[string]any{"id": "per_1"})
			keptServer{answers(t, c.session), begin, more, make(chan struct{})}.start(t, r)
			r.open(t)
			r.Wait(t, "the end", 0, func(o team.Observation) bool { return o.Ask != nil })
			r.Ch.Close()
			if n := int(posts.Load()); n != c.want {
				t.Errorf("a turn was begun %d times, want %d", n, c.want)
			}
		})
	}
}

// The process ended before the model had said a word: the answer that it had begun is none, and a turn is
// begun for the message. An answer of this process, which a person has interrupted, stays one; so does
// one with a word, or one that failed.
func TestServerTakesUpWhatAnEndLeft(t *testing.T) {
	t.Parallel()
	const hour = int64(3600_000)
	step, word := map[string]string{"type": "step-start"}, map[string]string{"type": "text", "text": "I will"}
	for _, c := range []struct {
		what  string
		error string
		ago   int64
		parts []map[string]string
		taken bool
	}{
		{"aborted by the end", aborted, hour, []map[string]string{step}, true},
		{"killed", "", hour, nil, true},
		{"interrupted now", aborted, -hour, []map[string]string{step}, false},
		{"at work", "", -hour, nil, false},
		{"aborted after a word", aborted, hour, []map[string]string{step, word}, false},
		{"failed", "ProviderAuthError", hour, nil, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r, _ := openCodeRig(t)
			if err := os.WriteFile(r.facts.Bundle.Proc(), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			session := kept(map[string]string{"type": "text", "text": "hello"})
			info := map[string]any{"id": "msg_1fddbd0ab000aBcDeFgHiJkLmN", "role": "assistant", "mode": "build",
				"parentID": "msg_1fddbd09b000" + messageHash("m1"), "time": map[string]any{"created": time.Now().UnixMilli() - c.ago}}
			if c.error != "" {
				info["error"] = map[string]any{"name": c.error}
			}
			session = append(session, map[string]any{"info": info, "parts": append([]map[string]string{}, c.parts...)})
			var posts atomic.Int32
			more := make(chan string, 1)
			more <- event(t, "permission.asked", map[string]any{"id": "per_1"})
			keptServer{answers(t, session), func(w http.ResponseWriter, _ *http.Request) {
				posts.Add(1)
				w.WriteHeader(http.StatusNoContent)
			}, more, make(chan struct{})}.start(t, r)
			r.open(t)
			r.Wait(t, "the end", 0, func(o team.Observation) bool { return o.Ask != nil })
			r.Ch.Close()
			if taken := posts.Load() > 0; taken != c.taken {
				t.Errorf("a turn was begun: %v, want %v", taken, c.taken)
			}
		})
	}
}

// A session at rest reports nothing further: a turn is begun for its message although the requests
// that belong to this fail at first.
func TestServerTakesUpAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what         string
		reads, posts int32 // number of the request that fails, from 1
	}{{"the session is not read", 2, 0}, {"the turn is not begun", 0, 1}} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r, _ := openCodeRig(t)
			var reads, posts atomic.Int32
			begun := make(chan struct{}, takeUpTries)
			list := func(w http.ResponseWriter, q *http.Request) {
				if reads.Add(1) == c.reads {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				answers(t, kept(map[string]string{"type": "text", "text": "hello"}))(w, q)
			}
			begin := func(w http.ResponseWriter, _ *http.Request) {
				if posts.Add(1) == c.posts {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				w.WriteHeader(http.StatusNoContent)
				begun <- struct{}{}
			}
			keptServer{list, begin, nil, make(chan struct{})}.start(t, r)
			r.open(t)
			<-begun // or the test times out
		})
	}
}
