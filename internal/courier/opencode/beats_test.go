package opencode

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// TestServerIsFrozen: a server that stays connected and sends no heartbeat has no state; once it is
// heard, it has its state again, at rest and in mid-turn.
func TestServerIsFrozen(t *testing.T) {
	t.Parallel()
	for _, state := range []team.Activity{team.Idle, team.Working} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			r, addr := openCodeRig(t)
			startOpenCode(t, r, addr, false).Beat = 20 * time.Millisecond
			relay := couriertest.NewRelay(t, "tcp", "127.0.0.1:0", addr)
			r.facts.Link.URL = strings.Replace(r.facts.Link.URL, addr, relay.Addr(), 1)
			s := newServer(r.facts, r.Report)
			s.beats = time.Second
			s.start()
			r.Use(t, s, nil)
			r.Wait(t, "the session", 0, up)
			if state == team.Working {
				r.HandedOver(t, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say done")
			}
			r.Last(t, "its state", couriertest.Is(state))
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for late := time.Now().Add(5 * time.Minute); !s.beating.Load(); <-tick.C {
				if time.Now().After(late) {
					t.Fatal("no heartbeat was seen")
				}
			}
			relay.Freeze()
			r.Last(t, "that it does not answer", func(o team.Observation) bool {
				return o.Activity == team.ActivityUnknown && o.Source == "server does not answer"
			})
			relay.Thaw()
			r.Last(t, "its state again", couriertest.Is(state))
			r.Touch(t, "go")
			r.Last(t, "that it is idle", couriertest.Is(team.Idle))
		})
	}
}

// TestSilentWhileAsked: a server that is taken for silent while it is asked for its state is asked
// again at the next line.
func TestSilentWhileAsked(t *testing.T) {
	t.Parallel()
	r, _ := openCodeRig(t)
	silences := func() (n int) {
		for _, o := range r.All() {
			if o.Source == "server does not answer" {
				n++
			}
		}
		return n
	}
	wait := func(what string, ok func() bool) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(5 * time.Minute); !ok(); <-tick.C {
			if time.Now().After(late) {
				t.Errorf("waited in vain: %s", what)
				return
			}
		}
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		answer := "[]"
		switch q.URL.Path {
		case "/session/status":
			answer = "{}"
		case "/question": // the status is reported by now, or soon
			wait("that it is silent again", func() bool { return silences() > 1 })
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(web.Close)
	r.facts.Link.URL = web.URL
	s := newServer(r.facts, r.Report)
	t.Cleanup(s.client.CloseIdleConnections)
	s.beats = 50 * time.Millisecond
	b := s.watchBeats(t.Context())
	beat := []byte(`data: {"type":"server.heartbeat"}`)
	b.heard(t.Context(), beat)
	wait("that it is silent", b.mute.Load)
	b.heard(t.Context(), beat)
	b.end()
	b.heard(t.Context(), beat)
	r.Last(t, "its state", couriertest.Is(team.Idle))
}
