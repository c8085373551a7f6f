package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor/delivery"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/team"
)

// machine simulates the processes of one machine: it outlives the supervisors of a test, as real
// agents outlive theirs. The behaviour of real backends is tested with real processes in
// backends/tmux and in cmd/teamctl.
type machine struct {
	mu     sync.Mutex
	live   map[team.Bundle]*agent
	starts int
	pids   int
	fail   error          // of the next starts
	blind  error          // of adoptions
	gate   chan struct{}  // when set, Start waits for it
	onStop func(a *agent) // default: exits by SIGTERM
	unstop error          // what a stop fails with, that ends nothing
	events chan string    // "start NAME"
	screen string         // what captured returns
	looks  int            // calls of it
}

type agent struct {
	m      *machine
	launch backends.Launch
	proc   backends.Proc
	mu     sync.Mutex
	exit   backends.Exit
	gone   chan struct{}
}

func newMachine() *machine {
	return &machine{live: map[team.Bundle]*agent{}, events: make(chan string, 100)}
}

func (m *machine) Name() string                    { return "tmux" }
func (m *machine) Check(context.Context) error     { return nil }
func (m *machine) CloseTeam(context.Context) error { return nil }
func (m *machine) Close() error                    { return nil }

func (m *machine) Start(ctx context.Context, l backends.Launch) (backends.Handle, error) {
	m.mu.Lock()
	gate, fail := m.gate, m.fail
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if fail != nil {
		return nil, fail
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old := m.live[l.Bundle]; old != nil && !old.ended() {
		panic("two generations of " + l.Agent)
	}
	m.starts++
	m.pids++
	a := &agent{m: m, launch: l, gone: make(chan struct{}), proc: backends.Proc{
		Generation: l.Generation, Agent: backends.ProcID{PID: 1000 + m.pids}, StartedAt: time.Now(),
	}}
	m.live[l.Bundle] = a
	m.events <- "start " + l.Agent
	return a, nil
}

func (m *machine) Adopt(_ context.Context, b team.Bundle) (backends.Attached, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blind != nil {
		return nil, m.blind
	}
	a := m.live[b]
	if a == nil || a.ended() {
		return nil, team.Errorf(team.CodeNotFound, "gone")
	}
	return a, nil
}

// agent returns the newest generation of a member.
func (m *machine) agent(l team.Layout, name string) *agent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[l.Bundle(name)]
}

func (a *agent) ended() bool {
	select {
	case <-a.gone:
		return true
	default:
		return false
	}
}

// end makes the agent exit.
func (a *agent) end(e backends.Exit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended() {
		return
	}
	e.Generation, e.At = a.launch.Generation, time.Now()
	a.exit = e
	close(a.gone)
}

func (a *agent) Launch() backends.Launch                      { return a.launch }
func (a *agent) Proc() backends.Proc                          { return a.proc }
func (a *agent) Pane() team.Pane                              { return team.Pane{PaneID: fmt.Sprint("%", a.proc.Agent.PID)} }
func (a *agent) Exited() <-chan struct{}                      { return a.gone }
func (a *agent) Exit() backends.Exit                          { return a.exit }
func (a *agent) Interrupt(context.Context) error              { return nil }
func (a *agent) TypeText(context.Context, string, bool) error { return nil }
func (a *agent) Capture(context.Context, int) (string, error) { return a.m.captured(), nil }
func (a *agent) Resize(context.Context, int, int) error       { return nil }
func (a *agent) Dispose(context.Context) error                { return nil }
func (a *agent) Detach()                                      {}
func (a *agent) Freeze(context.Context, bool) error           { return nil }
func (a *agent) Frozen() (bool, error)                        { return false, nil }
func (a *agent) Stop(context.Context, time.Duration) error {
	if a.m.unstop != nil {
		return a.m.unstop
	}
	if a.m.onStop != nil {
		a.m.onStop(a)
	} else {
		a.end(backends.Exit{Known: true, Code: -1, Signal: "SIGTERM"})
	}
	return nil
}

// plans implements Launcher.
type plans struct{ answers, reports, channel bool }

func (p plans) Plan(context.Context, PlanIn) (Plan, error) {
	return Plan{Argv: []string{"agent"}, AnswersShutdown: p.answers, ReportsReady: p.reports, Channel: p.channel}, nil
}

// rig is one team with a ledger of its own.
type rig struct {
	leadMail func()
	*testing.T
	layout team.Layout
	led    *ledger.Ledger
	db     *ledger.DB
	m      *machine
	plans  plans
	by     delivery.Courier
	policy policy.Policy
	idle   time.Duration
	notes  chan Note
	clock  policy.Clock
	log    *slog.Logger
	step   func(string) // of Config
}

func newRig(t *testing.T) *rig {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("t")
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		mkdir(t, d)
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock(), BusyTimeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	led := ledger.New(db, ledger.Direct(db))
	row, err := led.CreateTeam(t.Context(), ledger.TeamRow{Key: "t", Name: "t", LeadSession: team.LeadSessionKey("", "t")})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = led.AddMember(t.Context(), ledger.Member{
		SessionKey: row.LeadSession, Name: team.LeadName, Role: team.RoleLeader,
		Desired: team.WantStopped, Observed: team.Pending, Spec: team.MemberSpec{WorktreeMode: "none"},
	}, true)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, layout: l, led: led, db: db, m: newMachine(), policy: policy.Policy{
		FirstBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond, Jitter: -1,
		StopWait: 5 * time.Second, Grace: time.Second,
	}}
}

// mailer posts and mails like a process without a supervisor.
func (r *rig) mailer() mail.Mailer { return mail.Mailer{Layout: r.layout, Ledger: r.led} }

// look processes the lead's mail like a supervisor.
func (r *rig) look(context.Context) error {
	if r.leadMail != nil {
		r.leadMail()
	}
	return nil
}

// supervisor starts a supervisor on the rig's ledger and machine.
func (r *rig) supervisor() *Supervisor {
	r.Helper()
	s := New(Config{
		Layout: r.layout, Ledger: r.led, Backends: map[string]backends.Backend{"tmux": r.m},
		Launcher: r.plans, Policy: r.policy, Idle: r.idle, Notes: r.notes, Clock: r.clock, LeadMail: r.look, Log: r.log, Courier: r.by, step: r.step,
	})
	if err := s.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(s.Close)
	return s
}

func (r *rig) spawn(s *Supervisor, name string, restart team.RestartPolicy) ledger.Member {
	r.Helper()
	out, err := s.Spawn(r.Context(), team.SpawnRequest{Name: name, Spec: team.MemberSpec{
		Agent: "command", Command: []string{"agent"}, Restart: restart, WorktreeMode: "none", Cwd: r.layout.Dir,
	}})
	if err != nil {
		r.Fatal(err)
	}
	<-r.m.events
	return out.Member
}

// wait waits until the member's row satisfies ok; it wakes by the ledger's changes.
func (r *rig) wait(name string, what string, ok func(ledger.Member) bool) ledger.Member {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Minute)
	defer cancel()
	changes, stop, err := r.led.Changes(ctx)
	if err != nil {
		r.Fatal(err)
	}
	defer stop()
	again := time.NewTicker(250 * time.Millisecond) // for what ok does besides, and nobody took
	defer again.Stop()
	for {
		all, err := r.led.Members(ctx, true)
		if err != nil {
			r.Fatal(err)
		}
		var seen ledger.Member
		for _, m := range all {
			if m.Name == name {
				seen = m
			}
		}
		if ok(seen) {
			return seen
		}
		select {
		case <-changes:
		case <-again.C:
		case <-ctx.Done():
			r.Fatalf("%s is not %s: %+v", name, what, seen)
		}
	}
}

func (r *rig) waitState(name string, o team.Observed) ledger.Member {
	r.Helper()
	return r.wait(name, string(o), func(m ledger.Member) bool { return m.Observed == o })
}

func (r *rig) exitFile(name string, e backends.Exit) {
	r.Helper()
	mkdir(r.T, string(r.layout.Bundle(name)))
	if err := bundle.WriteExit(r.layout.Bundle(name), e); err != nil {
		r.Fatal(err)
	}
}

func encode(r *rig, f inbox.Frame) string {
	r.Helper()
	text, err := inbox.Encode(f)
	if err != nil {
		r.Fatal(err)
	}
	return text
}
