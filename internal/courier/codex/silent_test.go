package codex

import (
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// mute matches the report of a server that does not answer.
func mute(o team.Observation) bool {
	return o.Activity == team.ActivityUnknown && o.Source == "app-server does not answer"
}

// TestServerIsFrozen: a server that stays connected and answers nothing has no state, whether the
// channel asks it after a message, in mid-turn, or at rest; once it answers, it has its state again.
func TestServerIsFrozen(t *testing.T) {
	t.Parallel()
	const soon, never = 100 * time.Millisecond, time.Hour
	for name, p := range map[string]patience{
		"at rest":     {soon, never, soon},
		"in mid-turn": {soon, soon, never},
		"with mail":   {soon, never, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := codexRig(t)
			startCodex(t, r, false)
			relay := couriertest.NewRelay(t, "unix", r.Socket()+".relay", r.Socket())
			r.facts.Link.Socket = relay.Addr()
			a, err := newAppServer(r.facts, r.Report, p)
			r.Use(t, a, err)
			a.start()
			r.Wait(t, "the thread", 0, ready)
			state := team.Idle
			if name == "in mid-turn" {
				state = team.Working
				r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say done")
				r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
			}
			r.Last(t, "its state", couriertest.Is(state))
			relay.Freeze()
			var given sync.WaitGroup
			if name == "with mail" {
				given.Go(func() { r.Deliver(t, false, "m2", "while it is frozen") })
			}
			r.Last(t, "that it does not answer", mute)
			relay.Thaw()
			given.Wait()
			r.Last(t, "its state again", couriertest.Is(state))
			r.Touch(t, "go")
			r.Last(t, "that it is idle", couriertest.Is(team.Idle))
		})
	}
}
