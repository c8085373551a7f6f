package agent

import (
	"context"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// listed counts the looks at the queue.
type listed struct {
	Sessions
	looks int
}

func (l *listed) TurnJobs(context.Context, ledger.JobFilter) ([]ledger.TurnJob, error) {
	l.looks++
	return nil, nil
}

// TestLookIsOwed checks that a look at the queue that was put off is taken although something else came
// first: a turn may have been cancelled in the ledger.
func TestLookIsOwed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	row := r.join("dev", "session-dev", team.RoleExecutor)
	queue, changes := &listed{}, make(chan struct{}, 1)
	s := &server{in: ServeIn{Sessions: queue}}
	s.worker = newWorker(Identity{AgentID: "dev@demo", Name: "dev", Team: "demo", Session: row.SessionKey}, Env{Ledger: r.led})
	s.changes = changes
	for changes <- struct{}{}; len(changes) > 0; s.due = false {
		s.lastLook, s.again = time.Now().Add(time.Hour), time.Millisecond // the look is later than the retry
		if err := s.await(t.Context()); err != nil || !s.due || queue.looks != 0 {
			t.Fatalf("%v, due %v, %d looks", err, s.due, queue.looks)
		}
	}
	s.lastLook, s.again = time.Now(), 0
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := s.await(ctx); err != nil || queue.looks != 1 {
		t.Errorf("%v, %d looks", err, queue.looks)
	}
}
