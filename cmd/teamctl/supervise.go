package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent"
	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/inproc"
	"github.com/teamctl/teamctl/backends/pty"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/courier/codex"
	"github.com/teamctl/teamctl/internal/courier/hook"
	"github.com/teamctl/teamctl/internal/courier/opencode"
	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// envIdle sets how long a supervisor with nothing to supervise keeps running, as a Go duration.
const envIdle = "TEAMCTL_SUPERVISOR_IDLE"

const defaultIdle = 30 * time.Second

// envClock names a file with the offset of the supervisor's wall clock as a Go duration, read at
// every use, so that tests can move the clock of a running supervisor.
const envClock = "TEAMCTL_TEST_CLOCK"

// testClock returns the machine's clock, or a shifted one if envClock is set.
func testClock() policy.Clock {
	path := os.Getenv(envClock)
	if path == "" {
		return policy.Clock{}
	}
	return policy.Clock{Wall: func() time.Time {
		text, err := os.ReadFile(path) // whoever sets this environment may name a file
		if err != nil {
			return time.Now()
		}
		by, _ := time.ParseDuration(strings.TrimSpace(string(text)))
		return time.Now().Add(by)
	}}
}

func newSupervise(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Short:  "Supervise a team (started by the commands that need it)",
		Hidden: true,
		Args:   takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The process holds little memory for a long time: idle memory costs more than collecting
			// it.
			debug.SetGCPercent(50)
			direct := os.Getenv(control.EnvReady) == ""
			ready := control.Ready()
			manager := sdNotifier()
			err := a.supervise(cmd.Context(), direct, func() error {
				ready(nil)
				return manager("READY=1")
			})
			_ = manager("STOPPING=1") // the service manager may not listen
			if err != nil {
				ready(err)
			}
			return err
		},
	}
}

// supervise is the supervisor's process. direct reports that a service manager started it and not
// a command of teamctl.
func (a *app) supervise(ctx context.Context, direct bool, listening func() error) error {
	key, err := team.TeamKey(a.team)
	if err != nil {
		return err
	}
	home, err := findHome()
	if err != nil {
		return err
	}
	exe, err := executable()
	if err != nil {
		return err
	}
	if direct {
		if err := a.completeEnv(home.Team(key)); err != nil {
			return err
		}
	}
	idle := defaultIdle
	if s := os.Getenv(envIdle); s != "" {
		if idle, err = time.ParseDuration(s); err != nil {
			return team.Errorf(team.CodeInvalid, "read %s: %w", envIdle, err)
		}
	}
	log := slog.New(slog.NewJSONHandler(a.out.stderr, &slog.HandlerOptions{Level: slog.LevelInfo})).With("pid", os.Getpid())
	if err := cgroup.Leave(); err != nil {
		log.Warn("cannot leave the control group of the agent that started me", "err", err)
	}
	p := parts{exe: exe, idle: idle, home: home, layout: tool.Canonical(ctx, home.Team(key)), log: log}
	up := func() {
		if err := listening(); err != nil {
			log.Warn("notify the service manager", "err", err)
		}
	}
	err = control.Serve(ctx, control.ServeIn{Layout: p.layout, Log: log, Build: p.build, Hook: quietHook(exe, p.layout), Listening: up})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // asked to exit: the members keep running
	}
	return err
}

// completeEnv adds to a supervisor that was started directly what its environment lacks of the
// person's. A member's environment would contain the member's own variables.
func (a *app) completeEnv(l team.Layout) error {
	if a.origin(l) == control.FromMember {
		return team.Errorf(team.CodeDenied, "a member cannot run the supervisor: it would have the member's environment").
			WithReason(team.ReasonNotAPerson).WithHint("teamctl ps starts one with the person's")
	}
	return control.Complete(l)
}

// leadArgv is the program in the lead's pane of a team's own tmux session.
func leadArgv(exe string, l team.Layout) []string {
	return []string{exe, "board", "--pane", "--team", l.Key}
}

// lineArgv is the command of the line in the status of the team's own session.
func lineArgv(exe string, l team.Layout) []string {
	return []string{exe, "status", "--format", "tmux", "--team", l.Key}
}

// parts creates what a supervisor works with.
type parts struct {
	exe    string
	idle   time.Duration
	home   team.Home // as callers in this process find it
	layout team.Layout
	log    *slog.Logger
}

func (p parts) build(ctx context.Context, inside control.Inside, cfg *supervisor.Config) (func(), error) {
	notifier, err := bundle.Listen(p.layout.NotifySocket())
	if err != nil {
		return nil, err
	}
	hub := &dirwatch.Hub{Degraded: func(reason error) {
		if reason == nil {
			p.log.Info("in-process workers watch for changes again")
			return
		}
		p.log.Warn("in-process workers cannot watch for changes: they look once a second", "err", reason, "hint", dirwatch.Advice)
	}}
	tm := tmux.New(tmux.Options{
		Layout: p.layout, ShimArgv: []string{p.exe, "shim"}, LeadArgv: leadArgv(p.exe, p.layout), LineArgv: lineArgv(p.exe, p.layout),
		Notifier: notifier, Log: p.log,
	})
	if from := cfg.Before.From; from != "" && from != p.layout.Dir {
		old := tmux.New(tmux.Options{Layout: team.LayoutAt(from), Log: p.log})
		cfg.Before.Close = func(ctx context.Context) error { return errors.Join(old.CloseTeam(ctx), old.Close()) }
	}
	pt := pty.New(pty.Options{Layout: p.layout, ShimArgv: []string{p.exe, "shim"}, Notifier: notifier, Log: p.log})
	in := inproc.New(inproc.Options{Layout: p.layout, Run: runInProcess(ctx, hub, p.join(inside)), Log: p.log})
	notes, stop := relay(notifier)
	cfg.Backends = map[string]backends.Backend{tm.Name(): tm, pt.Name(): pt, in.Name(): in}
	cfg.Launcher = launcher{exe: p.exe, home: p.layout.Home, log: p.log}
	post := courier.New(p.log, courier.Openers{adapter.WayAppServer: codex.Open, adapter.WayServer: opencode.Open, adapter.WayHooks: hook.Open})
	cfg.Courier = couriers{Courier: post, exe: p.exe, env: func() []string { return cfg.Env }}
	cfg.Version = readVersion().Version
	cfg.Idle = p.idle
	cfg.Clock = testClock()
	cfg.Notify = notifier.Path()
	cfg.Notes = notes
	cfg.Woken = p.alsoLook(cfg.Woken, notifier) // every start begins with a change of the ledger
	mail := tool.Team{Env: &tool.Env{Home: p.layout.Home}, Layout: p.layout, Ledger: cfg.Ledger}
	cfg.LeadMail = mail.AskedTaker()
	return func() {
		stop()
		post.Close()
		if err := errors.Join(tm.Close(), pt.Close(), in.Close(), notifier.Close()); err != nil {
			p.log.Warn("release", "err", err)
		}
	}, nil
}

// alsoLook recreates a deleted notification socket whenever woken is called.
func (p parts) alsoLook(woken func(), n *bundle.Notifier) func() {
	return func() {
		if woken != nil {
			woken()
		}
		switch renewed, err := n.Look(); {
		case err != nil:
			p.log.Warn("make the deleted notification socket anew", "err", err)
		case renewed:
			p.log.Info("the notification socket was deleted: listening anew", "socket", n.Path())
		}
	}
}

// relay turns the events of the notification socket into the supervisor's notes.
func relay(n *bundle.Notifier) (<-chan supervisor.Note, func()) {
	events, cancel := n.Subscribe("", "")
	notes := make(chan supervisor.Note, 64)
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		defer close(notes)
		for e := range events {
			select {
			case notes <- supervisor.Note{Agent: e.Agent, Generation: e.Generation, Event: e.Event, Data: e.Data}:
			case <-quit:
				return
			}
		}
	})
	return notes, func() {
		close(quit)
		cancel()
		done.Wait()
	}
}

// join returns how agents in this process open their team: its ledger is the supervisor's, and they
// write and mail as it does.
func (p parts) join(inside control.Inside) opener {
	o := opener{ledgers: new(ledger.Shared), writer: func(l team.Layout, direct ledger.Writer) (ledger.Writer, tool.Settler) {
		if l.Dir != p.layout.Dir {
			return control.Writer(l, direct)
		}
		return inside.Writer, inside.Mail
	}}
	o.ledgers.Lend(p.home.Team(p.layout.Key).Ledger(), inside.DB)
	return o
}

// runInProcess runs a built-in agent as a goroutine of the supervisor: the same command line,
// parsed by the same command. All agents share hub and what joined opens; from the supervisor's
// context they have the steps at which tests end them.
func runInProcess(supervisor context.Context, hub *dirwatch.Hub, joined opener) func(context.Context, backends.Launch, io.Writer) error {
	return func(ctx context.Context, l backends.Launch, out io.Writer) error {
		own := map[string]func(*app, *workplace) *cobra.Command{"worker": newWorkerAt, "llm": newLLMAt}
		if len(l.Argv) < 2 || own[l.Argv[1]] == nil {
			return team.Errorf(team.CodeInvalid, "only built-in agents run in-process").WithHint("--backend tmux or pty")
		}
		a := &app{out: newOutput(os.Stdout, os.Stderr, false), stdin: strings.NewReader(""), watch: hub, opener: joined}
		at := &workplace{dir: l.Dir, environ: append(slices.Clone(l.Env), team.EnvGen+"="+l.Generation), out: out}
		cmd := own[l.Argv[1]](a, at)
		cmd.SetArgs(l.Argv[2:])
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(agent.StepsOf(ctx, supervisor))
	}
}
