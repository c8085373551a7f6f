package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/supervisor/rename"
	"github.com/teamctl/teamctl/supervisor/rest"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/supervisor/trees"
	"github.com/teamctl/teamctl/supervisor/usage"
	"github.com/teamctl/teamctl/team"
)

// Config configures a Supervisor.
type Config struct {
	Layout   team.Layout
	Ledger   *ledger.Ledger
	Backends map[string]backends.Backend // by name
	Launcher Launcher
	Log      *slog.Logger
	Env      []string         // the base of the agents' environment
	Version  string           // shown in Status
	Idle     time.Duration    // exit after this time with nothing to supervise; 0: never
	Policy   policy.Policy    // zero value: the defaults
	Notify   string           // datagram socket that shims and agents report to
	Notes    <-chan Note      // their datagrams; may be nil
	Clock    policy.Clock     // zero value: the machine's
	Before   Before           // what is known about the directory's past
	Courier  delivery.Courier // opens channels to foreign agents; may be nil
	Woken    func()           // called, in the loop, when the ledger has changed; may be nil
	// LeadMail is called, outside the loop and one call at a time, when the lead's mailbox has
	// changed, and once at the start; may be nil.
	LeadMail func(ctx context.Context) error

	step func(name string) // called by tests
}

// Note is one datagram of a shim or agent.
type Note struct {
	Agent      string
	Generation string
	Event      string // "ready", "seen", ...
	Data       []byte // of "seen": an observation as JSON
}

// Supervisor supervises one team. Its methods are safe for concurrent use; they fail with
// ErrStopped once it has ended.
type Supervisor struct {
	cfg     Config
	policy  policy.Policy
	clock   policy.Clock
	log     *slog.Logger
	msgs    chan message
	started time.Time
	life
	output  *rest.Watcher
	starts  chan struct{} // limits concurrent starts; used by steps
	trees   trees.Trees
	renames *rename.Renames // used by steps

	// The following fields belong to the loop.
	team     ledger.TeamRow
	members  map[string]*member // by session key
	lastSeq  int64              // newest event seen
	timers   map[string]*time.Timer
	quitting bool
	moment   policy.Moment // of the last jump of the wall clock, or of the start
	looking  time.Duration // duration of the last look at the ledger
	traces   traces
	serving
}

// life is the lifetime of a supervisor and its work beside the loop.
type life struct {
	done   chan struct{}   // closed when the loop has ended
	ctx    context.Context // ends when the loop does; bounds steps
	cancel context.CancelFunc
	work   sync.WaitGroup // steps and watches
}

// serving has the services; those used by the core have a name.
type serving struct {
	checkpoints *services.Checkpoints
	publisher   *services.Publisher
	copies      *services.Copies
	joined      *services.Joined
	offers      *services.Offers
	intents     *services.Intents
	delivery    *delivery.Delivery
	services    []loop.Service // all of them
}

// ErrStopped reports that the supervisor has ended.
var ErrStopped = team.Errorf(team.CodeUnavailable, "the supervisor has stopped").WithReason(team.ReasonSupervisorGone)

// New makes a supervisor; Start starts it.
func New(cfg Config) *Supervisor {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Supervisor{
		cfg: cfg, policy: cfg.Policy.WithDefaults(), clock: cfg.Clock.WithDefaults(), log: cfg.Log,
		msgs: make(chan message), life: life{done: make(chan struct{}), ctx: ctx, cancel: cancel},
		members: map[string]*member{}, timers: map[string]*time.Timer{},
		starts: make(chan struct{}, cfg.Policy.WithDefaults().Starts),
	}
	s.output = rest.New(s.policy.Settle, func(session, gen string) { s.send(settledOutput{session, gen}) })
	s.serve()
	return s
}

// serve creates the services.
func (s *Supervisor) serve() {
	t := s.parts()
	s.trees = trees.New(s.ctx, t)
	s.renames = rename.New(rename.Options{Team: t, Alive: s.stillAlive, Dispose: s.dispose, Step: s.cfg.step})
	git := services.NewSlots()
	s.checkpoints = services.NewCheckpoints(t, git)
	s.publisher, s.copies = services.NewPublisher(t), services.NewCopies(t, s.policy.CopyEvery, s.policy.CopyRest)
	s.joined = services.NewJoined(t, s.clock.Wall)
	s.offers = services.NewOffers(t, s.policy.Offer, s.policy.OfferAgain)
	s.intents = services.NewIntents(t, s.policy.Repair, s.spawnApproved)
	used := usage.New(t, s.retrySoon)
	s.delivery = delivery.New(delivery.Options{
		Team: t, Core: bus{s}, Usage: used, Courier: s.cfg.Courier, Policy: s.policy.ServicePolicy, Wall: s.clock.Wall,
	})
	used.Serve(s.delivery)
	boot := func() (string, error) {
		id, _, err := s.clock.SinceBoot()
		return id, err
	}
	s.services = []loop.Service{
		services.NewMailboxes(t, s.policy.Repair, s.cfg.LeadMail, boot), services.NewLitter(t), services.NewExpiry(t), s.joined,
		s.publisher, s.checkpoints, services.NewOverlaps(t, git, s.policy.Edits), services.NewNotifications(t), services.NewStalls(t), services.NewStranded(t),
		services.NewWALWatch(t, s.policy.Log, s.policy.LogPause, s.policy.LogRest), s.copies, services.NewLeftovers(t), services.NewTotals(t),
		services.NewHooks(t, s.cfg.Env), s.offers, s.intents,
		services.NewVerifications(t, s.policy.Repair, verifyPlace{s}),
		s.delivery, used, // closed first: usage counts what channels report
	}
}

// startServices starts the services before the loop: adoption uses some.
func (s *Supervisor) startServices(ctx context.Context) {
	for _, one := range s.services {
		if err := one.Start(ctx, bus{s}); err != nil {
			s.log.Warn("start a service", "service", fmt.Sprintf("%T", one), "err", err)
		}
	}
}

func (s *Supervisor) lookServices(roster bool) {
	for _, one := range s.services {
		one.Looked(roster)
	}
}

func (s *Supervisor) closeServices() {
	for _, one := range slices.Backward(s.services) {
		one.Close()
	}
}

// Start reads the ledger, adopts living generations, and starts the loop. ctx bounds only the
// start.
func (s *Supervisor) Start(ctx context.Context) error {
	row, err := s.cfg.Ledger.Team(ctx)
	if err != nil {
		return err
	}
	s.team, s.started, s.moment = row, time.Now(), s.clock.Now()
	s.startServices(ctx)
	_ = s.renames.Left(ctx) // logged; tried again before the member starts
	rows, err := s.cfg.Ledger.Members(ctx, false)
	if err != nil {
		return err
	}
	s.lastSeq, err = s.cfg.Ledger.LastEvent(ctx)
	if err != nil {
		return err
	}
	changes, stop, err := s.cfg.Ledger.Changes(s.ctx)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Name != team.LeadName && !team.KindOf(r.Spec.Agent).External {
			s.members[r.SessionKey] = &member{row: r}
		}
	}
	s.adoptAll(ctx)
	go s.loop(changes, stop)
	return nil
}

// parts returns what the parts of the supervisor work with.
func (s *Supervisor) parts() loop.Team {
	return loop.Team{Layout: s.cfg.Layout, Ledger: s.cfg.Ledger, Log: s.log}
}

// mailer posts and mails from the supervisor's process.
func (s *Supervisor) mailer() mail.Mailer {
	return s.parts().Mailer()
}

// Done is closed when the supervisor has ended: idle, told to quit, or stopped.
func (s *Supervisor) Done() <-chan struct{} { return s.done }

// Close ends the supervisor and waits for its steps; agents keep running.
func (s *Supervisor) Close() {
	s.cancel()
	<-s.done
	s.work.Wait()
}

// loop is the goroutine that owns the state.
func (s *Supervisor) loop(changes <-chan struct{}, stopChanges func()) {
	defer close(s.done)
	defer s.cancel()
	defer stopChanges()
	defer s.output.Close()
	defer s.dropWords()
	defer s.closeServices()
	defer s.stopTimers()
	for _, m := range s.members {
		s.reconcile(m)
	}
	own := s.team.Repo
	s.step(func(ctx context.Context) message {
		s.trees.Repair(ctx, own)
		return nil
	})
	for _, one := range s.services {
		one.Ready()
	}
	s.stopsLeft()
	s.armIdle()
	notes := s.cfg.Notes
	for !s.quitting {
		select {
		case <-s.ctx.Done():
			return
		case <-changes:
			s.lookForJump()
			s.onLedgerChange()
		case n, ok := <-notes:
			if !ok {
				notes = nil
				continue
			}
			s.lookForJump()
			s.onNote(n)
		case msg := <-s.msgs:
			s.lookForJump()
			began := time.Now()
			msg.apply(s)
			s.trace(describe(msg), began)
		}
		s.armIdle()
		s.armLease()
	}
}

// message is an input of the loop; apply runs on the loop.
type message interface{ apply(*Supervisor) }

// send passes a message to the loop; it returns false if the loop has ended.
func (s *Supervisor) send(m message) bool {
	select {
	case s.msgs <- m:
		return true
	case <-s.done:
		return false
	}
}

// step runs f outside the loop and sends its message to the loop.
func (s *Supervisor) step(f func(ctx context.Context) message) {
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		if m := f(s.ctx); m != nil {
			s.send(m)
		}
	}()
}

// after sends the message once d has passed; it replaces a timer of the same name, and d <= 0 only
// stops that timer.
func (s *Supervisor) after(name string, d time.Duration, m message) {
	if t := s.timers[name]; t != nil {
		t.Stop()
		delete(s.timers, name)
	}
	if d <= 0 {
		return
	}
	s.timers[name] = time.AfterFunc(d, func() { s.send(m) })
}

func (s *Supervisor) stopTimers() {
	for _, t := range s.timers {
		t.Stop()
	}
}

// write returns the context for writes of the loop itself to the ledger.
func (s *Supervisor) write() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
}

// patch writes to a member's row and keeps the row in sync with the ledger.
func (s *Supervisor) patch(m *member, p ledger.MemberPatch) error {
	ctx, cancel := s.write()
	defer cancel()
	p.SessionKey = m.row.SessionKey
	if p.Notice != nil {
		p.Notice.MessageID = team.NewUUID()
	}
	row, err := s.cfg.Ledger.UpdateMember(ctx, p)
	if err != nil {
		s.log.Error("write member", "member", m.row.Name, "err", err)
		return err
	}
	m.row = row
	if p.Notice != nil {
		s.mailNotice(p.Notice.MessageID)
	}
	return nil
}

// byName finds members; an unknown name is CodeNotFound, and the error lists the known ones.
func (s *Supervisor) byName(names []string) ([]*member, error) {
	var out []*member
	if len(names) == 0 {
		for _, m := range s.members {
			out = append(out, m)
		}
		sortMembers(out)
		return out, nil
	}
	for _, n := range names {
		m := s.find(n)
		if m == nil {
			var have []string
			for _, m := range s.members {
				have = append(have, m.row.Name)
			}
			return nil, unknownMember(n, have)
		}
		out = append(out, m)
	}
	return out, nil
}

func (s *Supervisor) find(name string) *member {
	for _, m := range s.members {
		if m.row.Name == name || m.row.AgentID == name || m.row.SessionKey == name {
			return m
		}
	}
	ctx, cancel := s.write()
	defer cancel()
	if row, err := s.cfg.Ledger.Member(ctx, name); err == nil { // by its former name
		return s.members[row.SessionKey]
	}
	return nil
}

// ask runs f on the loop and waits for its answer.
func ask[T any](ctx context.Context, s *Supervisor, f func(reply func(T, error))) (T, error) {
	type answer struct {
		v   T
		err error
	}
	ch := make(chan answer, 1)
	var once sync.Once
	call := call(func(*Supervisor) {
		f(func(v T, err error) { once.Do(func() { ch <- answer{v, err} }) })
	})
	var zero T
	select {
	case s.msgs <- call:
	case <-s.done:
		return zero, ErrStopped
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
	select {
	case a := <-ch:
		return a.v, a.err
	case <-s.done:
		select { // the answer may have come just before the end
		case a := <-ch:
			return a.v, a.err
		default:
			return zero, ErrStopped
		}
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}
}

// call is a request: a function to be run on the loop.
type call func(*Supervisor)

func (c call) apply(s *Supervisor) { c(s) }

// IsStopped reports whether err means that the supervisor has ended.
func IsStopped(err error) bool {
	return errors.Is(err, ErrStopped) || team.ReasonOf(err) == "supervisor_gone"
}
