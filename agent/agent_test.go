package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func metadata(m map[string]any) json.RawMessage {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return raw
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// gate returns a script that creates a file when it begins and then waits for another one to
// appear.
func (r *rig) gate(name string) (script string, begun func(), open func()) {
	b, o := r.path(name+".begun"), r.path(name+".open")
	script = fmt.Sprintf("touch %q; until [ -e %q ]; do sleep 0.02; done", b, o)
	exists := func() bool { _, err := os.Stat(b); return err == nil }
	return script, func() { r.t.Helper(); r.until(name+" to begin", exists) }, func() {
		if err := os.WriteFile(o, nil, 0o600); err != nil {
			r.t.Error(err)
		}
	}
}

func group(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// below returns the live processes of a session. No command of these tests starts a session of
// its own.
func below(t *testing.T, sid int) (left []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if of, err := unix.Getsid(pid); err != nil || of != sid {
			continue
		}
		if _, err := proc.Identify(pid); err == nil { // not a zombie
			left = append(left, pid)
		}
	}
	return left
}

// TestDiamondWithCommits checks that two workers run every task of a diamond once, after its
// dependencies and in a tree that contains their files. A task without a commit passes on the
// commits it depends on.
func TestDiamondWithCommits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	repo := r.repo()
	ts := r.add(
		task("top", "echo top > top"),
		task("left", "cat top; echo left > left", after("top")),
		task("right", "cat top; echo right > right", after("top")),
		task("check", "cat left right >/dev/null; echo both there", after("left", "right")),
		task("join", `cat top left right > all; printf '%s %s %s %s.%s\n' "$TEAMCTL_TEAM" "$TEAMCTL_AGENT_ID" "$TEAMCTL_AGENT_NAME" "$TEAMCTL_TASK_ID" "$TEAMCTL_TASK_ATTEMPT" > who`, after("check")),
	)
	ann := r.start("ann", inWorktree(r.worktree(repo, "ann")))
	bob := r.start("bob", inWorktree(r.worktree(repo, "bob")))
	last := r.ended(ts[4].ID)

	all, err := r.led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]ledger.Task{}
	for _, x := range all {
		byID[x.ID] = x
		if x.Status != team.TaskCompleted || x.Attempt != 1 {
			t.Fatalf("task %s (%s) is %s at attempt %d: %+v", x.ID, x.Subject, x.Status, x.Attempt, x.Result)
		}
	}
	for _, x := range all {
		for _, d := range x.DependsOn {
			if byID[d].CompletedAt > x.StartedAt {
				t.Errorf("%s began before %s was completed", x.Subject, byID[d].Subject)
			}
		}
	}
	if c := byID[ts[3].ID].Result; c.Commit != "" || c.Summary != "both there" {
		t.Errorf("the task that changed nothing has %+v", c)
	}
	if !slices.Equal(last.Result.Files, []string{"all", "who"}) {
		t.Errorf("files are %v", last.Result.Files)
	}
	if got := git(t, repo, "show", last.Result.Commit+":all"); got != "top\nleft\nright" {
		t.Errorf("the last task saw %q", got)
	}
	who := last.OwnerName
	if got, want := git(t, repo, "show", last.Result.Commit+":who"), fmt.Sprintf("demo %s@demo %s %s.1", who, who, last.ID); got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
	msg := git(t, repo, "log", "-1", "--format=%B", last.Result.Commit)
	for _, want := range []string{"task " + last.ID + ": join\n", "Teamctl-Task: " + last.ID, "Teamctl-Agent: " + who + "@demo"} {
		if !strings.Contains(msg, want) {
			t.Errorf("commit message %q lacks %q", msg, want)
		}
	}
	for _, l := range []*life{ann, bob} {
		r.askShutdown(l.id.Name)
		if err := l.wait(); err != nil {
			t.Errorf("%s: %v", l.id.Name, err)
		}
		if n := l.ready.Load(); n != 1 {
			t.Errorf("%s was ready %d times", l.id.Name, n)
		}
	}
	done := append(r.messages("ann", team.KindTaskCompleted), r.messages("bob", team.KindTaskCompleted)...)
	if len(done) != 5 {
		t.Errorf("%d completion notices", len(done))
	}
	for _, m := range done {
		f, ok := inbox.Parse(m.Text)
		c, is := f.(inbox.TaskCompleted)
		if !ok || !is || c.TaskSubject != byID[c.TaskID].Subject || c.From != m.From {
			t.Errorf("notice %s", m.Text)
		}
	}
}

// TestDependenciesAreTransitive checks that a dependency without changes passes on the commits it
// was based on, even to a worker whose tree never contained them.
func TestDependenciesAreTransitive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	repo := r.repo()
	ts := r.add(task("top", "echo top > top"), task("check", "cat top", after("top")))
	bob := r.start("bob", inWorktree(r.worktree(repo, "bob")))
	if got := r.ended(ts[1].ID); got.Status != team.TaskCompleted || got.Result.Commit != "" {
		t.Fatalf("%s %+v", got.Status, got.Result)
	}
	if err := bob.stop(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	next := r.add(task("next", "cat top", func(n *ledger.NewTask) { n.DependsOn = []string{ts[1].ID} }))
	r.start("ann", inWorktree(r.worktree(repo, "ann")))
	if got := r.ended(next[0].ID); got.Status != team.TaskCompleted || got.Result.Summary != "top" {
		t.Errorf("%s %+v", got.Status, got.Result)
	}
}

// TestOwnCommitIsTheResult checks that a commit made by the command itself becomes the result of
// the task.
func TestOwnCommitIsTheResult(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	repo := r.repo()
	env := "git -c user.name=x -c user.email=x@example.org "
	ts := r.add(task("own", "echo 1 > own && git add own && "+env+"commit -qm mine"), task("next", "cat own", after("own")))
	ws := r.worktree(repo, "ann")
	r.start("ann", inWorktree(ws))
	got := r.ended(ts[1].ID)
	if got.Status != team.TaskCompleted || got.Result.Summary != "1" {
		t.Fatalf("%+v", got.Result)
	}
	own := r.task(ts[0].ID).Result.Commit
	if own == "" || own != git(t, repo, "rev-parse", "ann") {
		t.Errorf("commit %q", own)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		task  ledger.NewTask
		code  int
		parts []string // of the error, in order
	}{
		{"exit", task("x", "echo one; echo two >&2; exit 3"), 3, []string{"exit 3", "one", "two"}},
		{"signal", task("x", "echo dying; kill -KILL $$"), 137, []string{"ended by SIGKILL", "dying"}},
		{"verify", task("x", "echo fine", verify("echo not so; false")), 1, []string{"verify failed: exit 1", "not so"}},
		{"run is no string", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":["ls"]}`)}, 0,
			[]string{"metadata.run is a JSON array, not a string"}},
		{"bad timeout", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":"true","timeout":"soon"}`)}, 0,
			[]string{`metadata.timeout "soon" is not a duration`}},
		{"timeout", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":"sleep 60","timeout":"200ms"}`)}, 124,
			[]string{"timed out after 200ms"}},
		{"long output", task("x", "seq 1 5000; exit 1"), 1, []string{"exit 1", "4961\n", "5000"}},
		{"escapes", task("x", `printf '\033[31mred\033[0m\a 10%%\r 99%%\rend\n'; exit 1`), 1, []string{"exit 1\nend"}},
	}
	r := newRig(t)
	w := r.start("ann")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := r.ended(r.add(c.task)[0].ID)
			if got.Status != team.TaskFailed || got.Result.ExitCode != c.code {
				t.Fatalf("%s, %+v", got.Status, got.Result)
			}
			rest := got.Result.Error
			for _, p := range c.parts {
				i := strings.Index(rest, p)
				if i < 0 {
					t.Fatalf("error %q lacks %q", got.Result.Error, p)
				}
				rest = rest[i+len(p):]
			}
			if n := len(got.Result.Error); n > tailBytes+200 || strings.Count(got.Result.Error, "\n") > tailLines {
				t.Errorf("error has %d bytes, %d lines", n, strings.Count(got.Result.Error, "\n"))
			}
		})
	}
	w.idle()
	r.until("the notices", func() bool { return len(r.messages("ann", team.KindError)) == len(cases) })
	m := r.messages("ann", team.KindError)[0]
	if !strings.HasPrefix(m.Text, "task 1 (x) failed: exit 3\none\ntwo") || m.To != team.LeadName {
		t.Errorf("notice %q to %s", m.Text, m.To)
	}
	if got := r.messages("ann", team.KindTaskCompleted); len(got) != 0 {
		t.Errorf("completion notices %v", got)
	}
	r.until("the idle notice", func() bool {
		all := r.messages("ann", team.KindIdle)
		if len(all) == 0 {
			return false
		}
		f, _ := inbox.Parse(all[len(all)-1].Text)
		n, ok := f.(inbox.IdleNotification)
		return ok && n.CompletedStatus == "failed" && strings.HasPrefix(n.FailureReason, "exit 1")
	})
}

// TestTimedOutWithOutput checks that the output of a command before its timeout is reported. The
// timeout grows until the command has had time to write it.
func TestTimedOutWithOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("ann")
	for limit := 250 * time.Millisecond; ; limit *= 2 {
		run := metadata(map[string]any{"run": "echo slow; sleep 600", "timeout": limit.String()})
		got := r.ended(r.add(ledger.NewTask{Subject: "x", Metadata: run})[0].ID)
		switch {
		case got.Status != team.TaskFailed || got.Result.ExitCode != 124 || !strings.HasPrefix(got.Result.Error, "timed out after "+limit.String()):
			t.Fatalf("%s, %+v", got.Status, got.Result)
		case strings.HasSuffix(got.Result.Error, "\nslow"):
			return
		case limit > 30*time.Second:
			t.Fatalf("no output: %q", got.Result.Error)
		}
	}
}

func TestMergeConflictFailsTheTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	repo := r.repo()
	side := gitSpace{r.worktree(repo, "side").dir}
	if err := os.WriteFile(filepath.Join(side.dir, "README"), []byte("theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, _, _, err := side.Commit(t.Context(), "theirs")
	if err != nil {
		t.Fatal(err)
	}
	ts := r.add(task("theirs", "true"), task("ours", "echo ours > README"), task("both", "true", after("theirs", "ours")), task("free", "cat README"))
	claimed, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: "other", ID: ts[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Complete(t.Context(), ledger.TaskRef{ID: claimed.ID, Owner: "other", Attempt: 1}, ledger.Result{Commit: theirs}); err != nil {
		t.Fatal(err)
	}
	r.start("ann", inWorktree(r.worktree(repo, "ann")))
	got := r.ended(ts[2].ID)
	if got.Status != team.TaskFailed || !strings.HasPrefix(got.Result.Error, "merge conflict: ") {
		t.Fatalf("%s %+v", got.Status, got.Result)
	}
	if free := r.ended(ts[3].ID); free.Result.Summary != "ours" {
		t.Errorf("the tree after the conflict has %q", free.Result.Summary)
	}
}

// TestLeftoversAreSeparate checks that changes left by a failed task, or found before the first
// one, get a commit of their own instead of joining that of the next task.
func TestLeftoversAreSeparate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	repo := r.repo()
	ws := r.worktree(repo, "ann")
	if err := os.WriteFile(filepath.Join(ws.dir, "before"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ts := r.add(task("bad", "echo half > half; exit 1"), task("good", "echo whole > whole"))
	r.start("ann", inWorktree(ws))
	bad, good := r.ended(ts[0].ID), r.ended(ts[1].ID)
	if !slices.Equal(good.Result.Files, []string{"whole"}) || !slices.Equal(bad.Result.Files, []string{"half"}) {
		t.Errorf("files %v and %v", bad.Result.Files, good.Result.Files)
	}
	log := strings.Split(git(t, repo, "log", "--format=%s", "ann"), "\n")
	want := []string{"task 2: good", "task 1: bad (failed)", "work left over before task 1", "base"}
	if !slices.Equal(log, want) {
		t.Errorf("log %q", log)
	}
}

func TestStopReleasesAndLeavesNoProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pidfile := r.path("group")
	// One child ignores SIGTERM and one is stopped.
	ts := r.add(task("x", fmt.Sprintf(`trap '' TERM; (trap '' TERM; sleep 300) & sleep 300 & kill -STOP $!; echo $$ > %q.new; mv %q.new %q; wait; sleep 300`, pidfile, pidfile, pidfile)))
	w := r.start("ann")
	r.until("the command", func() bool { _, err := os.Stat(pidfile); return err == nil })
	pgid := group(t, pidfile)
	if sid, err := unix.Getsid(pgid); err != nil || sid != pgid {
		t.Errorf("session %d, %v: the command is not in a session of its own", sid, err)
	}
	if _, err := proc.Identify(pgid); err != nil {
		t.Fatalf("the command does not run: %v", err)
	}
	if err := w.stop(); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v", err)
	}
	if left := below(t, pgid); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskPending || got.Owner != "" {
		t.Errorf("task is %s of %q", got.Status, got.Owner)
	}
	if got := r.messages("ann", team.KindError); len(got) != 0 {
		t.Errorf("a stopped task was announced as failed: %v", got)
	}
}

// TestBackgroundEndsWithTheTask checks that background processes of a command end with it, and
// that the output of a process substitution, which comes after its end, is still collected.
func TestBackgroundEndsWithTheTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pidfile := r.path("group")
	ts := r.add(task("x", fmt.Sprintf(`echo $$ > %q; sleep 300 >/dev/null 2>&1 & echo first > >(read -r x; while kill -0 $$; do :; done 2>/dev/null; echo "${x/first/last}")`, pidfile)))
	r.start("ann")
	got := r.ended(ts[0].ID)
	if got.Status != team.TaskCompleted || got.Result.Summary != "last" {
		t.Errorf("%s %+v", got.Status, got.Result)
	}
	if left := below(t, group(t, pidfile)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// counting counts the worker's calls of Runnable.
type counting struct {
	*ledger.Ledger
	n *atomic.Int64
}

func (c counting) Runnable(ctx context.Context, owner string) (bool, error) {
	c.n.Add(1)
	return c.Ledger.Runnable(ctx, owner)
}

// countedTasks counts the worker's claims in the same counter.
type countedTasks struct {
	Tasks
	n *atomic.Int64
}

func (c countedTasks) Claim(ctx context.Context, id string) (*ledger.Task, error) {
	c.n.Add(1)
	return c.Tasks.Claim(ctx, id)
}

// TestNoWorkAtRest checks that an idle worker makes no queries, and that many writes by others
// cause few.
func TestNoWorkAtRest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	n := &atomic.Int64{}
	w := r.start("ann", func(e *Env) {
		e.Ledger, e.Tasks = counting{e.Ledger.(*ledger.Ledger), n}, countedTasks{e.Tasks, n}
	})
	w.idle()
	quiet := func(d time.Duration) int64 {
		before := n.Load()
		<-time.After(d) // measures this window
		return n.Load() - before
	}
	// The worker's own last write wakes it once more, late on a busy machine. A worker that polls
	// never has a second without queries.
	r.until("rest", func() bool { return quiet(time.Second) == 0 })
	before, began := n.Load(), time.Now()
	for range 200 {
		if _, err := r.led.Event(t.Context(), ledger.Event{Who: "test", What: "test.noise"}); err != nil {
			t.Fatal(err)
		}
	}
	limit := int64(time.Since(began)/lookEvery) + 5
	if got := n.Load() - before; got > limit {
		t.Errorf("%d queries for 200 writes by others, want at most %d", got, limit)
	}
}

// TestPlanModeTakesNoTask checks that a worker in plan mode runs no task, not even a requested
// one, and starts without a restart once its mode has changed.
func TestPlanModeTakesNoTask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	row := r.join("builder", "session-builder", team.RoleExecutor)
	mode := func(m team.Mode) {
		t.Helper()
		if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: row.SessionKey, Mode: &m}); err != nil {
			t.Fatal(err)
		}
	}
	mode(team.ModePlan)
	r.add(ledger.NewTask{Subject: "build", Metadata: metadata(map[string]any{"run": "true"})})
	r.start("builder")
	r.send(ledger.NewMessage{From: team.LeadName, To: "builder", Kind: team.KindTaskRequest, Text: "please do task #1"})
	r.until("an answer", func() bool { return len(r.messages("builder", team.KindTaskResponse)) == 1 })
	if got := r.messages("builder", team.KindTaskResponse)[0].Text; !strings.Contains(got, "plan mode") {
		t.Errorf("it answers %q", got)
	}
	r.until("idle", func() bool { return len(r.messages("builder", team.KindIdle)) == 1 })
	if got := r.task("1"); got.Status != team.TaskPending {
		t.Errorf("the task is %s", got.Status)
	}
	mode(team.ModeDefault)
	if got := r.ended("1"); got.Status != team.TaskCompleted {
		t.Errorf("the task is %s", got.Status)
	}
}
