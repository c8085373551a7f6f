package opencode

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// The answer to a post is not a receipt, nor is the model's answer to a later message: a message that
// the session never had is sent again.
func TestServerAnswersBeforeItHasTheMessage(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	s := startOpenCode(t, r, addr, false)
	r.open(t)
	r.Wait(t, "the session", 0, up)
	var posts atomic.Int32
	s.Stores(func(string) bool { return posts.Add(1) != 1 })
	if out := r.Deliver(t, false, "m1", "the first"); out[0].State != team.Injected {
		t.Fatalf("posted: %+v", out[0])
	}
	from := r.Mark()
	r.Deliver(t, false, "m2", "the second")
	r.Wait(t, "the receipt", from, couriertest.Receipt("m2"))
	r.Asked(t, "the second")
	working := false
	r.Wait(t, "the end of its turn", from, func(o team.Observation) bool {
		working = working || o.Activity == team.Working
		return working && o.Activity == team.Idle
	})
	if n := r.Accepted("m1"); n != 0 {
		t.Fatal("accepted by the answer to another message")
	}
	if out := r.Deliver(t, true, "m1", "the first"); out[0].State != team.Injected {
		t.Fatalf("asked again: %+v", out[0])
	}
	r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
	r.Asked(t, "the first")
	for _, text := range []string{"the first", "the second"} {
		if n := r.Model.Arrivals(text); n != 1 {
			t.Errorf("%q came %d times", text, n)
		}
	}
}

// A post without an answer may have arrived or not: the session shows which, and missing messages
// are posted again.
func TestServerPostWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"arrived": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, addr := openCodeRig(t)
			startOpenCode(t, r, addr, false)
			proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
			proxy.FlushInterval = -1
			var fail atomic.Bool
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if !strings.HasSuffix(q.URL.Path, "/prompt_async") || !fail.CompareAndSwap(true, false) {
					proxy.ServeHTTP(w, q)
					return
				}
				if arrives {
					proxy.ServeHTTP(httptest.NewRecorder(), q)
				}
				panic(http.ErrAbortHandler) // the connection breaks
			}))
			t.Cleanup(front.Close)
			r.facts.Link.URL = front.URL
			r.open(t)
			t.Cleanup(r.Ch.Close) // its stream keeps the front open
			r.Wait(t, "the session", 0, up)
			fail.Store(true)
			out := r.Deliver(t, false, "m1", "a word of mine")
			if out[0].State != team.Accepted && (out[0].State != team.Held || !strings.Contains(out[0].Reason, "not known")) {
				t.Fatalf("no answer: %+v", out[0])
			}
			if arrives {
				r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
			} else {
				r.Wait(t, "a look at the session", 0, func(o team.Observation) bool { return o.Source == "GET /session/message" })
				if n := r.Accepted("m1"); n != 0 {
					t.Fatalf("%d receipts", n)
				}
			}
			out = r.Deliver(t, false, "m1", "a word of mine") // as the supervisor does with held mail
			if arrives != (out[0].State == team.Accepted) {
				t.Errorf("once more: %+v", out[0])
			}
			r.Wait(t, "the receipt", 0, func(o team.Observation) bool { return couriertest.Receipt("m1")(o) || out[0].State == team.Accepted })
			r.Asked(t, "a word of mine")
			if n := r.Model.Arrivals("a word of mine"); n != 1 {
				t.Errorf("it came %d times", n)
			}
		})
	}
}

// The model does not have a message that is in the session without its text, as after a kill: the
// message gets its text.
func TestServerMessageWithoutItsText(t *testing.T) {
	t.Parallel()
	const text = "a word of mine"
	s := &server{report: func(o team.Observation) {
		if len(o.Receipts) > 0 {
			t.Errorf("receipt %+v", o.Receipts)
		}
	}, seen: map[string]string{}, mail: map[string]letter{}, stored: map[string]textSum{}}
	msg := "msg_1fddbd09b000" + messageHash("m1")
	s.mail[msg] = letter{id: "m1", sum: sumOf(text)}
	s.message(messageInfo{ID: msg, Role: "user"})
	for _, p := range []messagePart{
		{Type: "text", ID: partOf(msg)},
		{Type: "text", ID: partOf(msg), Text: text[:5]},
		{Type: "text", ID: "prt_other", Text: text},
		{Type: "file", ID: partOf(msg), Text: text},
	} {
		s.part(msg, p, "test")
	}
	s.message(messageInfo{ID: "msg_1fddbd09b001AbCdEfGhIjKlMn", Role: "assistant", ParentID: msg}) // begun, and empty
	var got []team.Receipt
	s.report = func(o team.Observation) { got = append(got, o.Receipts...) }
	s.part(msg, messagePart{Type: "text", ID: partOf(msg), Text: text}, "test")
	s.part(msg, messagePart{Type: "text", ID: partOf(msg), Text: text}, "test")
	if len(got) != 1 || got[0].ID != "m1" || got[0].State != team.Accepted || got[0].Evidence == "" {
		t.Errorf("receipts %+v", got)
	}
}
