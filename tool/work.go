package tool

import (
	"context"
	"sync"
	"time"

	"github.com/teamctl/teamctl/ledger"
)

// Work is the board for a member that takes tasks by itself and runs them, as the built-in worker
// does: the same gates of role and mode, the same hooks, the same notices as for everybody else.
// Only taking a task depends on the mode: what a member holds it may finish in any.
type Work struct {
	team   *Team
	member Caller

	mu     sync.Mutex
	passed ledger.TaskRef // the claim that the hooks have let pass: a write is tried again
}

// completeLimit bounds the write of a completion after its hooks, which take their own time.
const completeLimit = 30 * time.Second

// WorkOf returns the work of a member.
func (t *Team) WorkOf(member Caller) *Work { return &Work{team: t, member: member} }

// Claim claims the task with the id, or with an empty one the next that is ready and has a
// command; nil when there is none. CodeDenied (role, mode) if the member, as it is now, takes no
// tasks.
func (w *Work) Claim(ctx context.Context, id string) (*ledger.Task, error) {
	m, err := w.team.Ledger.MemberBySession(ctx, w.member.Session)
	if err != nil {
		return nil, err
	}
	c := Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role, Mode: m.Spec.Mode}
	session, err := w.team.mayWork(ctx, c)
	if err != nil {
		return nil, err
	}
	return w.team.as(c).Claim(ctx, ledger.ClaimIn{Owner: session, ID: id, Lease: ledger.Lease, Runnable: true})
}

// Start marks a claimed task as being worked on.
func (w *Work) Start(ctx context.Context, ref ledger.TaskRef) error {
	return w.team.as(w.member).Start(ctx, ref)
}

// Complete completes a task that the hooks let pass; passed is the command that has verified it,
// "" for none.
func (w *Work) Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result, passed string) error {
	ctx = context.WithoutCancel(ctx)
	if !w.hasPassed(ref) {
		if err := w.team.MayComplete(ctx, ref, res); err != nil {
			return err
		}
		w.mu.Lock()
		w.passed = ref
		w.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, completeLimit)
	defer cancel()
	led := w.team.as(w.member)
	if passed != "" {
		_, err := led.CompleteVerified(ctx, ref, res, passed)
		return err
	}
	_, err := led.Complete(ctx, ref, res)
	return err
}

func (w *Work) hasPassed(ref ledger.TaskRef) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed == ref
}

// Fail fails a task.
func (w *Work) Fail(ctx context.Context, ref ledger.TaskRef, res ledger.Result) error {
	return w.team.as(w.member).Fail(ctx, ref, res)
}

// Release gives a task back.
func (w *Work) Release(ctx context.Context, ref ledger.TaskRef) error {
	return w.team.as(w.member).Release(ctx, ref)
}
