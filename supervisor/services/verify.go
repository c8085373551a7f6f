package services

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Verifications runs the verify commands of submitted tasks, in the worktree with the work. The
// ledger has the pending verifications (ledger.Unverified), and records the identity of the
// processes before the first one starts: if the supervisor is killed, the next one ends all of
// them and repeats the verification.
type Verifications struct {
	loop.Quiet
	team  loop.Team
	again time.Duration
	place VerifyPlace
	slots chan struct{} // limits concurrent verifications

	running map[int64]verifying // running, or waiting for a slot, by id
	look    reading             // for pending verifications
}

// VerifyPlace determines where and with what environment a member's commands run.
type VerifyPlace interface {
	// VerifyDir returns the owner's working directory; "" if there is none.
	VerifyDir(ctx context.Context, t ledger.TeamRow, m ledger.Member) (string, error)
	// VerifyEnv returns the environment of a built-in worker in the owner's place, without the
	// secret of any member: the command must not be able to act as a member.
	VerifyEnv(ctx context.Context, t ledger.TeamRow, m ledger.Member, dir string) ([]string, error)
}

// NewVerifications returns the service. An outcome that could not be recorded is tried again after
// the pause again.
func NewVerifications(t loop.Team, again time.Duration, place VerifyPlace) *Verifications {
	return &Verifications{team: t, again: again, place: place, running: map[int64]verifying{}, slots: make(chan struct{}, max(2, runtime.NumCPU()))}
}

// verifying is a verification that is running or waiting for a slot.
type verifying struct {
	task, session string
	cancel        context.CancelFunc
}

// reading makes reads of the ledger run one at a time, so that an older answer never follows a
// newer one.
type reading struct{ under, again bool }

// Ready starts pending verifications.
func (s *Verifications) Ready() { s.open() }

// Event handles submitted tasks, and changes to tasks that are being verified.
func (s *Verifications) Event(e ledger.Event) {
	if !strings.HasPrefix(e.What, team.TaskEvents) {
		return
	}
	if e.What == team.EventTaskVerify {
		s.soon(time.Millisecond)
		return
	}
	for _, r := range s.running {
		if r.task == e.ID {
			s.soon(time.Millisecond)
			return
		}
	}
}

// Busy reports whether a verification is running.
func (s *Verifications) Busy() bool { return len(s.running) > 0 || s.look.under }

func (s *Verifications) soon(d time.Duration) { s.Bus.After("verify", d, s.open) }

// open starts pending verifications, and ends those no longer needed.
func (s *Verifications) open() {
	if s.look.under {
		s.look.again = true
		return
	}
	s.look = reading{under: true}
	s.Bus.Go("read what is to be verified", func(ctx context.Context) func() {
		todo, err := s.team.Ledger.Unverified(ctx)
		return func() { s.found(todo, err) }
	})
}

func (s *Verifications) found(todo []ledger.Verification, err error) {
	again := s.look.again
	s.look = reading{}
	if again {
		s.soon(time.Millisecond)
	}
	if err != nil {
		s.team.Log.Warn("read what is to be verified", "err", err)
		s.soon(s.again)
		return
	}
	open, busy := map[int64]bool{}, map[string]bool{}
	for _, v := range todo {
		open[v.ID] = v.State == ledger.VerifyOpen
	}
	for id, r := range s.running {
		busy[r.session] = true
		if !open[id] {
			r.cancel() // for example, its task was released
		}
	}
	for _, v := range todo {
		// One at a time for each owner, since they run in the same worktree.
		if _, under := s.running[v.ID]; under || busy[v.Session] && v.State == ledger.VerifyOpen {
			continue
		}
		busy[v.Session] = busy[v.Session] || v.State == ledger.VerifyOpen
		s.verify(v)
	}
}

func (s *Verifications) verify(v ledger.Verification) {
	begun, cancel := context.WithCancel(context.Background())
	s.running[v.ID] = verifying{v.Task, v.Session, cancel}
	s.Bus.Go("verify", func(ctx context.Context) func() {
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		err := s.verifyNow(begun, v)
		return func() { s.verified(v, err) }
	})
}

// verified is called after an attempt. An attempt that could not be recorded is repeated.
func (s *Verifications) verified(v ledger.Verification, err error) {
	delete(s.running, v.ID)
	if err != nil {
		s.team.Log.Warn("verify a task", "task", v.Task, "member", v.Name, "err", err)
		s.soon(s.again)
		return
	}
	s.soon(time.Millisecond) // this owner's next one
}

// verifyNow runs a verification and records its outcome, outside the loop. If ctx ends because the
// verification is no longer needed or the supervisor exits, it stays open, and a later attempt
// runs it again.
func (s *Verifications) verifyNow(ctx context.Context, v ledger.Verification) error {
	if v.Generation != "" {
		if err := s.verifyLeft(ctx, v); err != nil {
			return err
		}
	}
	if v.State != ledger.VerifyOpen {
		return nil
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil
	}
	job, err := s.verifyJob(ctx, v)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer job.close()
	write, done := loop.Writing(ctx)
	err = s.team.Ledger.BeginVerification(write, v.ID, job.generation, job.place())
	done()
	switch {
	case team.IsCode(err, team.CodeConflict), team.IsCode(err, team.CodeNotFound):
		return nil // no longer needed
	case err != nil:
		return err
	}
	s.team.Log.Info("verifying", "task", v.Task, "attempt", v.Attempt, "member", v.Name, "verification", v.ID)
	end, err := job.run(ctx, s.team.Log)
	if err != nil { // processes may be left: the next look ends them
		return err
	}
	write, done = loop.Writing(ctx)
	defer done()
	if end.cut {
		return s.team.Ledger.AbandonVerification(write, v.ID, job.generation)
	}
	out, err := s.team.Ledger.EndVerification(write, end.VerifyEnd)
	if err != nil {
		return err
	}
	s.team.Log.Info("verified", "task", v.Task, "member", v.Name, "passed", end.Passed, "why", end.Why, "counts", out.Counts)
	for _, m := range out.Mail {
		s.team.Mailer().Deliver(write, m.Deliveries)
	}
	return nil
}
