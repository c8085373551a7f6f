package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// lane counts how often a turn gives its place away and takes one.
type lane struct {
	Sessions
	gave, took int
}

func (l *lane) YieldTurn(context.Context, ledger.TurnRef, string) error {
	l.gave++
	return nil
}

func (l *lane) ResumeTurn(context.Context, ledger.TurnRef) (bool, error) {
	l.took++
	return true, nil
}

// shows takes the activities that a member is shown with.
type shows struct {
	Ledger
	last team.Activity
}

func (s *shows) UpdateMember(_ context.Context, p ledger.MemberPatch) (ledger.Member, error) {
	s.last = *p.Activity
	return ledger.Member{}, nil
}

// meter is a Quota with one limit.
type meter struct {
	now    func() time.Time
	until  time.Time       // zero: until it is opened
	probes []time.Duration // another session tries at the end, and the limit moves by so much
	fail   map[string]int  // how many calls of each name fail
	asked  int
	open   bool
}

func (m *meter) fails(name string) error {
	if m.fail[name] == 0 {
		return nil
	}
	m.fail[name]--
	return errors.New("database is locked")
}

func (m *meter) Blocked(context.Context, string) (why error, until time.Time, err error) {
	m.asked++
	if err := m.fails("blocked"); err != nil {
		return nil, until, err
	}
	switch {
	case m.open:
		return nil, until, nil
	case m.until.IsZero() || m.now().Before(m.until):
		return errors.New("limited"), m.until, nil
	case len(m.probes) > 0:
		m.until, m.probes = m.now().Add(m.probes[0]), m.probes[1:]
		return errors.New("another tries"), m.now(), nil
	}
	return nil, until, nil
}

func (m *meter) Reached(context.Context, time.Time, *team.LimitReached) error {
	return m.fails("reached")
}
func (m *meter) Used(context.Context, team.Usage) bool { return true }

// TestTurnTriesAgainAfterALimit checks that a turn that has reached a limit goes on when that is over,
// although nothing in the team changes: by the wall clock, since timers stand still during a
// suspension, and after an error, too.
func TestTurnTriesAgainAfterALimit(t *testing.T) {
	t.Parallel()
	const long = 5 * time.Hour
	for name, c := range map[string]struct {
		until  time.Duration // from now; 0: not known
		sleeps time.Duration // the machine is suspended for so long, after an hour
		opens  time.Duration // the limit is ended by a person after so long
		probes []time.Duration
		fail   map[string]int
		want   time.Duration // by timers
		late   time.Duration
		asked  int // of Blocked
	}{
		"its end":                {until: long, want: long, asked: 2},
		"a moment":               {until: time.Millisecond, want: time.Second, asked: 2},
		"over already":           {until: -time.Hour, asked: 1},
		"another session tries":  {until: long, probes: []time.Duration{2 * time.Minute, 2 * time.Minute}, want: long + 4*time.Minute, late: 10 * time.Second, asked: 6},
		"a suspension":           {until: long, sleeps: 3 * time.Hour, want: 2 * time.Hour, asked: 2},
		"a suspension beyond it": {until: long, sleeps: 10 * time.Hour, want: time.Hour, late: time.Minute, asked: 2},
		"ended by a person":      {until: long, opens: time.Hour, want: time.Hour, asked: 2},
		"an unknown end":         {opens: 1000 * time.Hour, want: 1000 * time.Hour, asked: 2},
		"an unreadable ledger":   {until: -time.Hour, fail: map[string]int{"blocked": 3}, want: 3 * time.Second, asked: 4},
		"it cannot be noted":     {until: -time.Hour, fail: map[string]int{"reached": 20}, want: time.Second, late: time.Minute, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, slept := time.Now(), time.Duration(0)
				now := func() time.Time {
					if at := time.Now(); at.Sub(began) > time.Hour {
						return at.Add(slept)
					}
					return time.Now()
				}
				slept = c.sleeps
				q := &meter{now: now, probes: c.probes, fail: c.fail}
				if c.until != 0 {
					q.until = began.Add(c.until)
				}
				turns, board := &lane{}, &shows{}
				w := newWorker(Identity{AgentID: "dev@demo", Name: "dev", Session: "session-dev"}, Env{Ledger: board, Now: now})
				s := &server{limits: newLimits(w, q), in: ServeIn{Sessions: turns}, asks: make(chan ask)}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					for {
						select {
						case a := <-s.asks:
							a.do(ctx)
							close(a.done)
						case <-ctx.Done():
							return
						}
					}
				}()
				d := &desk{server: s, run: &running{job: ledger.TurnJob{ID: 1, Session: "session-dev"}}}
				if c.opens > 0 {
					go func() {
						if pause.For(ctx, c.opens) == nil && d.on(ctx, func(context.Context) { q.open = true }) == nil {
							s.wakeTurns()
						}
					}()
				}
				if err := d.Limited(ctx, &team.LimitReached{Until: q.until, Words: "enough"}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.want || took > c.want+c.late {
					t.Errorf("it has waited for %v, want %v", took, c.want)
				}
				if q.asked != c.asked || board.last != team.Working || turns.gave != turns.took {
					t.Errorf("asked %d times, shown as %s, gave its place %d times and took it %d times", q.asked, board.last, turns.gave, turns.took)
				}
			})
		})
	}
}
