package shim

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// Main runs the shim and returns its exit status: the agent's, 128+n for signal
// n, 1 if the agent was never started, 2 for wrong arguments. own are the
// terminals that it can hold for an agent, by Launch.Terminal.
func Main(args []string, own ...Opener) int {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(20)
	if len(args) > 0 {
		switch args[0] {
		case stepExec:
			return limitedExec(args[1:])
		case bundle.StepLog:
			return keepLog(args[1:])
		}
	}
	b, gen, err := parse(args)
	if err != nil {
		return fail(err, 2)
	}
	s, err := prepare(b, gen, own)
	if err != nil {
		return fail(err, 1)
	}
	s.command = os.Args[:max(len(os.Args)-len(args), 0)]
	e := s.run()
	err = bundle.WriteExit(b, e)
	if err == nil {
		s.notify(bundle.EventExited)
	}
	s.awaitRead()
	if s.own != nil {
		signal.Ignore(unix.SIGHUP) // closing the terminal sends SIGHUP to its session, which contains the shim
		s.own.Close(e)
	}
	if err != nil {
		// Only the terminal shows it: without the record the exit is unknown,
		// and the watching backend reports that.
		return fail(err, status(e))
	}
	runtime.KeepAlive(s.held)
	return status(e)
}

func fail(err error, code int) int {
	fmt.Fprintf(os.Stderr, "teamctl: error: shim: %v\r\n", err)
	return code
}

func parse(args []string) (team.Bundle, string, error) {
	vals := map[string]string{}
	for i := 0; i < len(args); i++ {
		k, v, ok := strings.Cut(args[i], "=")
		if !ok {
			if i+1 == len(args) {
				return "", "", fmt.Errorf("%s needs a value", k)
			}
			i++
			v = args[i]
		}
		if k != "--bundle" && k != "--generation" {
			return "", "", fmt.Errorf("unknown argument %q", k)
		}
		vals[k] = v
	}
	if vals["--bundle"] == "" || vals["--generation"] == "" {
		return "", "", errors.New("usage: teamctl shim --bundle DIR --generation GEN")
	}
	return team.Bundle(vals["--bundle"]), vals["--generation"], nil
}

// state is the state of a shim.
type state struct {
	bundle  team.Bundle
	launch  backends.Launch
	start   *bundle.Lock
	held    *bundle.Lock // never unlocked: the kernel releases it when the shim exits
	tty     bool
	own     Terminal // nil if the agent uses the shim's terminal
	agent   int      // pid
	asked   int      // the terminal that was asked whether it has read everything; 0 for none
	command []string // the command with which this shim was started, without its arguments

	// unmarked is the rest of the mark and the question, which the terminal has not taken.
	unmarked []byte

	group       group  // nil if the agent has none
	uncontained string // the reason
	kept        backends.Kept

	// pendingHang ends the wait for an agent whose terminal is closed.
	pendingHang <-chan time.Time
	hung        bool // its terminal is closed
	told        bool // it was sent SIGTERM
}

// prepare performs steps 1 to 4 of the package comment.
func prepare(b team.Bundle, gen string, own []Opener) (*state, error) {
	start, err := bundle.AwaitStart(b)
	if err != nil {
		return nil, err
	}
	l, err := bundle.ReadLaunch(b, gen)
	if err != nil {
		return nil, fmt.Errorf("this start was abandoned: %w", err)
	}
	if len(l.Argv) == 0 {
		return nil, errors.New("launch.json names no command")
	}
	run, err := bundle.LockRun(b)
	if team.IsCode(err, team.CodeConflict) {
		return nil, errors.New("another generation of this member is running")
	}
	if err != nil {
		return nil, err
	}
	if err := subreaper(); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	s := &state{bundle: b, launch: l, start: start, held: run}
	if l.Terminal != "" {
		if s.own, err = open(l, own); err == nil {
			err = control(int(s.own.Slave().Fd()))
		}
		return s, err
	}
	_, err = unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	s.tty = err == nil
	return s, nil
}

func (s *state) notify(event string) {
	if s.launch.Notify != "" {
		_ = bundle.Notify(s.launch.Notify, s.launch.Agent, s.launch.Generation, event)
	}
}

// status returns the exit status of the shim itself.
func status(e backends.Exit) int {
	if e.Signal != "" {
		return 128 + int(unix.SignalNum(e.Signal))
	}
	if e.Code < 0 {
		return 1
	}
	return e.Code
}

// environment returns launch.Env with the generation. The variables that name
// the terminal (TERM, TMUX, TMUX_PANE) come from the shim's own environment:
// the launcher's values name another terminal.
func environment(l backends.Launch, tty bool) []string {
	env := make([]string, 0, len(l.Env)+4)
	place := map[string]string{}
	if tty {
		for _, k := range []string{"TERM", "TMUX", "TMUX_PANE"} {
			if v, ok := os.LookupEnv(k); ok {
				place[k] = v
			}
		}
	}
	for _, kv := range l.Env {
		k, _, _ := strings.Cut(kv, "=")
		_, placed := place[k]
		stale := tty && (k == "TMUX" || k == "TMUX_PANE")
		if placed || stale || k == team.EnvGen || k == proc.EnvDetached {
			continue
		}
		env = append(env, kv)
	}
	for _, k := range []string{"TERM", "TMUX", "TMUX_PANE"} {
		if v, ok := place[k]; ok {
			env = append(env, k+"="+v)
		}
	}
	return append(env, team.EnvGen+"="+l.Generation)
}
