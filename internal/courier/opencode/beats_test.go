package opencode

import (
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
			s.beats = 200 * time.Millisecond
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
