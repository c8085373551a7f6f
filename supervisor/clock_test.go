package supervisor

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// moved is a clock whose wall a test sets.
type moved struct {
	mu   sync.Mutex
	by   time.Duration
	boot string
}

func (c *moved) move(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

func (c *moved) clock() policy.Clock {
	return policy.Clock{Wall: func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return time.Now().Add(c.by)
	}, SinceBoot: func() (string, time.Duration, error) {
		up, err := proc.SinceBoot()
		return c.boot, up, err
	}}
}

// The wall clock jumps while no supervisor runs: the back-off neither ends early nor grows.
func TestFault14BackoffOverClockJumpAndRestart(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"forward": 24 * time.Hour, "back": -24 * time.Hour, "not": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.policy.FirstBackoff, r.policy.MaxBackoff = 400*time.Millisecond, time.Minute
			c := &moved{boot: "this"}
			r.clock = c.clock()
			s := r.supervisor()
			r.spawn(s, "a", team.RestartAlways)
			mkdir(t, string(r.layout.Bundle("a")))
			var began time.Time
			for m := r.waitState("a", team.Running); m.Observed != team.Backoff; { // a pause may pass unseen; the next one is longer
				before := m.Generation
				began = time.Now()
				r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
				m = r.wait("a", "down", func(m ledger.Member) bool {
					return m.Observed == team.Backoff || m.Observed == team.Running && m.Generation != before
				})
			}
			s.Close()
			c.move(by)
			r.supervisor()
			r.wait("a", "up again", func(m ledger.Member) bool { return m.Observed == team.Running })
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("a pause of 400 ms took %s", took)
			}
		})
	}
}

// The lifetime of a generation is not measured by the wall clock if a better clock is recorded.
func TestRanIsNotByTheWall(t *testing.T) {
	t.Parallel()
	at := time.Now()
	row := ledger.Member{StartedAt: at.Add(-24 * time.Hour).UnixMilli()}
	for _, c := range []struct {
		name string
		m    member
		e    backends.Exit
		want time.Duration
	}{
		{"watched", member{row: row, upSince: time.Now().Add(-time.Minute)}, backends.Exit{At: at, Ran: time.Hour}, time.Minute},
		{"its parent's word", member{row: row}, backends.Exit{At: at, Ran: time.Hour}, time.Hour},
		{"nobody's", member{row: row}, backends.Exit{At: at}, 24 * time.Hour},
	} {
		if got := c.m.ran(c.e).Round(time.Second); got != c.want {
			t.Errorf("%s: ran %s; want %s", c.name, got, c.want)
		}
	}
}

// The wall clock jumps while a supervisor runs: a deadline that has passed is seen at the loop's
// next message, although its timer has hours left.
func TestFault14DeadlineAfterClockJump(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := &moved{boot: "this"}
	r.clock = c.clock()
	s := r.supervisor()
	guest, _, err := r.led.AddMember(t.Context(), ledger.Member{
		Name: "guest", Role: team.RoleExecutor, Desired: team.WantStopped, Spec: team.MemberSpec{Agent: team.AgentExternal},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	in, err := services.JoinedRequest(team.LeadName, guest, "done", time.Now().Add(time.Hour))
	if err == nil {
		_, _, err = r.mailer().Post(t.Context(), in)
	}
	if err != nil {
		t.Fatal(err)
	}
	armed := func() bool {
		d, err := s.Debug(t.Context())
		return err == nil && slices.Contains(d.Timers, "joined")
	}
	eventually(t, armed)
	c.move(2 * time.Hour)
	eventually(t, func() bool {
		if armed() { // each question is a message of the loop
			return false
		}
		row, err := r.led.MemberBySession(t.Context(), guest.SessionKey)
		return err == nil && row.RemovedAt != 0
	})
}
