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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/inbox"
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

// gate is a script that says it has begun and waits for the file to appear.
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

// Two workers, a diamond: every task once, after its dependencies, in a tree that
// has their files; a task without a commit of its own passes on what it depends on.
func TestDiamondWithCommits(t *testing.T) {
	r := newRig(t)
	repo := r.repo()
	ts := r.add(
		task("top", "echo top > top"),
		task("left", "cat top; echo left > left", after("top")),
		task("right", "cat top; echo right > right", after("top")),
		task("check", "cat left right >/dev/null; echo both there", after("left", "right")),
		task("join", `cat top left right > all; printf '%s %s %s %s\n' "$TEAMCTL_TEAM" "$TEAMCTL_AGENT_ID" "$TEAMCTL_AGENT_NAME" "$TEAMCTL_TASK_ID" > who`, after("check")),
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
	if got, want := git(t, repo, "show", last.Result.Commit+":who"), fmt.Sprintf("demo %s@demo %s %s", who, who, last.ID); got != want {
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

// A dependency that changed nothing hands on the commits that it stood on, also
// to a worker whose tree never saw them.
func TestDependenciesAreTransitive(t *testing.T) {
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

// A command that commits by itself: its commit is the result.
func TestOwnCommitIsTheResult(t *testing.T) {
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
	cases := []struct {
		name  string
		task  ledger.NewTask
		code  int
		parts []string // of the error, in order
	}{
		{"exit", task("x", "echo one; echo two >&2; exit 3"), 3, []string{"exit 3", "one", "two"}},
		{"signal", task("x", "echo dying; kill -KILL $$"), 137, []string{"ended by SIGKILL", "dying"}},
		{"verify", task("x", "echo fine", verify("echo not so; false")), 1, []string{"verify failed: exit 1", "not so"}},
		{"no run", ledger.NewTask{Subject: "x", Description: "prose"}, 0, []string{"task has no metadata.run"}},
		{"blank run", task("x", " \n"), 0, []string{"task has no metadata.run"}},
		{"run is no string", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":["ls"]}`)}, 0,
			[]string{"metadata.run is a JSON array, not a string"}},
		{"bad timeout", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":"true","timeout":"soon"}`)}, 0,
			[]string{`metadata.timeout "soon" is not a duration`}},
		{"timeout", ledger.NewTask{Subject: "x", Description: "d", Metadata: json.RawMessage(`{"run":"echo slow; sleep 60","timeout":"200ms"}`)}, 124,
			[]string{"timed out after 200ms", "slow"}},
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

func TestMergeConflictFailsTheTask(t *testing.T) {
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

// What a failed task leaves is in a commit of its own, not in that of the next.
func TestLeftoversAreSeparate(t *testing.T) {
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

// brokenSpace cannot commit.
type brokenSpace struct{ gitSpace }

func (brokenSpace) Commit(context.Context, string) (string, []string, bool, error) {
	return "", nil, false, team.Errorf(team.CodeUnavailable, "no space left on device")
}

func TestBrokenWorktreeGivesTheTaskBack(t *testing.T) {
	r := newRig(t)
	ts := r.add(task("x", "true"))
	w := r.start("ann", func(e *Env) { e.Workspace = brokenSpace{} })
	if err := w.wait(); !team.IsCode(err, team.CodeUnavailable) {
		t.Fatalf("ended with %v", err)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskPending || got.Owner != "" {
		t.Errorf("task is %s of %q", got.Status, got.Owner)
	}
}

func TestStopReleasesAndLeavesNoProcess(t *testing.T) {
	r := newRig(t)
	pidfile := r.path("group")
	// Children that ignore SIGTERM, and one that is stopped.
	ts := r.add(task("x", fmt.Sprintf(`trap '' TERM; (trap '' TERM; sleep 300) & sleep 300 & kill -STOP $!; echo $$ > %q.new; mv %q.new %q; wait; sleep 300`, pidfile, pidfile, pidfile)))
	w := r.start("ann")
	r.until("the command", func() bool { _, err := os.Stat(pidfile); return err == nil })
	pgid := group(t, pidfile)
	if sid, err := unix.Getsid(pgid); err != nil || sid != pgid {
		t.Errorf("session %d, %v: the command could wait at our terminal", sid, err)
	}
	if !groupAlive(pgid) {
		t.Fatal("the command does not run in a group of its own")
	}
	if err := w.stop(); !errors.Is(err, context.Canceled) {
		t.Fatalf("ended with %v", err)
	}
	if groupAlive(pgid) {
		t.Error("processes are left")
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskPending || got.Owner != "" {
		t.Errorf("task is %s of %q", got.Status, got.Owner)
	}
	if got := r.messages("ann", team.KindError); len(got) != 0 {
		t.Errorf("a stopped task was announced as failed: %v", got)
	}
}

// What a command leaves behind in its group ends with it, and output of a
// process substitution still counts.
func TestBackgroundEndsWithTheTask(t *testing.T) {
	r := newRig(t)
	pidfile := r.path("group")
	ts := r.add(task("x", fmt.Sprintf(`echo $$ > %q; sleep 300 >/dev/null 2>&1 & echo first > >(sleep 0.2; sed s/first/last/)`, pidfile)))
	r.start("ann")
	got := r.ended(ts[0].ID)
	if got.Status != team.TaskCompleted || got.Result.Summary != "last" {
		t.Errorf("%s %+v", got.Status, got.Result)
	}
	if groupAlive(group(t, pidfile)) {
		t.Error("a background process is left")
	}
}

func TestShutdownBetweenTasks(t *testing.T) {
	r := newRig(t)
	script, begun, open := r.gate("first")
	ts := r.add(task("first", script), task("second", "true"))
	w := r.start("ann")
	begun()
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "hello\x1b[31m there"})
	m := r.askShutdown("ann")
	open()
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	if got := r.task(ts[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("the current task is %s", got.Status)
	}
	if got := r.task(ts[1].ID); got.Status != team.TaskPending {
		t.Errorf("the next task is %s", got.Status)
	}
	approved := r.messages("ann", team.KindShutdownApproved)
	if len(approved) != 1 || approved[0].RequestID != m.RequestID || approved[0].To != team.LeadName {
		t.Fatalf("answers %+v", approved)
	}
	f, _ := inbox.Parse(approved[0].Text)
	a, ok := f.(inbox.ShutdownApproved)
	if !ok || a.RequestID != m.RequestID || a.From != "ann" || a.PaneID != "%7" || a.BackendType != "tmux" {
		t.Errorf("frame %s", approved[0].Text)
	}
	ds, err := r.led.Deliveries(t.Context(), m.ID)
	if err != nil || ds[0].State != team.Answered {
		t.Errorf("delivery %+v, %v", ds, err)
	}
	// Shutdown came first: the other message waits for the next life.
	unread, err := r.box("ann").Unread(t.Context())
	if err != nil || len(unread) != 1 || unread[0].From != team.LeadName {
		t.Errorf("unread %+v, %v", unread, err)
	}
	again := r.start("ann")
	again.shows("message from team-lead: hello there")
}

func TestForgedShutdownIsIgnored(t *testing.T) {
	r := newRig(t)
	r.join("eve", team.TeammateSessionKey(""), team.RoleExecutor)
	w := r.start("ann")
	w.idle()
	text, err := inbox.Encode(inbox.ShutdownRequest{RequestID: "shutdown-9@ann", From: team.LeadName, Timestamp: "2026-01-01T00:00:00.000Z"})
	if err != nil {
		t.Fatal(err)
	}
	innocent := r.send(ledger.NewMessage{Kind: team.KindInfo, From: "eve", To: team.LeadName, Text: "hi"})
	old := r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "done"})
	for _, e := range []inbox.Entry{
		{From: team.LeadName, Text: text},                       // no id
		{From: team.LeadName, Text: text, ID: team.NewUUID()},   // an id the ledger lacks
		{From: team.LeadName, Text: text, ID: innocent.ID},      // of a message to another
		{From: team.LeadName, Text: text, ID: old.ID},           // of a harmless message
		{From: "eve", Text: `{"type":"no_such_frame","a":[1]}`}, // unknown
		{From: "eve", Text: `{"type":`},                         // torn
	} {
		if err := r.box("ann").Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	// A real message by one who may not, and the same frame as a plain message.
	refused := r.send(ledger.NewMessage{Kind: team.KindShutdownRequest, From: "eve", To: "ann", RequestID: "shutdown-9@ann", Text: text})
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: text})
	r.until("all mail to be read", func() bool {
		unread, err := r.box("ann").Unread(t.Context())
		return err == nil && len(unread) == 0
	})
	if got := r.messages("ann", team.KindShutdownApproved); len(got) != 0 {
		t.Fatalf("approved %+v", got)
	}
	rejected := r.messages("ann", team.KindShutdownRejected)
	if len(rejected) != 1 || rejected[0].Parent != refused.ID || rejected[0].To != "eve" {
		t.Errorf("rejected %+v", rejected)
	}
	if got := r.ended(r.add(task("x", "true"))[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("after that a task is %s", got.Status)
	}
	if err := w.stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestTaskRequest(t *testing.T) {
	r := newRig(t)
	script, begun, open := r.gate("busy")
	r.join("bob", team.TeammateSessionKey(""), team.RoleExecutor)
	w := r.start("ann")
	w.idle()
	r.add(task("busy", script))
	begun()
	ts := r.add(task("low", "true"), task("wanted", "true"), task("blocked", "true", after("low")))
	named := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "please do task #" + ts[1].ID + " soon"})
	second := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "and this", Payload: json.RawMessage(`{"taskId":` + ts[2].ID + `}`)})
	vague := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: "can you help?"})
	open()
	r.ended(ts[2].ID)
	replies := map[string]string{}
	for _, m := range r.messages("ann", team.KindTaskResponse) {
		replies[m.Parent] = m.Text
	}
	for id, want := range map[string]string{
		named.ID:  "task " + ts[1].ID + " (wanted) is claimed",
		second.ID: "task " + ts[2].ID + " stays in the ledger: I do task " + ts[1].ID + " first",
		vague.ID:  "metadata.run",
	} {
		if !strings.Contains(replies[id], want) {
			t.Errorf("reply %q lacks %q", replies[id], want)
		}
	}
	if a, b := r.task(ts[1].ID), r.task(ts[0].ID); a.StartedAt > b.StartedAt {
		t.Error("the requested task was not done first")
	}
	late := r.send(ledger.NewMessage{Kind: team.KindTaskRequest, From: "bob", To: "ann", Text: ts[0].ID})
	r.until("the refusal", func() bool {
		return slices.ContainsFunc(r.messages("ann", team.KindTaskResponse), func(m ledger.Message) bool {
			return m.Parent == late.ID && strings.Contains(m.Text, "is completed already")
		})
	})
}

func TestRequestedTask(t *testing.T) {
	for text, want := range map[string]string{
		"task 12": "12", "do Task #3 now": "3", "#7": "7", " 4 ": "4", "in 5 minutes": "", "multitask 3": "", "task x": "", "": "",
	} {
		if got := requestedTask(ledger.Message{Text: text}); got != want {
			t.Errorf("%q names %q, want %q", text, got, want)
		}
	}
	for payload, want := range map[string]string{
		`{"taskId":"8"}`: "8", `{"task_id":9}`: "9", `{"task":"x"}`: "x", `{"taskId":null}`: "", `[1]`: "",
	} {
		if got := requestedTask(ledger.Message{Payload: json.RawMessage(payload)}); got != want {
			t.Errorf("%s names %q, want %q", payload, got, want)
		}
	}
}

func TestOneIdleNoticePerPeriod(t *testing.T) {
	r := newRig(t)
	w := r.start("ann")
	idle := func() int { return len(r.messages("ann", team.KindIdle)) }
	r.until("the first notice", func() bool { return idle() == 1 })
	for range 5 { // news that is no work
		r.send(ledger.NewMessage{Kind: team.KindInfo, From: team.LeadName, To: "ann", Text: "still there?"})
	}
	r.until("the mail to be read", func() bool { return strings.Count(w.out.String(), "still there?") == 5 })
	id := r.ended(r.add(task("x", "true"))[0].ID).ID
	r.until("the second notice", func() bool { return idle() >= 2 })
	if n := idle(); n != 2 {
		t.Fatalf("%d notices", n)
	}
	f, _ := inbox.Parse(r.messages("ann", team.KindIdle)[1].Text)
	n, ok := f.(inbox.IdleNotification)
	if !ok || n.IdleReason != "available" || n.CompletedTaskID != id || n.CompletedStatus != "completed" || n.FailureReason != "" {
		t.Errorf("notice %+v", f)
	}
	m, err := r.led.Member(t.Context(), "ann")
	if err != nil || m.Activity != team.Idle {
		t.Errorf("activity %s, %v", m.Activity, err)
	}
}

func TestTakenAwayWhileRunning(t *testing.T) {
	r := newRig(t)
	pidfile := r.path("group")
	ts := r.add(task("x", fmt.Sprintf(`echo $$ > %q.new; mv %q.new %q; sleep 300`, pidfile, pidfile, pidfile)))
	w := r.start("ann")
	r.until("the command", func() bool { _, err := os.Stat(pidfile); return err == nil })
	if _, err := r.led.ReleaseOwner(t.Context(), w.id.Session, "test"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: "other", ID: ts[0].ID}); err != nil || got.Attempt != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.shows("was taken away after")
	if groupAlive(group(t, pidfile)) {
		t.Error("the command still runs")
	}
	if got := r.task(ts[0].ID); got.Owner != "other" || got.Status != team.TaskClaimed {
		t.Errorf("task is %s of %s", got.Status, got.Owner)
	}
	if next := r.ended(r.add(task("y", "true"))[0].ID); next.OwnerName != "ann" {
		t.Errorf("the next task was done by %q", next.OwnerName)
	}
}

// A result that comes too late is refused by the fence, told, and not fatal.
func TestLateResultIsRefused(t *testing.T) {
	r := newRig(t)
	ts := r.add(task("x", "true"))
	var once sync.Once
	w := r.start("ann", func(e *Env) {
		e.Ledger = hooked{e.Ledger.(*ledger.Ledger), func() {
			once.Do(func() {
				s := r.task(ts[0].ID).Owner
				if _, err := r.led.ReleaseOwner(context.Background(), s, "test"); err != nil {
					r.t.Error(err)
				}
			})
		}}
	})
	w.shows("its result is not recorded")
	if got := r.ended(ts[0].ID); got.Attempt != 2 || got.Status != team.TaskCompleted {
		t.Errorf("%s at attempt %d", got.Status, got.Attempt)
	}
}

// hooked calls a hook before a task is completed.
type hooked struct {
	*ledger.Ledger
	before func()
}

func (h hooked) Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result) ([]string, error) {
	h.before()
	return h.Ledger.Complete(ctx, ref, res)
}

// flaky refuses the first calls as a busy ledger does.
type flaky struct {
	*ledger.Ledger
	left *atomic.Int32
}

func (f flaky) trouble() error {
	if f.left.Add(-1) >= 0 {
		return team.Errorf(team.CodeTimeout, "the ledger is busy").WithReason(ledger.ReasonBusy)
	}
	return nil
}

func (f flaky) Claim(ctx context.Context, in ledger.ClaimIn) (*ledger.Task, error) {
	// The worst case: it was done, and the answer is lost.
	t, err := f.Ledger.Claim(ctx, in)
	if bad := f.trouble(); bad != nil {
		return nil, bad
	}
	return t, err
}

func (f flaky) Complete(ctx context.Context, ref ledger.TaskRef, res ledger.Result) ([]string, error) {
	if err := f.trouble(); err != nil {
		return nil, err
	}
	return f.Ledger.Complete(ctx, ref, res)
}

func TestBusyLedgerIsNotFatal(t *testing.T) {
	r := newRig(t)
	ts := r.add(task("x", "true"), task("y", "true"))
	left := &atomic.Int32{}
	left.Store(3)
	w := r.start("ann", func(e *Env) { e.Ledger = flaky{e.Ledger.(*ledger.Ledger), left} })
	for _, x := range ts {
		if got := r.ended(x.ID); got.Status != team.TaskCompleted {
			t.Errorf("task %s is %s", got.ID, got.Status)
		}
	}
	w.shows("the ledger is busy; trying again")
	// No claim whose answer was lost is left behind.
	held, err := r.led.Tasks(t.Context(), ledger.TaskFilter{Owner: w.id.Session, OpenOnly: true})
	if err != nil || len(held) != 0 {
		t.Errorf("still held: %+v, %v", held, err)
	}
}

// The next life of a worker that was killed gives back what it held and says
// again what it may not have lived to say, once.
func TestNextLifeRecovers(t *testing.T) {
	r := newRig(t)
	m := r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	ts := r.add(task("done", "true"), task("held", "true"))
	ctx := t.Context()
	for _, x := range ts {
		if _, err := r.led.Claim(ctx, ledger.ClaimIn{Owner: m.SessionKey, ID: x.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.led.Complete(ctx, ledger.TaskRef{ID: ts[0].ID, Owner: m.SessionKey, Attempt: 1}, ledger.Result{Summary: "s"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w := r.start("ann")
		if got := r.ended(ts[1].ID); got.Attempt != 2 {
			t.Errorf("held task at attempt %d", got.Attempt)
		}
		w.idle()
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	for _, n := range r.messages("ann", team.KindTaskCompleted) {
		f, _ := inbox.Parse(n.Text)
		seen[f.(inbox.TaskCompleted).TaskID]++
	}
	if seen[ts[0].ID] != 1 || seen[ts[1].ID] != 1 {
		t.Errorf("notices %v", seen)
	}
}

// Mail is marked read after it was handled; what was accepted is not handled twice.
func TestMailOnce(t *testing.T) {
	r := newRig(t)
	r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	old := r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "seen before"})
	if _, err := r.led.Mark(t.Context(), ledger.DeliveryMark{MessageID: old.ID, Recipient: "ann", State: team.Accepted, Evidence: "test"}); err != nil {
		t.Fatal(err)
	}
	fresh := r.send(ledger.NewMessage{Kind: team.KindBroadcast, From: team.LeadName, Text: "for all"})
	w := r.start("ann")
	w.shows("broadcast from team-lead: for all")
	r.until("all mail to be read", func() bool {
		unread, err := r.box("ann").Unread(t.Context())
		return err == nil && len(unread) == 0
	})
	if strings.Contains(w.out.String(), "seen before") {
		t.Error("a message was handled twice")
	}
	ds, err := r.led.Deliveries(t.Context(), fresh.ID)
	if err != nil || ds[0].State != team.Accepted || ds[0].Evidence != "worker read" {
		t.Errorf("%+v, %v", ds, err)
	}
}

// A damaged mailbox loses nothing that the ledger has.
func TestDamagedMailbox(t *testing.T) {
	r := newRig(t)
	r.join("ann", team.TeammateSessionKey(""), team.RoleExecutor)
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "the first"})
	r.send(ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "ann", Text: "the second"})
	path := r.box("ann").Path()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw[:len(raw)-60], 0o600); err != nil {
		t.Fatal(err)
	}
	w := r.start("ann")
	w.shows("reading from the ledger")
	w.shows("the second")
	w.idle()
	for _, text := range []string{"the first", "the second"} {
		if n := strings.Count(w.out.String(), text); n != 1 {
			t.Errorf("%q was handled %d times", text, n)
		}
	}
}

// A cap on messages stops notices, not work.
func TestMessageCap(t *testing.T) {
	r := newRig(t)
	w := r.start("ann", func(e *Env) {
		e.Post = func(context.Context, ledger.NewMessage) (ledger.Message, error) {
			return ledger.Message{}, team.Errorf(team.CodeLimit, "team_messages_cap_exceeded")
		}
	})
	for _, x := range r.add(task("x", "true"), task("y", "false")) {
		r.ended(x.ID)
	}
	w.shows("task_completed not sent: team_messages_cap_exceeded")
	w.shows("the failure not sent: team_messages_cap_exceeded")
	r.askShutdown("ann")
	if err := w.wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestRemovedMemberEnds(t *testing.T) {
	r := newRig(t)
	w := r.start("ann")
	w.idle()
	if err := r.led.RemoveMember(t.Context(), w.id.Session); err != nil {
		t.Fatal(err)
	}
	r.add(task("x", "true"))
	if err := w.wait(); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("ended with %v", err)
	}
}

// counting counts what the worker asks of the ledger.
type counting struct {
	*ledger.Ledger
	n *atomic.Int64
}

func (c counting) Counts(ctx context.Context) (ledger.Counts, error) {
	c.n.Add(1)
	return c.Ledger.Counts(ctx)
}

func (c counting) Claim(ctx context.Context, in ledger.ClaimIn) (*ledger.Task, error) {
	c.n.Add(1)
	return c.Ledger.Claim(ctx, in)
}

// At rest nothing is read, and many writes of others cost few looks.
func TestNoWorkAtRest(t *testing.T) {
	r := newRig(t)
	n := &atomic.Int64{}
	w := r.start("ann", func(e *Env) { e.Ledger = counting{e.Ledger.(*ledger.Ledger), n} })
	w.idle()
	quiet := func(d time.Duration) int64 {
		before := n.Load()
		<-time.After(d) // the window that is measured
		return n.Load() - before
	}
	r.until("rest", func() bool { return quiet(300*time.Millisecond) == 0 })
	if got := quiet(time.Second); got != 0 {
		t.Errorf("%d looks at rest", got)
	}
	before, began := n.Load(), time.Now()
	for range 200 {
		if _, err := r.led.Event(t.Context(), ledger.Event{Who: "test", What: "test.noise"}); err != nil {
			t.Fatal(err)
		}
	}
	limit := int64(time.Since(began)/lookEvery) + 5
	if got := n.Load() - before; got > limit {
		t.Errorf("%d looks for 200 writes of others, want at most %d", got, limit)
	}
}

// A mail that only the watch of the mailbox can tell of wakes the worker.
func TestMailWakes(t *testing.T) {
	r := newRig(t)
	bell := make(chan struct{}, 1)
	w := r.start("ann", func(e *Env) { e.Mail = bell })
	w.idle()
	if err := r.box("ann").Append(t.Context(), inbox.Entry{From: "someone", Text: "by hand"}); err != nil {
		t.Fatal(err)
	}
	bell <- struct{}{}
	w.shows("message from someone (unverified): by hand")
	close(bell) // the watch may end
	if got := r.ended(r.add(task("x", "true"))[0].ID); got.Status != team.TaskCompleted {
		t.Errorf("task is %s", got.Status)
	}
}
