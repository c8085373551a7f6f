package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/strays"
)

func TestMain(m *testing.M) {
	if status, ok := fakecli.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// build builds the program under test.
func build(t *testing.T, dir string) string {
	t.Helper()
	exe, err := strays.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// fakes returns a directory with the stand-ins, and the clients that run them.
func fakes(t *testing.T, dir string) []agentlab.Client {
	t.Helper()
	self, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	all, err := agentlab.StandIns(self, filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// older returns the earlier versions of Claude Code as stand-ins, from the directory of fakes.
func older() []agentlab.Client {
	all := agentlab.Older()
	for i, c := range all {
		all[i].Program, all[i].Native = []string{"env " + fakecli.EnvClaude + "=" + c.Version, c.Name}, false
	}
	return all
}

// olderRows are the rows about messages for stand-ins of earlier versions, which have everything
// else of the newest one.
func olderRows() []check {
	return rowsNamed(rowIdle, rowBusy, rowDialog, rowDraft, rowKilled, rowInterrupted, rowAmid)
}

// shortOlder are the rows of an earlier version in a short run. Both ask at a dialog of their own;
// the oldest is woken in another way, and resumes without what its hooks had added.
var shortOlder = map[string][]string{
	"2.1.112": {rowDialog, rowInterrupted},
	"2.1.34":  {rowIdle, rowBusy, rowKilled},
}

// rowsNamed returns the first row, which starts the program, and those with the names.
func rowsNamed(names ...string) (rows []check) {
	for i, k := range checks {
		if i == 0 || slices.Contains(names, k.name) {
			rows = append(rows, k)
		}
	}
	return rows
}

// TestFakes runs the rows with the stand-ins: a tmux pane each, without an installed CLI or a
// network. It sends one message of each kind of content; scripts/test-clients sends more to the
// real programs.
func TestFakes(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	dir := t.TempDir()
	o := options{exe: build(t, dir), cache: filepath.Join(dir, "cache"), limit: 5 * time.Minute, wait: 5 * time.Minute, busy: 2, letters: 26, rounds: 4}
	if testing.Short() {
		o.busy, o.letters, o.rounds = 1, 8, 2
	}
	all := fakes(t, dir)
	for _, c := range all {
		rows := checks
		if testing.Short() {
			rows = shortRows(t, c.Name)
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			shows(t, o, c, rows)
		})
	}
	for _, c := range older() {
		rows := olderRows()
		if testing.Short() {
			rows = rowsNamed(shortOlder[c.Version]...)
			if len(rows) != 1+len(shortOlder[c.Version]) || len(rows) == 1 {
				t.Fatalf("%s has %d rows", c.Version, len(rows))
			}
		}
		t.Run(c.Label(), func(t *testing.T) {
			t.Parallel()
			shows(t, o, c, rows)
		})
	}
	t.Run("mixed team", func(t *testing.T) {
		t.Parallel()
		var seen table
		if err := runMixed(context.WithoutCancel(t.Context()), o, all, &seen); err != nil {
			t.Fatal(err)
		}
		for _, r := range seen.results {
			if r.err != nil {
				t.Errorf("%s: %v", r.check, r.err)
			}
		}
	})
	tries := all
	if testing.Short() {
		tries = all[:1]
	}
	for _, c := range tries {
		t.Run("agents test "+c.Name, func(t *testing.T) {
			t.Parallel()
			tried(t, o, c)
		})
	}
	t.Run("agents test of a model that answers at once", func(t *testing.T) {
		t.Parallel()
		triedAtOnce(t, o, all[2])
	})
	t.Run("typed into an older Codex", func(t *testing.T) {
		t.Parallel()
		typedCodex(t, o, all[1])
	})
	t.Run("trust dialog", func(t *testing.T) {
		t.Parallel()
		trustDialog(t, o, all[0])
	})
}

// withSome lists the rows that a short run tries with some programs only, and with which: those
// that have a way of their own, or one where all share the way. The other rows run with each program.
var withSome = map[string][]string{
	"a message wakes it when idle": {"claude"}, // the row of the receipt sends one, too
	// TestStandIns kills it in mid-turn, too, and TestSoak. What they allow of Gemini CLI alone is
	// that a message comes twice.
	"kill -9 of the supervisor in mid-turn loses nothing": {"gemini"},
	// TestRecover resumes claude and codex, and so does a rename.
	"it resumes the same conversation":                      {"gemini", "opencode"},
	"renamed while it runs, it goes on in its conversation": {"codex"},
	// An earlier Claude Code runs each of the two.
	rowKilled:                          {"codex", "gemini", "opencode"},
	rowInterrupted:                     {"codex", "gemini", "opencode"},
	rowIdle:                            {"claude"},
	rowBusy:                            {"codex"},
	rowDialog:                          {"codex"},
	rowDraft:                           {"claude"},
	rowAmid:                            {"opencode"},
	rowLate:                            {"claude"},
	rowAnew:                            {"claude"},
	"a plan is shown and answered":     {"claude"},
	"a question is asked and answered": {"claude"},
	"a rule of the team answers for a person":                          {"opencode"},
	"it commits as its person":                                         {"codex"},
	"a turn that fails is told as failed":                              {"opencode"},
	"a message while its hooks are off arrives":                        {"gemini"},
	"a stranger's repository runs nothing before its person trusts it": {"gemini"},
}

// shortRows are the rows of a program in a short run.
func shortRows(t *testing.T, program string) (rows []check) {
	t.Helper()
	listed := 0
	for _, k := range checks {
		some, ok := withSome[k.name]
		if ok {
			listed++
		}
		if !ok || slices.Contains(some, program) {
			rows = append(rows, k)
		}
	}
	if listed != len(withSome) {
		t.Fatalf("%d of the %d rows of withSome are no rows", len(withSome)-listed, len(withSome))
	}
	return rows
}

// shows runs checks that also run with the real program.
func shows(t *testing.T, o options, c agentlab.Client, rows []check) {
	var all table
	if err := runClient(context.WithoutCancel(t.Context()), o, c, rows, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.results) != len(rows) {
		t.Errorf("%d of %d checks were made", len(all.results), len(rows))
	}
	for _, r := range all.results {
		if r.err != nil {
			t.Errorf("%s: %v", r.check, r.err)
		}
	}
}

// alone is a world with one of the clients, until the test ends.
func alone(t *testing.T, o options, c agentlab.Client) *world {
	t.Helper()
	w, err := newWorld(context.WithoutCancel(t.Context()), o, []agentlab.Client{c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(false); err != nil {
			t.Error(err)
		}
	})
	return w
}

// tried checks that "teamctl agents test" succeeds with each program, and leaves nothing in the
// home directory of teamctl or in its repository.
func tried(t *testing.T, o options, c agentlab.Client) {
	ctx := context.WithoutCancel(t.Context())
	w := alone(t, o, c)
	before := w.things(t)
	out, err := w.teamctl(ctx, "agents", "test", c.Name, "--dir", w.Repo, "--prompt", "@@shell sleep 2\n@@say hello",
		"--mail", "@@say again", "--busy", "@@shell sleep 600", "--timeout", o.limit.String())
	if err != nil || strings.Count(out, "\nyes ") != 6 {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := w.until(ctx, "as it was", func() (bool, error) { // a supervisor exits after its last answer
		left, now := w.processes(), w.things(t)
		if len(left) > 0 || now != before {
			return false, fmt.Errorf("processes %v are left, and there is\n%s\nand was\n%s", left, now, before)
		}
		return true, nil
	}); err != nil {
		t.Error(err)
	}
	if _, err := untouched(ctx, w, c); err != nil {
		t.Error(err)
	}
}

// triedAtOnce checks a model that answers at once: the agent is working for a moment only, which is
// not a failure.
func triedAtOnce(t *testing.T, o options, c agentlab.Client) {
	ctx := context.WithoutCancel(t.Context())
	w := alone(t, o, c)
	out, err := w.teamctl(ctx, "agents", "test", c.Name, "--dir", w.Repo, "--prompt", "@@say hello",
		"--mail", "@@say again", "--busy", "@@say done", "--timeout", o.limit.String())
	if err != nil || strings.Contains(out, "\nno ") || strings.Count(out, "\nyes ")+strings.Count(out, "\nnot tried ") != 6 {
		t.Errorf("%v\n%s", err, out)
	}
}

// things are the names in the directories that a test must leave unchanged.
func (w *world) things(t *testing.T) string {
	var names []string
	for _, d := range []string{w.Teams, w.Repo, w.Sockets, filepath.Join(w.Repo, ".git")} {
		list, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, filepath.Join(d, e.Name()))
		}
	}
	return strings.Join(names, "\n")
}

// trustDialog checks that a directory which the person has not accepted is left for them to accept:
// nothing is typed into the question, and mail waits with the reason.
func trustDialog(t *testing.T, o options, claude agentlab.Client) {
	ctx := context.WithoutCancel(t.Context())
	w, err := newWorld(ctx, o, []agentlab.Client{claude})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(false); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(w.User, ".claude.json"), []byte(`{"hasCompletedOnboarding":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.teamctl(ctx, "spawn", "mate", "--agent", "claude", "--session", "--prompt", "@@say hello"); err != nil {
		t.Fatal(err)
	}
	if err := w.until(ctx, "waiting for trust", func() (bool, error) {
		out, err := w.teamctl(ctx, "explain", "mate")
		return strings.Contains(out, "waiting for trust"), err
	}); err != nil {
		out, _ := w.teamctl(ctx, "explain", "mate")
		screen, _ := w.teamctl(ctx, "capture", "mate")
		t.Fatalf("%v\n%s\n%s", err, out, screen)
	}
	id, err := w.send(ctx, "a word")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.until(ctx, "held", func() (bool, error) {
		out, err := w.teamctl(ctx, "message", "show", id)
		return strings.Contains(out, "waits for trust"), err
	}); err != nil {
		t.Fatal(err)
	}
	// It is listed for the person among what waits for them.
	if out, err := w.teamctl(ctx, "approvals"); err != nil || !strings.Contains(out, "mate is waiting for trust: ") || !strings.Contains(out, "teamctl attach mate") {
		t.Errorf("approvals: %v\n%s", err, out)
	}
	screen, err := w.teamctl(ctx, "capture", "mate")
	if err != nil || !strings.Contains(screen, "one you trust?") || len(w.model.Requests()) > 0 {
		t.Fatalf("the question was answered: %v, %d requests\n%s", err, len(w.model.Requests()), screen)
	}
}

// typedCodex checks a Codex that can be reached only by its screen: its mail is typed, whole and in
// order, and its dialog is answered from the queue.
func typedCodex(t *testing.T, o options, codex agentlab.Client) {
	ctx := context.WithoutCancel(t.Context())
	w := alone(t, o, codex)
	program := filepath.Join(w.Dir, "older")
	if err := strays.WriteProgram(program, []byte("#!/bin/sh\n"+fakecli.EnvCodex+"=0.50.0 exec '"+filepath.Join(w.Dir, "bin", codex.Name)+"' \"$@\"\n")); err != nil {
		t.Fatal(err)
	}
	hello := w.token("hello")
	if _, err := w.teamctl(ctx, "spawn", "mate", "--agent", codex.Name, "--session", "--env", "TEAMCTL_PROGRAM_CODEX="+program, "--prompt", "@@say "+hello); err != nil {
		t.Fatal(err)
	}
	if _, err := w.answered(ctx, hello); err != nil {
		t.Fatal(err)
	}
	if err := w.idle(ctx, "mate"); err != nil {
		t.Fatal(err)
	}
	letters := agentlab.Nasty(w.token("typed"), 16)[9:] // the last is longer than its box
	if note, err := w.exchange(ctx, codex, "mate", letters, false); err != nil {
		t.Errorf("%s: %v", note, err)
	}
	if out, err := w.teamctl(ctx, "message", "show", letters[0].ID); err != nil || !strings.Contains(out, "typed and taken") {
		t.Errorf("not typed: %v\n%s", err, out)
	}
	if _, err := permission(ctx, w, codex); err != nil {
		t.Error(err)
	}
}
