package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
)

// renewals counts the renewals of leases.
type renewals struct {
	Sessions
	turns []time.Time
}

func (r *renewals) TurnJobs(context.Context, ledger.JobFilter) ([]ledger.TurnJob, error) {
	return nil, nil
}

func (r *renewals) RenewTurns(context.Context, string, string, time.Duration) (int64, error) {
	r.turns = append(r.turns, time.Now())
	return 1, nil
}

// board counts the renewals of the leases of tasks.
type board struct {
	Ledger
	renewed int
}

func (b *board) RenewLeases(context.Context, []string, time.Duration) (int64, error) {
	b.renewed++
	return 0, nil
}

// stays is a turn that goes on until its context ends.
type stays struct{}

func (stays) Turn(ctx context.Context, _ ledger.ClaimedTurn, _ llm.Desk) (llm.Outcome, error) {
	<-ctx.Done()
	return llm.Outcome{}, ctx.Err()
}

// TestTurnsAreRenewedAmidChanges checks that the leases of running turns are renewed however often the
// ledger changes or mail comes.
func TestTurnsAreRenewedAmidChanges(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{time.Hour, renewEvery - time.Second, time.Second, lookEvery} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sessions, tasks := &renewals{}, &board{}
				changes, mail := make(chan struct{}, 1), make(chan struct{}, 1)
				s := &server{in: ServeIn{Sessions: sessions, Turns: stays{}}, running: map[*running]bool{}, ended: make(chan *running)}
				s.worker = newWorker(Identity{AgentID: "dev@demo", Name: "dev", Session: "session-dev", Generation: "g"}, Env{Ledger: tasks, Mail: mail})
				s.changes = changes
				if err := pause.For(t.Context(), time.Hour); err != nil { // it has rested
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 4*ledger.Lease)
				defer cancel()
				began := time.Now()
				s.start(ctx, ledger.ClaimedTurn{})
				go func() {
					tick := time.NewTicker(every)
					defer tick.Stop()
					for {
						select {
						case <-tick.C:
						case <-ctx.Done():
							return
						}
						select { // one of them
						case changes <- struct{}{}:
						case mail <- struct{}{}:
						default:
						}
					}
				}()
				for ctx.Err() == nil {
					_ = s.await(ctx)
				}
				s.endTurns(nil)
				last := began
				for i, at := range sessions.turns {
					if gap := at.Sub(last); gap < renewEvery || gap > renewEvery+time.Second {
						t.Errorf("renewal %d comes after %v", i, gap)
					}
					last = at
				}
				if n := len(sessions.turns); n < 14 || n > 16 || tasks.renewed != n {
					t.Errorf("%d renewals of turns, %d of tasks", n, tasks.renewed)
				}
			})
		})
	}
}
