package backendtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/team"
)

// FakeRun is the fake agent of Main as a goroutine, with the same arguments; it
// starts the same processes as Main's. "die" panics.
func FakeRun(ctx context.Context, l backends.Launch, out io.Writer) error {
	args := l.Argv[min(2, len(l.Argv)):]
	if len(args) == 0 {
		return fakeStatus(64)
	}
	say := func(format string, a ...any) { _, _ = fmt.Fprintf(out, format+"\n", a...) }
	n := 0
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	switch args[0] {
	case "exit":
		say("exit with %d", n)
		return fakeStatus(n)
	case "die":
		panic(fmt.Sprintf("die of %d", n))
	case "idle":
	case "flood":
		w := bufio.NewWriter(out)
		for i := range n {
			_, _ = fmt.Fprintf(w, "line %d of %d\n", i, n)
		}
		return w.Flush()
	case "late":
		t := time.NewTicker(10 * time.Millisecond)
		defer t.Stop()
		for i := range n {
			say("line %d of %d", i, n)
			select {
			case <-t.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	case "tree", "leave":
		if err := fakeTree(l, args[1]); err != nil {
			return err
		}
		if args[0] == "leave" {
			return fakeStatus(3)
		}
	case "env":
		for _, k := range args[1:] {
			v, ok := lookup(l.Env, k)
			say("%s=%s %v", k, v, ok)
		}
	default:
		return fakeStatus(64)
	}
	say("idle")
	<-ctx.Done()
	return context.Cause(ctx)
}

// fakeStatus is an exit status as an error.
type fakeStatus int

func (s fakeStatus) Error() string { return fmt.Sprintf("status %d", int(s)) }
func (s fakeStatus) ExitCode() int { return int(s) }

func lookup(env []string, key string) (string, bool) {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == key {
			return v, true
		}
	}
	return "", false
}

// fakeTree starts the processes of the fake agent "tree". Like the children of
// an exited process, they have no parent that waits for them.
func fakeTree(l backends.Launch, file string) error {
	var pids []string
	for i, mode := range []string{"idle", "stubborn", "stubborn"} {
		c := exec.Command(l.Argv[0], "fake", mode)
		c.Env = l.Env
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: i == 2}
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		c.Stdout = w
		err = c.Start()
		_ = w.Close()
		if err == nil {
			_, err = bufio.NewReader(r).ReadString('\n') // until then it may not ignore SIGTERM yet
			pids = append(pids, strconv.Itoa(c.Process.Pid))
			go func() { _ = c.Wait() }() // as init would
		}
		_ = r.Close()
		if err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(file+".new", []byte(strings.Join(pids, " ")), 0o600), os.Rename(file+".new", file))
}

// diesWithOwner replaces adopt for agents that cannot outlive their owner:
// their owner finds them again, a new owner does not; an exit that was not
// observed is unknown, never 0.
func diesWithOwner(t *testing.T, r *Rig) {
	b := r.Open(t)
	l := Launch(t, r, "a", "idle")
	h := start(t, b, l)
	for range 2 {
		a, err := b.Adopt(within(t), l.Bundle)
		if err != nil {
			t.Fatal(err)
		}
		if a.Proc() != h.Proc() || a.Pane() != h.Pane() {
			t.Errorf("adopted %+v; want %+v", a.Proc(), h.Proc())
		}
		a.Detach()
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, h); e.Known || e.Success() || e.Code != -1 {
		t.Errorf("exit = %+v; want unknown", e)
	}
	if on, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || on.Known {
		t.Errorf("exit.json = %+v, %v; want unknown", on, err)
	}
	b = r.Open(t)
	if _, err := b.Adopt(within(t), l.Bundle); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("adopt after its owner: %v; want not found", err)
	}
	stop(t, start(t, b, Launch(t, r, "a", "idle"))) // the member can be started again
}

// refused covers interrupt, type and resize for agents without a terminal.
func refused(t *testing.T, r *Rig) {
	b := r.Open(t)
	h := start(t, b, Launch(t, r, "a", "idle"))
	verbs := func() map[string]error {
		return map[string]error{
			"type": h.TypeText(within(t), "x", true), "interrupt": h.Interrupt(within(t)), "resize": h.Resize(within(t), 60, 20),
		}
	}
	for verb, err := range verbs() {
		if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != "no_terminal" {
			t.Errorf("%s without a terminal: %v; want unavailable, no_terminal", verb, err)
		}
	}
	stop(t, h)
	for verb, err := range verbs() {
		if !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("%s after the exit: %v; want not found", verb, err)
		}
	}
}
