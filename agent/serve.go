package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Sessions is the part of the ledger that Serve uses; *ledger.Ledger implements it.
type Sessions interface {
	OpenSession(ctx context.Context, in ledger.NewSession) (ledger.Session, error)
	TakeIn(ctx context.Context, in ledger.TakeIn) (ledger.TakenIn, error)
	TurnJobs(ctx context.Context, f ledger.JobFilter) ([]ledger.TurnJob, error)
	NewestTurn(ctx context.Context, session string) (turn ledger.TurnJob, ok bool, err error)
	ClaimTurn(ctx context.Context, in ledger.ClaimTurnIn) (*ledger.ClaimedTurn, error)
	SteerTurn(ctx context.Context, s ledger.TurnSteer) (ledger.SteeredTurn, error)
	RecoverTurns(ctx context.Context, member, generation string) ([]ledger.TurnJob, error)
	YieldTurn(ctx context.Context, ref ledger.TurnRef, why string) error
	ResumeTurn(ctx context.Context, ref ledger.TurnRef) (ok bool, err error)
	Backlog(ctx context.Context, session string) ([]ledger.BacklogItem, error)
	RenewTurns(ctx context.Context, member, generation string, lease time.Duration) (int64, error)
}

// Turns runs the turns of sessions; *llm.Runner implements it.
type Turns interface {
	Turn(ctx context.Context, turn ledger.ClaimedTurn, desk llm.Desk) (llm.Outcome, error)
}

// ServeIn is the input of Serve. Sessions and Turns are required.
type ServeIn struct {
	Sessions  Sessions
	Turns     Turns
	Model     team.SpecModel  // of a new session; zero: from its spec
	First     string          // first entry of a new session: the team, the role, the members
	Prompt    string          // first message, may be empty
	Interrupt <-chan struct{} // interrupts the current turn
	Quota     Quota           // nil: no budgets and limits apply
	// Hide replaces known secrets in incoming text; nil: none.
	Hide func(text string) string
	// Keep writes a text that is too long for an entry to a file, and returns the replacement
	// for the entry and the file's name, "" for a text that stays in its entry; nil: all do.
	Keep func(text string) (short, name string)
	// Aside returns the evidence for accepting a message that does not enter the conversation,
	// or "" for one that does; nil: all do.
	Aside func(ctx context.Context, m ledger.Message) (evidence string)
}

const (
	// cancelWithin bounds the writes of a turn after it was told to end.
	cancelWithin = 30 * time.Second
)

// Serve runs the turns of an agent's sessions until a shutdown request has been approved (nil) or
// ctx ends. Mail is taken into the session of the member, each message in the same commit as its
// receipt and the turn that it begins: after a kill it is either unread or in the transcript once.
// A turn interrupted by the end of ctx continues in the next life.
func Serve(ctx context.Context, id Identity, env Env, in ServeIn) error {
	if in.Hide == nil {
		in.Hide = func(text string) string { return text }
	}
	s := &server{
		limits: newLimits(newWorker(id, env), in.Quota), in: in, kept: map[string]inFile{}, running: map[*running]bool{}, asks: make(chan ask), ended: make(chan *running),
	}
	changes, stop, err := env.Ledger.ChangesFor(ctx, id.Session)
	if err != nil {
		return fmt.Errorf("agent %s: watch the ledger: %w", id.AgentID, err)
	}
	defer stop()
	s.changes = changes
	s.did(ctx)
	err = s.loop(ctx)
	s.endTurns(context.Cause(ctx))
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		s.out.line("%s: stopped: %v", id.AgentID, err)
		return fmt.Errorf("agent %s: %w", id.AgentID, err)
	}
	return nil
}

// server is one life of Serve. Everything in it except asks and ended belongs to the goroutine of
// Serve; turns reach the rest by a desk.
type server struct {
	limits
	in      ServeIn
	kept    map[string]inFile // by the key of a letter that waits
	running map[*running]bool // not by turn: the goroutine of a turn outlives its end in the ledger for a moment, and the turn may have begun again
	asks    chan ask
	ended   chan *running
	first   bool // the session is empty
	goesOn  bool // a turn of an earlier life does
	waiting int  // turns waiting for people
	ending  bool // all turns are being ended: none begins
	due     bool // there may be queued turns
	looks   bool // a look at the queue is put off
	wake    sync.Mutex
	woken   chan struct{} // closed at the next change; nil while no turn waits
	next    int64         // due time of the next queued turn, Unix milliseconds; 0: none
	told    int64         // id of the newest typed line whose delay was shown
	renewed time.Time     // when the leases of the running turns were last known to be fresh
}

// running is a running turn.
type running struct {
	job    ledger.TurnJob
	cancel context.CancelCauseFunc
	out    llm.Outcome
	err    error
}

// ask is a function that a turn passes to the goroutine of Serve.
type ask struct {
	do   func(context.Context)
	done chan struct{}
}

func (s *server) loop(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if s.env.Ready != nil {
		s.env.Ready()
	}
	s.due = true
	if s.goesOn { // before its mail is read: what steers is taken in at a boundary
		if err := s.claimTurns(ctx); err != nil {
			return err
		}
	}
	for {
		s.again = 0
		stop, err := s.takeMail(ctx)
		if stop || err != nil {
			return err
		}
		if err := s.claimTurns(ctx); err != nil {
			return err
		}
		if len(s.running) == 0 && !s.due {
			s.rest(ctx)
		}
		if err := s.await(ctx); err != nil {
			return err
		}
	}
}

// begin opens the member's session, and queues the turns of an earlier life again.
func (s *server) begin(ctx context.Context) error {
	if _, err := s.env.Commands.Sweep(ctx); err != nil {
		s.out.line("end what an earlier life was running: %v", err)
	}
	var back []ledger.TurnJob
	err := s.write(ctx, "recover turns", func(c context.Context) (err error) {
		back, err = s.in.Sessions.RecoverTurns(c, s.id.Session, s.id.Generation)
		return err
	})
	if err != nil {
		return err
	}
	for _, j := range back {
		if j.State == team.TurnFailed {
			s.tellFailed(ctx, j.ID, j.Reason)
			continue
		}
		s.goesOn = true
		s.out.line("turn %d goes on (attempt %d)", j.ID, j.Attempt)
	}
	if err := s.tellLast(ctx); err != nil {
		return err
	}
	if err := s.lookQueue(ctx); err != nil { // for wakes that are still to come
		return err
	}
	var session ledger.Session
	err = s.write(ctx, "open the session", func(c context.Context) (err error) {
		session, err = s.in.Sessions.OpenSession(c, ledger.NewSession{
			Key: s.id.Session, Member: s.id.Session, Provider: s.in.Model.Provider, Model: s.in.Model.Model, Label: s.id.Name,
		})
		return err
	})
	s.first = session.LastSeq == 0 && s.in.First != ""
	if err != nil || s.in.Prompt == "" {
		return err
	}
	return s.takeIn(ctx, ledger.TakeIn{Session: s.id.Session, Inputs: []ledger.Input{{NewEntry: ledger.NewEntry{
		Kind: ledger.EntryUser, Content: s.in.Hide(s.in.Prompt), Source: "prompt",
	}}}}, nil)
}

// claim is what claims a turn for this process, and shows the member as working unless it is already
// or waits.
func (s *server) claim() *ledger.ClaimTurnIn {
	return &ledger.ClaimTurnIn{Member: s.id.Session, Generation: s.id.Generation, Working: s.waiting == 0 && s.activity != team.Working}
}

// claimed starts what a claim has claimed; nil: nothing.
func (s *server) claimed(ctx context.Context, in *ledger.ClaimTurnIn, turn *ledger.ClaimedTurn) {
	if turn == nil {
		return
	}
	if in.Working {
		s.activity = team.Working
	}
	s.start(ctx, *turn)
}

// claimTurns starts due turns, as far as their lanes permit.
func (s *server) claimTurns(ctx context.Context) error {
	for s.due {
		var turn *ledger.ClaimedTurn
		in := s.claim()
		err := s.write(ctx, "claim a turn", func(c context.Context) (err error) {
			turn, err = s.in.Sessions.ClaimTurn(c, *in)
			return err
		})
		if err != nil {
			return err
		}
		if turn == nil {
			s.due = false
			break
		}
		s.claimed(ctx, in, turn)
	}
	if len(s.running) > 0 {
		s.notified, s.broken, s.failed = false, false, ""
		if s.waiting == 0 {
			s.setActivity(ctx, team.Working)
		}
	}
	return nil
}

// start runs a turn in a goroutine of its own.
func (s *server) start(ctx context.Context, turn ledger.ClaimedTurn) *running {
	c, cancel := context.WithCancelCause(ctx)
	r := &running{job: turn.Job, cancel: cancel}
	if len(s.running) == 0 {
		s.renewed = time.Now() // its claim has set the lease; those of turns that begin later are newer
	}
	s.running[r] = true
	go func() {
		r.out, r.err = s.in.Turns.Turn(c, turn, &desk{server: s, run: r})
		s.ended <- r
	}()
	return r
}

// errGivenBack ends a turn that this process does not begin: it is queued again.
var errGivenBack = errors.New("given back")

// settle handles the end of a turn.
func (s *server) settle(ctx context.Context, r *running) error {
	r.cancel(nil)
	delete(s.running, r)
	s.due = true
	if r.out.Next != nil {
		s.start(ctx, *r.out.Next)
	}
	if r.err != nil && ctx.Err() == nil {
		if !lost(r.err) {
			return fmt.Errorf("turn %d: %w", r.job.ID, r.err)
		}
		s.out.line("turn %d is no longer ours: %v", r.job.ID, r.err)
	}
	if r.job.Session == s.id.Session {
		s.failed = cut(oneLine(r.out.Failed), maxFailure)
		s.broken = r.out.State == team.TurnCancelled
	}
	switch {
	case r.out.Failed == "":
	case r.job.Session == s.id.Session:
		s.tellFailed(ctx, r.job.ID, r.out.Failed)
	default: // its parent is told
		s.out.line("turn %d of a child failed: %s", r.job.ID, r.out.Failed)
	}
	if s.quota != nil {
		s.quota.Used(ctx, team.Usage{})
	}
	return nil
}

// tellFailed notifies the lead of a failed turn with the reason, once for each turn.
func (s *server) tellFailed(ctx context.Context, turn int64, why string) {
	s.out.line("turn %d failed: %s", turn, why)
	if s.id.Name == team.LeadName {
		return
	}
	s.post(ctx, "the failure of a turn", ledger.NewMessage{
		Kind: team.KindError, To: team.LeadName, IdemKey: fmt.Sprintf("turn_failed:%s:%d", s.id.Session, turn),
		Text: fmt.Sprintf("turn %d of %s failed: %s", turn, s.id.Name, why), Summary: cut(fmt.Sprintf("turn %d failed: %s", turn, oneLine(why)), maxSummary),
	})
}

// tellLast reports a failed turn whose process was killed before it could.
func (s *server) tellLast(ctx context.Context) error {
	var last ledger.TurnJob
	err := s.retry(ctx, "read the newest turn", func(c context.Context) (err error) {
		last, _, err = s.in.Sessions.NewestTurn(c, s.id.Session)
		return err
	})
	if err == nil && last.State == team.TurnFailed {
		s.tellFailed(ctx, last.ID, last.Reason)
	}
	return err
}

// endTurns ends the running turns and waits for them; it serves their asks meanwhile.
func (s *server) endTurns(cause error) {
	if cause == nil {
		cause = llm.ErrShutdown
	}
	s.ending = true
	defer func() { s.ending = false }()
	for r := range s.running {
		r.cancel(cause)
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelWithin)
	defer cancel()
	for len(s.running) > 0 {
		select {
		case a := <-s.asks:
			a.do(ctx)
			close(a.done)
		case r := <-s.ended:
			r.cancel(nil)
			delete(s.running, r)
			if r.out.Next != nil { // its end had claimed it already
				s.start(ctx, *r.out.Next).cancel(errGivenBack)
			}
		}
	}
}

// await returns when there is something to do. It serves the asks of turns meanwhile.
func (s *server) await(ctx context.Context) error {
	var retry, look, renew <-chan time.Time
	var renewal *time.Timer
	if len(s.running) > 0 { // after the last renewal, not after this call began: in a busy team each call is shorter
		renewal = time.NewTimer(renewEvery - time.Since(s.renewed))
		defer renewal.Stop()
		renew = renewal.C
	}
	if wait := s.pause(); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		retry = t.C
	}
	changed := func() bool { // at least lookEvery after the last check
		d := lookEvery - time.Since(s.lastLook)
		if d <= 0 {
			s.lastLook = time.Now()
			return true
		}
		if look == nil {
			look, s.looks = time.After(d), true
		}
		return false
	}
	if s.due {
		return nil
	}
	if s.looks {
		look = time.After(lookEvery - time.Since(s.lastLook))
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.asks:
			a.do(ctx)
			close(a.done)
		case r := <-s.ended:
			return s.settle(ctx, r)
		case <-s.in.Interrupt:
			s.interrupt()
		case _, ok := <-s.changes:
			if !ok {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return errors.New("the watch of the ledger ended")
			}
			s.wakeTurns()
			if changed() {
				return s.lookQueue(ctx)
			}
		case _, ok := <-s.env.Mail:
			if !ok {
				s.env.Mail = nil
			}
			s.wakeTurns()
			if changed() {
				return nil
			}
		case <-look:
			s.lastLook = time.Now()
			return s.lookQueue(ctx)
		case <-renew:
			s.renew(ctx)
			renewal.Reset(renewEvery)
		case <-retry:
			s.due = true
			return nil
		}
	}
}

// renew renews the leases of the member's running turns, which nothing else does, and of its tasks.
func (s *server) renew(ctx context.Context) {
	c, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	s.renewed = time.Now() // also after an error: the next one is due in time, and a lease lasts for several
	_, _ = s.in.Sessions.RenewTurns(c, s.id.Session, s.id.Generation, ledger.Lease)
	_, _ = s.env.Ledger.RenewLeases(c, []string{s.id.Session}, ledger.Lease)
}

// pause returns the time until the next scheduled action; 0: none.
func (s *server) pause() time.Duration {
	wait := s.again
	if s.next > 0 {
		left := max(time.UnixMilli(s.next).Sub(s.env.Now()), time.Millisecond)
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait
}

// lookQueue reads which of the member's turns are due, and which one is to be interrupted: a claim
// takes the writers' lock, reading does not.
func (s *server) lookQueue(ctx context.Context) error {
	s.looks = false
	var open []ledger.TurnJob
	err := s.retry(ctx, "look for turns", func(c context.Context) (err error) {
		open, err = s.in.Sessions.TurnJobs(c, ledger.JobFilter{Member: s.id.Session, Open: true})
		return err
	})
	if err != nil {
		return err
	}
	s.next = 0
	now := s.env.Now().UnixMilli()
	for _, j := range open {
		r := s.turnOf(j.Session)
		switch {
		case r != nil && r.job.ID == j.ID && j.Cancel != "":
			r.cancel(llm.ErrInterrupted)
		case j.State == team.TurnQueued && j.NotBefore > now:
			if s.next == 0 || j.NotBefore < s.next {
				s.next = j.NotBefore
			}
		case j.State == team.TurnQueued && r == nil:
			s.due = true
		}
	}
	return nil
}

// interrupt interrupts the turn of the member's own session, on a person's request.
func (s *server) interrupt() {
	if r := s.turnOf(s.id.Session); r != nil {
		r.cancel(llm.ErrInterrupted)
	}
}

// turnOf returns the newest turn of a session that runs in this process, in its last attempt; nil if
// there is none.
func (s *server) turnOf(session string) (newest *running) {
	for r := range s.running {
		if r.job.Session == session && (newest == nil || r.job.ID > newest.job.ID || r.job.ID == newest.job.ID && r.job.Attempt > newest.job.Attempt) {
			newest = r
		}
	}
	return newest
}
