package tool

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// attendAgain is the pause after a supervisor could not be started, attendTries how many times in
// a row that may happen before a waiting command gives up.
const (
	attendAgain = time.Second
	attendTries = 5
	// attendLook is the first interval at which a waiting command checks that the supervisor answers,
	// attendMost the longest: a command that waits all day leaves the machine at rest.
	attendLook = 3 * time.Second
	attendMost = time.Minute
	// awakeWithin bounds the delay of a command that does not wait.
	awakeWithin = 5 * time.Second
)

// Awake starts the team's supervisor if none is running although members should run, or work is
// pending that only a supervisor does. It waits at most a few seconds until the members are
// adopted: the started supervisor continues by itself. If the start needs a person, none is
// started.
func (t *Team) Awake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, awakeWithin)
	defer cancel()
	_, err := t.awakened(ctx)
	return err
}

// awakened is Awake without the limit; up reports that a supervisor was running, or was started.
func (t *Team) awakened(ctx context.Context) (up bool, err error) {
	_, up = t.supervisorPID()
	if up || t.Elsewhere != nil || t.Env.Dial == nil {
		return up, nil
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return false, err
	}
	return t.awake(ctx, members)
}

// awake is Awake for a roster; started reports that the ledger's state may have changed.
func (t *Team) awake(ctx context.Context, members []ledger.Member) (started bool, err error) {
	wanted := slices.ContainsFunc(members, func(m ledger.Member) bool {
		return m.Name != team.LeadName && m.Desired == team.WantRunning && !m.Observed.Terminal()
	})
	if !wanted { // an approved spawn or a pending verification also needs one
		if wanted, err = t.owed(ctx); err != nil || !wanted {
			return false, err
		}
	}
	// The supervisor answers once it has adopted the members.
	_, err = supervise(ctx, t, func(s Supervisor) (ledger.SupervisorStatus, error) { return s.Status(ctx) })
	if team.ReasonOf(err) == team.ReasonNoEnviron {
		return false, nil
	}
	return err == nil, err
}

// answers returns an error, reason supervisor_hung, if a running supervisor does not answer. The
// ledger's state of processes is out of date then.
func (t *Team) answers(ctx context.Context) error {
	if t.Env.Dial == nil || t.Elsewhere != nil {
		return nil
	}
	if _, err := t.Env.Dial(ctx, t.Layout, false); team.ReasonOf(err) == team.ReasonHung {
		return err
	}
	return nil
}

// Attended keeps the team's supervisor running, as Awake does, until stop is called: without a
// supervisor, a command that waits for the team's work would wait for ever. If the supervisor
// cannot be started or does not answer, the context ends with that reason.
//
// stop receives the error that the command is about to return: an error that only says that the
// context has ended, such as that of an interrupted read, is replaced by the reason.
func (t *Team) Attended(ctx context.Context) (_ context.Context, stop func(*error)) {
	return t.attended(ctx, true)
}

// Kept is Attended for a program that shows the team and waits for nothing: it does not check that
// the supervisor answers, and so wakes only when the supervisor has ended.
func (t *Team) Kept(ctx context.Context) (_ context.Context, stop func(*error)) {
	return t.attended(ctx, false)
}

func (t *Team) attended(ctx context.Context, asks bool) (_ context.Context, stop func(*error)) {
	ctx, cancel := context.WithCancelCause(ctx)
	var lost error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for failed := 0; ctx.Err() == nil; {
			up, err := t.awakened(ctx)
			gone := false
			if err == nil {
				failed = 0
				gone, err = t.awaitNeed(ctx, up, asks)
			}
			if err == nil && !gone || ctx.Err() != nil {
				continue
			}
			if err != nil {
				failed++
			}
			if failed >= attendTries || team.ReasonOf(err) == team.ReasonHung {
				lost = err
				cancel(err)
				return
			}
			pause := time.NewTimer(attendAgain)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	}()
	return ctx, func(err *error) {
		cancel(context.Canceled)
		<-done
		if lost != nil && errors.Is(*err, context.Canceled) {
			*err = lost
		}
	}
}

// nextLook is the pause after a check that the supervisor answers, by a command that has waited so
// long: it grows with the wait.
func nextLook(waited time.Duration) time.Duration {
	return min(max(waited, attendLook), attendMost)
}

// awaitNeed returns when the supervisor has ended or, if asks, does not answer or, if none is
// running, when the ledger has changed. If one was up a moment ago it returns at once: gone reports
// that.
func (t *Team) awaitNeed(ctx context.Context, wasUp, asks bool) (gone bool, err error) {
	var ended <-chan struct{}
	pid, _ := t.supervisorPID()
	if pid != 0 {
		if id, err := proc.Identify(pid); err == nil {
			w, err := proc.Watch(id)
			if err != nil {
				return false, err
			}
			defer w.Close()
			ended = w.Done()
		}
	}
	if ended != nil {
		began := time.Now()
		look := time.NewTimer(attendLook)
		defer look.Stop()
		if !asks {
			look.Stop()
		}
		for {
			select {
			case <-ended:
				_ = t.NoteEnd(pid, time.Now()) // without it an earlier sign counts
				return false, nil
			case <-ctx.Done():
				return false, nil
			case <-look.C:
				if err := t.answers(ctx); err != nil {
					return false, err
				}
				look.Reset(nextLook(time.Since(began)))
			}
		}
	}
	if wasUp {
		return true, nil
	}
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return false, err
	}
	defer stop()
	<-changes // check at once
	select {
	case <-changes:
	case <-ctx.Done():
	}
	return false, nil
}

// Standing is the supervisor that maintains the ledger's state of processes.
type Standing struct {
	PID   int             // 0 without a supervisor, or until it has adopted the members
	Ended <-chan struct{} // closed when it has exited; nil without a supervisor

	watch *proc.Watcher
}

// Standing looks for the team's supervisor. The caller closes the result.
func (t *Team) Standing() (Standing, error) {
	pid, adopted := t.supervisorPID()
	if !adopted {
		return Standing{}, nil
	}
	id, err := proc.Identify(pid)
	if err != nil {
		return Standing{}, nil // it has just exited
	}
	w, err := proc.Watch(id)
	if err != nil {
		return Standing{}, err
	}
	return Standing{PID: pid, Ended: w.Done(), watch: w}, nil
}

// Noting notes the end of the supervisor, if it comes before stop is called.
func (t *Team) Noting(s Standing) (stop func()) {
	if s.Ended == nil || t.Elsewhere != nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.Ended:
			_ = t.NoteEnd(s.PID, time.Now()) // without it an earlier sign counts
		case <-quit:
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// Close ends the watch.
func (s Standing) Close() {
	if s.watch != nil {
		s.watch.Close()
	}
}
