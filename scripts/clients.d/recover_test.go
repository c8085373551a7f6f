package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/procfs"
)

// TestRecover simulates a machine that goes down: supervisor, tmux server, shims and agents of two
// teammates die at once, while each has a conversation and mail that it has not had yet. teamctl
// recover starts each with its conversation; accepted mail does not come again, and the rest comes
// once.
func TestRecover(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	ctx := context.WithoutCancel(t.Context())
	dir := t.TempDir()
	pair := fakes(t, dir)[:2]
	w, err := newWorld(ctx, options{exe: build(t, dir), cache: filepath.Join(dir, "cache"), limit: 5 * time.Minute}, pair)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(false); err != nil {
			t.Error(err)
		}
	}()
	before := map[string]talk{}
	for _, c := range pair {
		if before[c.Name], err = w.begin(ctx, c); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
	}
	blackout(t, w)
	if left := w.processes(); len(left) > 0 {
		t.Fatalf("%v are alive", left)
	}

	out, err := w.teamctl(ctx, "recover")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pair {
		// On a slow machine its restart policy may have given up before it is looked at.
		if !strings.Contains(out, c.Name+": started again\n") && !strings.Contains(out, c.Name+": runs\n") {
			t.Errorf("recover says %q", out)
		}
		if err := w.goesOn(ctx, t, c, before[c.Name]); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// talk is what a teammate had before the machine went down.
type talk struct {
	conversation    string
	pid             int
	accepted, later string // texts: accepted before, and in flight
	acceptedID      string
	laterID         string
}

// begin starts a teammate, gives it mail that it takes, and mail in the middle of a turn that does
// not end by itself.
func (w *world) begin(ctx context.Context, c agentlab.Client) (k talk, err error) {
	prompt := w.token("prompt")
	if _, err := w.teamctl(ctx, "spawn", c.Name, "--agent", c.Name, "--session", "--prompt", "@@say "+prompt); err != nil {
		return k, err
	}
	if _, err := w.asked(ctx, prompt); err != nil {
		return k, err
	}
	k.accepted, k.later = w.token("accepted"), w.token("later")
	if k.acceptedID, err = w.sendTo(ctx, c.Name, "@@say "+k.accepted); err != nil {
		return k, err
	}
	if err := w.delivered(ctx, k.acceptedID); err != nil {
		return k, err
	}
	if err := w.idle(ctx, c.Name); err != nil {
		return k, err
	}
	never := w.token("never")
	if _, err := w.sendTo(ctx, c.Name, "@@shell sleep 600\n@@say "+never); err != nil {
		return k, err
	}
	if _, err := w.request(ctx, never, func(r fakemodelRequest) bool {
		return strings.Contains(r.New, never) && strings.HasPrefix(r.Answer, "call ")
	}); err != nil {
		return k, err
	}
	if k.laterID, err = w.sendTo(ctx, c.Name, "@@say "+k.later); err != nil {
		return k, err
	}
	// Codex's server keeps it until the tool ends, Claude Code's hooks hold it: neither is a
	// receipt.
	if state, err := w.state(ctx, k.laterID); err != nil || state == "accepted" || state == "read" {
		return k, errors.Join(err, fmt.Errorf("in mid-turn it is %s", state))
	}
	m, err := w.member(ctx, c.Name)
	if err != nil {
		return k, err
	}
	k.pid = m.PID
	k.conversation, err = w.conversation(c.Name)
	return k, err
}

// goesOn checks a teammate that was recovered.
func (w *world) goesOn(ctx context.Context, t *testing.T, c agentlab.Client, k talk) error {
	t.Helper()
	if _, err := w.answered(ctx, k.later); err != nil {
		return err
	}
	if err := w.delivered(ctx, k.laterID); err != nil {
		return err
	}
	if err := w.idle(ctx, c.Name); err != nil {
		return err
	}
	last := w.token("last")
	if _, err := w.sendTo(ctx, c.Name, "@@say "+last); err != nil {
		return err
	}
	r, err := w.answered(ctx, last)
	if err != nil {
		return err
	}
	for _, text := range []string{k.accepted, k.later} {
		if n := strings.Count(r.Body, `\n@@say `+text); n != 1 {
			return fmt.Errorf("%q is %d times in its conversation", text, n)
		}
		if n := w.arrivals("@@say " + text); n != 1 {
			return fmt.Errorf("%q came %d times", text, n)
		}
	}
	m, err := w.member(ctx, c.Name)
	if err != nil || m.PID == k.pid {
		return errors.Join(err, fmt.Errorf("process %d is process %d", m.PID, k.pid))
	}
	if now, err := w.conversation(c.Name); err != nil || now != k.conversation {
		return errors.Join(err, fmt.Errorf("conversation %q is %q", k.conversation, now))
	}
	resume := map[string]string{"claude": "--resume", "codex": "resume"}[c.Name]
	for _, argv := range w.processes() {
		if strings.Contains(argv, " "+resume+" "+k.conversation+" ") {
			return nil
		}
	}
	return fmt.Errorf("nobody was started with %s %s: %v", resume, k.conversation, w.processes())
}

// blackout ends all processes in the home so that none sees another end: all are stopped before the
// first is killed. A tmux server continues the processes of its panes, and a shim its agent, until
// they are stopped themselves.
func blackout(t *testing.T, w *world) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := w.until(ctx, "stopped", func() (bool, error) {
		all := true
		for pid := range w.processes() {
			s, err := procfs.Of(pid)
			if err != nil || s.State == 'Z' {
				continue // it has ended
			}
			if s.State != 'T' {
				all = false
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	for pid := range w.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
	if err := w.until(ctx, "dark", func() (bool, error) { return len(w.processes()) == 0, nil }); err != nil {
		t.Fatal(err)
	}
}

// TestServerIsKilled kills the app-server of a Codex that is idle and one in mid-turn. The screen
// of Codex stays open and waits for it, with an input box; the member counts as failed, not as idle
// or completed, and is started again with its conversation. Mail that it has not had comes once.
func TestServerIsKilled(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	ctx := context.WithoutCancel(t.Context())
	dir := t.TempDir()
	o := options{exe: build(t, dir), cache: filepath.Join(dir, "cache"), limit: 5 * time.Minute}
	codex := fakes(t, dir)[1]
	w := alone(t, o, codex)
	k, err := w.begin(ctx, codex)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"in mid-turn", "when idle"} {
		if what == "when idle" {
			if err := w.idle(ctx, codex.Name); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.killAny(ctx, "server"); err != nil {
			t.Fatal(err)
		}
		if err := w.goesOn(ctx, t, codex, k); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		m, err := w.member(ctx, codex.Name)
		if err != nil {
			t.Fatal(err)
		}
		k.pid = m.PID
	}
	out, err := w.teamctl(ctx, "events", "--json")
	if err != nil || strings.Count(out, `"before":"running","after":"exited"`) != 2 || strings.Count(out, `"before":"exited","after":"backoff"`) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}
