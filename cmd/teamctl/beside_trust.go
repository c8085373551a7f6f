package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// foreground is a program that owns the terminal.
type foreground struct {
	cmd   *exec.Cmd
	ended chan error
}

// inForeground starts a program with the terminal; a nil env means the environment of this
// process.
func inForeground(argv, env []string) (*foreground, error) {
	p := &foreground{cmd: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1)} // signals to this process are forwarded
	p.cmd.Env = env
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "start %s: %w", argv[0], err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

// endWithin is the maximum time for a program to exit after it was asked to.
const endWithin = 5 * time.Second

// wait returns the program's exit status. It ends a program that is no longer needed, with status
// 0. The terminal signals the whole process group, which includes the program; a signal to this
// process alone is forwarded.
func (p *foreground) wait(unneeded <-chan struct{}) (int, error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(signals)
	for ended := false; ; {
		select {
		case s := <-signals:
			if n, ok := s.(syscall.Signal); ok && n != syscall.SIGINT {
				_ = p.cmd.Process.Signal(n)
			}
		case <-unneeded:
			unneeded, ended = nil, true
			if id, err := proc.Identify(p.cmd.Process.Pid); err == nil {
				_, _ = proc.KillTree(context.Background(), []backends.ProcID{id}, "", endWithin) // the shim ends what is left
			}
		case err := <-p.ended:
			if ended {
				return 0, nil
			}
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
					return 128 + int(st.Signal()), nil
				}
				return exit.ExitCode(), nil
			}
			return 0, err
		}
	}
}

// readTrust reports whether the working directory is trusted.
type readTrust func(ctx context.Context, dir string) (courier.Trust, error)

// askTrust runs the program that asks the person whether the directory is trusted, until there is
// an answer. It runs nothing if there is one already. over reports that the person quit the
// program without an answer, with its exit status in code.
func askTrust(ctx context.Context, read readTrust, asker, env []string) (t courier.Trust, code int, over bool, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return t, 0, false, team.Errorf(team.CodeUnavailable, "find the working directory: %w", err)
	}
	t, err = read(ctx, dir)
	if err != nil {
		return t, 0, false, team.Errorf(team.CodeUnavailable, "ask whether %s is trusted: %w", dir, err)
	}
	if t.Known {
		return t, 0, false, nil
	}
	written := make(chan struct{}, 1)
	var hub dirwatch.Hub
	var tick <-chan time.Time
	watched := t.Dir
	if _, err := os.Stat(watched); err != nil { // the program creates it in its first run
		watched = dir
		t := time.NewTicker(time.Second)
		defer t.Stop()
		tick = t.C
	}
	stop, err := hub.Watch(watched, func(dirwatch.Event) {
		select {
		case written <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return t, 0, false, team.Errorf(team.CodeUnavailable, "watch %s: %w", watched, err)
	}
	defer stop()
	if name, key, ok := team.ParseAgentID(os.Getenv(team.EnvAgentID)); ok {
		layout := team.Home{Dir: os.Getenv(team.EnvHome)}.Team(key)
		over, err := courier.Ask(layout.Bundle(name), os.Getenv(team.EnvGen))
		if err != nil {
			return t, 0, false, err
		}
		defer over()
	}
	p, err := inForeground(asker, env)
	if err != nil {
		return t, 0, false, err
	}
	answered, looked := make(chan struct{}), make(chan struct{})
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	var now courier.Trust
	says := func(s courier.Trust, err error) bool { return err == nil && (s.Known || s.Said != t.Said) }
	go func() {
		defer close(looked)
		for {
			select {
			case <-written:
			case <-tick:
			case <-ctx.Done():
				return
			}
			if s, err := read(ctx, dir); says(s, err) {
				now = s
				close(answered)
				return
			}
		}
	}()
	code, err = p.wait(answered)
	cancel()
	<-looked
	select {
	case <-answered:
		return now, 0, false, err
	default:
	}
	if s, rerr := read(whole, dir); says(s, rerr) { // it has ended before its answer was seen
		return s, 0, false, err
	}
	return t, code, true, err
}

// newTrusted runs an agent whose person decides first whether its directory is trusted. Afterwards
// the process becomes the agent.
func newTrusted(*app) *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use: "trusted --count N -- ASKER ARG... PROGRAM ARG...", Short: "Run Gemini CLI once its directory is trusted or not", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 1 || count >= len(args) {
				return usage(cmd, "a program that asks, of --count words, and a program after it")
			}
			read := func(ctx context.Context, dir string) (courier.Trust, error) {
				return courier.GeminiTrust(ctx, dir, os.Getenv)
			}
			t, code, over, err := askTrust(cmd.Context(), read, args[:count], adapter.GeminiAsks(os.Environ()))
			if err != nil {
				return err
			}
			if over {
				if code != 0 {
					return exitError(code)
				}
				return nil
			}
			program, err := exec.LookPath(args[count])
			if err != nil {
				return team.Errorf(team.CodeUnavailable, "start %s: %w", args[count], err)
			}
			return syscall.Exec(program, adapter.GeminiTrusted(args[count:], t.Trusted), os.Environ()) // the member's own agent
		},
	}
	cmd.Flags().IntVar(&count, "count", 0, "how many words are of the program that asks")
	return cmd
}
