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

// Verifications runs the commands of tasks whose work is handed in, where the work is. What is
// to be done is in the ledger (ledger.Unverified), and what the processes are known by is
// written there before the first of them is started: a supervisor that is killed amid it leaves
// nothing that the next one does not end, and runs again.
type Verifications struct {
	loop.Quiet
	team  loop.Team
	again time.Duration
	place VerifyPlace
	slots chan struct{} // limits verifications at once

	running map[int64]verifying // under way, or waiting for a slot, by id
	look    reading             // for what is to be verified
}

// VerifyPlace knows where and with what a member's commands run.
type VerifyPlace interface {
	// VerifyDir is where the owner works; "" for nowhere.
	VerifyDir(ctx context.Context, t ledger.TeamRow, m ledger.Member) (string, error)
	// VerifyEnv is the environment of a built-in worker in the owner's place, without the
	// secret of any member: what runs is no person, and can speak for nobody.
	VerifyEnv(ctx context.Context, t ledger.TeamRow, m ledger.Member, dir string) ([]string, error)
}

// NewVerifications returns the service. What could not be written down is tried again after
// the pause again.
func NewVerifications(t loop.Team, again time.Duration, place VerifyPlace) *Verifications {
	return &Verifications{team: t, again: again, place: place, running: map[int64]verifying{}, slots: make(chan struct{}, max(2, runtime.NumCPU()))}
}

// verifying is a verification under way, or waiting for a slot.
type verifying struct {
	task, session string
	cancel        context.CancelFunc
}

// reading is one of the ledger of which one at a time is under way: an older answer
// never comes after a newer one.
type reading struct{ under, again bool }

// Ready takes up what is to be verified.
func (s *Verifications) Ready() { s.open() }

// Event looks when a task is handed in, and when something happens to one whose verification
// is under way.
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

// Busy reports that something is being verified.
func (s *Verifications) Busy() bool { return len(s.running) > 0 || s.look.under }

func (s *Verifications) soon(d time.Duration) { s.Bus.After("verify", d, s.open) }

// open begins what is to be verified, and ends what is not any more.
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
			r.cancel() // its task was taken back, say
		}
	}
	for _, v := range todo {
		// One at a time for each owner: they would run in the same worktree.
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

// verified is called after an attempt. One that could not be written down is made again.
func (s *Verifications) verified(v ledger.Verification, err error) {
	delete(s.running, v.ID)
	if err != nil {
		s.team.Log.Warn("verify a task", "task", v.Task, "member", v.Name, "err", err)
		s.soon(s.again)
		return
	}
	s.soon(time.Millisecond) // the next one of this owner
}

// verifyNow runs a verification and writes down what came of it, outside the loop. The
// end of ctx says that nobody waits for it any more, or that the supervisor ends: it
// stays open then, and is run again.
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
		return nil // it was taken back meanwhile
	case err != nil:
		return err
	}
	s.team.Log.Info("verifying", "task", v.Task, "attempt", v.Attempt, "member", v.Name, "verification", v.ID)
	end, err := job.run(ctx, s.team.Log)
	if err != nil { // something of it may be left: the next look ends that
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
