package opencode

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

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

// A turn that never reaches an answer is not begun for ever, and none is begun for a message that
// does not have its text yet.
func TestServerTakesUpWithinBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parts []map[string]string
		want  int
	}{{[]map[string]string{{"type": "text", "text": "hello"}}, takeUpTries}, {[]map[string]string{}, 0}} {
		t.Run(fmt.Sprint(c.want), func(t *testing.T) {
			r, _ := openCodeRig(t)
			var posts atomic.Int32
			more, ended := make(chan string, 4*takeUpTries), make(chan struct{})
			event := func(typ string, p map[string]any) string {
				p["sessionID"] = "ses_1"
				b, err := json.Marshal(map[string]any{"type": typ, "properties": p})
				if err != nil {
					t.Error(err)
				}
				return string(b)
			}
			rest := event("session.status", map[string]any{"status": map[string]any{"type": "idle"}})
			answer := func(v any) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if err := json.NewEncoder(w).Encode(v); err != nil {
						t.Error(err)
					}
				}
			}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /session", answer([]any{map[string]any{"id": "ses_1", "title": r.facts.AgentID + " " + r.facts.Generation}}))
			mux.HandleFunc("GET /session/ses_1/message", answer([]any{map[string]any{
				"info": map[string]any{"id": "msg_1fddbd09b000" + messageHash("m1"), "role": "user"}, "parts": c.parts,
			}}))
			mux.HandleFunc("GET /session/status", answer(map[string]any{}))
			mux.HandleFunc("GET /permission", answer([]any{}))
			mux.HandleFunc("GET /question", answer([]any{}))
			mux.HandleFunc("POST /session/ses_1/prompt_async", func(w http.ResponseWriter, _ *http.Request) {
				posts.Add(1)
				more <- rest
				w.WriteHeader(http.StatusNoContent)
			})
			mux.HandleFunc("GET /event", func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for {
					w.(http.Flusher).Flush()
					select {
					case line := <-more:
						fmt.Fprintf(w, "data: %s\n\n", line)
					case <-q.Context().Done():
						return
					case <-ended:
						return
					}
				}
			})
			s := httptest.NewServer(mux)
			defer s.Close()
			defer close(ended)
			for range 2 * takeUpTries {
				more <- rest
			}
			more <- event("permission.asked", map[string]any{"id": "per_1"})
			r.facts.Link.URL = s.URL
			r.open(t)
			r.Wait(t, "the end", 0, func(o team.Observation) bool { return o.Ask != nil })
			r.Ch.Close()
			if n := int(posts.Load()); n != c.want {
				t.Errorf("a turn was begun %d times, want %d", n, c.want)
			}
		})
	}
}
