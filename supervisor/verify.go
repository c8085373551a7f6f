package supervisor

import (
	"context"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A task whose work is handed in and that has a command to verify it by waits for the
// supervisor, which runs that command where the work is. What is to be done stands in
// the ledger (ledger.Unverified), and what processes are known by is written there before
// the first of them is started: a supervisor that is killed amid it leaves nothing that
// the next one does not end, and runs again.

// verifying is a verification under way, or waiting for its turn.
type verifying struct {
	task, session string
	cancel        context.CancelFunc
}

// reading is one of the ledger of which one at a time is under way: an older answer
// never comes after a newer one.
type reading struct{ under, again bool }

// openVerifications begins what is to be verified, and ends what nobody waits for.
type openVerifications struct{}

func (openVerifications) apply(s *Supervisor) {
	delete(s.timers, "verify")
	if s.verifyLook.under {
		s.verifyLook.again = true
		return
	}
	s.verifyLook = reading{under: true}
	s.step(func(ctx context.Context) message {
		todo, err := s.cfg.Ledger.Unverified(ctx)
		return verificationsFound{todo, err}
	})
}

type verificationsFound struct {
	todo []ledger.Verification
	err  error
}

func (f verificationsFound) apply(s *Supervisor) {
	again := s.verifyLook.again
	s.verifyLook = reading{}
	if again {
		s.verifySoon(time.Millisecond)
	}
	if f.err != nil {
		s.log.Warn("read what is to be verified", "err", f.err)
		s.verifySoon(s.policy.Repair)
		return
	}
	open, busy := map[int64]bool{}, map[string]bool{}
	for _, v := range f.todo {
		open[v.ID] = v.State == ledger.VerifyOpen
	}
	for id, r := range s.verifying {
		busy[r.session] = true
		if !open[id] {
			r.cancel() // its task was taken back, say
		}
	}
	for _, v := range f.todo {
		// One at a time for each owner: they would run in the same worktree.
		if s.verifying[v.ID] != nil || busy[v.Session] && v.State == ledger.VerifyOpen {
			continue
		}
		busy[v.Session] = busy[v.Session] || v.State == ledger.VerifyOpen
		s.verify(v)
	}
}

func (s *Supervisor) verifySoon(d time.Duration) { s.after("verify", d, openVerifications{}) }

// verifyOn looks when a task is handed in, and when something happens to one whose
// verification is under way.
func (s *Supervisor) verifyOn(e ledger.Event) {
	if !strings.HasPrefix(e.What, "task.") {
		return
	}
	if e.What == "task.verify" {
		s.verifySoon(time.Millisecond)
		return
	}
	for _, r := range s.verifying {
		if r.task == e.ID {
			s.verifySoon(time.Millisecond)
			return
		}
	}
}

func (s *Supervisor) verify(v ledger.Verification) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.verifying[v.ID] = &verifying{v.Task, v.Session, cancel}
	s.step(func(context.Context) message {
		defer cancel()
		return verified{v, s.verifyNow(ctx, v)}
	})
}

// verified is the end of an attempt to verify. One that could not be written down is
// made again.
type verified struct {
	v   ledger.Verification
	err error
}

func (d verified) apply(s *Supervisor) {
	delete(s.verifying, d.v.ID)
	if d.err != nil {
		s.log.Warn("verify a task", "task", d.v.Task, "member", d.v.Name, "err", d.err)
		s.verifySoon(s.policy.Repair)
		return
	}
	s.verifySoon(time.Millisecond) // the next one of this owner
}

// verifyNow runs a verification and writes down what came of it, outside the loop. The
// end of ctx says that nobody waits for it any more, or that the supervisor ends: it
// stays open then, and is run again.
func (s *Supervisor) verifyNow(ctx context.Context, v ledger.Verification) error {
	if v.Generation != "" {
		if err := s.verifyLeft(v); err != nil {
			return err
		}
	}
	if v.State != ledger.VerifyOpen {
		return nil
	}
	select {
	case s.verifySlots <- struct{}{}:
		defer func() { <-s.verifySlots }()
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
	write, done := s.write()
	err = s.cfg.Ledger.BeginVerification(write, v.ID, job.generation, job.place())
	done()
	switch {
	case team.IsCode(err, team.CodeConflict), team.IsCode(err, team.CodeNotFound):
		return nil // it was taken back meanwhile
	case err != nil:
		return err
	}
	s.log.Info("verifying", "task", v.Task, "attempt", v.Attempt, "member", v.Name, "verification", v.ID)
	end, err := job.run(ctx, s.log)
	if err != nil { // something of it may be left: the next look ends that
		return err
	}
	write, done = s.write()
	defer done()
	if end.cut {
		return s.cfg.Ledger.AbandonVerification(write, v.ID, job.generation)
	}
	out, err := s.cfg.Ledger.EndVerification(write, end.VerifyEnd)
	if err != nil {
		return err
	}
	s.log.Info("verified", "task", v.Task, "member", v.Name, "passed", end.Passed, "why", end.Why, "counts", out.Counts)
	for _, m := range out.Mail {
		s.mailer().Deliver(write, m.Deliveries)
	}
	return nil
}
