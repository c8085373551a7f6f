package tool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// treeRig is a team on a repository, without a supervisor: its members are rows.
type treeRig struct {
	*testing.T
	*Team
	root string
	r    *worktree.Repo
}

func newTreeRig(t *testing.T) *treeRig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &treeRig{T: t, root: filepath.Join(dir, "repo")}
	g.git(dir, "init", "--quiet", "--initial-branch=main", g.root)
	g.write("a.txt", "one\n")
	g.commit(g.root)
	g.git(g.root, "branch", "release")
	e := &Env{Home: team.Home{Dir: filepath.Join(dir, "home")}}
	ctx := t.Context()
	_, err = e.TeamCreate(ctx, Person(), TeamCreateIn{TeamName: "demo", Repo: g.root})
	g.ok(err)
	g.Team, err = e.Open(ctx, "demo")
	g.ok(err)
	t.Cleanup(func() { g.ok(g.Close()) })
	g.r, err = worktree.OpenRepo(ctx, g.root)
	g.ok(err)
	t.Cleanup(func() {
		g.r.Wait()
		if out := g.git(g.root, "worktree", "prune", "-n", "-v"); out != "" {
			t.Errorf("git worktree prune -n: %s", out)
		}
	})
	return g
}

func (g *treeRig) ok(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *treeRig) git(dir string, args ...string) string {
	g.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		g.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (g *treeRig) write(path, text string) {
	g.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.root, path)
	}
	g.ok(os.MkdirAll(filepath.Dir(path), 0o755))
	g.ok(os.WriteFile(path, []byte(text), 0o644))
}

func (g *treeRig) commit(dir string) string {
	g.Helper()
	g.git(dir, "add", "--all")
	g.git(dir, "commit", "--quiet", "-m", "work in "+filepath.Base(dir))
	return g.git(dir, "rev-parse", "HEAD")
}

// join adds a member of a kind to the roster, with a worktree and one commit.
func (g *treeRig) join(name, agent string, files map[string]string) ledger.Member {
	g.Helper()
	w, err := g.r.Create(g.Context(), worktree.CreateIn{Path: filepath.Join(g.Layout.Worktrees(), name), Branch: "teamctl/demo/" + name})
	g.ok(err)
	m, _, err := g.Ledger.AddMember(g.Context(), ledger.Member{SessionKey: "agent:" + name, Name: name, Role: team.RoleExecutor,
		Spec:    team.MemberSpec{Agent: agent, WorktreeMode: "own", Cwd: g.root},
		Desired: team.WantStopped, Observed: team.Pending, Activity: team.ActivityUnknown,
		Worktree: w.Path, Branch: w.Branch, Base: w.Base}, true)
	g.ok(err)
	for p, text := range files {
		g.write(filepath.Join(w.Path, p), text)
	}
	if len(files) > 0 {
		g.commit(w.Path)
	}
	return m
}

func caller(m ledger.Member) Caller { return Caller{Name: m.Name, Session: m.SessionKey, Role: m.Role} }

func refusedWith(t *testing.T, err error, code team.Code) {
	t.Helper()
	if !team.IsCode(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// The owner of a branch that conflicts gets a task; once it is resolved the branch is merged.
func TestMergeGivesTheOwnerATask(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	g.join("ann", "claude", map[string]string{"a.txt": "ann\n"})
	bob := g.join("bob", "claude", map[string]string{"a.txt": "bob\n"})
	in := MergeIn{Members: []string{"ann", "bob"}, Into: "release"}
	out, err := g.Merge(ctx, Person(), in)
	g.ok(err)
	if len(out.Merges) != 2 || out.Merges[0].State != ledger.MergeLanded || out.Merges[1].State != ledger.MergeConflict {
		t.Fatalf("%+v", out.Merges)
	}
	k, err := g.Ledger.Task(ctx, out.Merges[1].Task)
	g.ok(err)
	if k.Owner != bob.SessionKey || !strings.Contains(k.Description, "a.txt") || !strings.Contains(string(k.Metadata), `"state":"conflict"`) {
		t.Errorf("%+v", k)
	}
	_, _ = exec.Command("git", "-C", bob.Worktree, "merge", "release").CombinedOutput()
	g.write(filepath.Join(bob.Worktree, "a.txt"), "both\n")
	g.commit(bob.Worktree)
	out, err = g.Merge(ctx, Person(), in)
	g.ok(err)
	if out.Merges[0].State != ledger.MergeContained || out.Merges[1].State != ledger.MergeLanded {
		t.Errorf("%+v", out.Merges)
	}
	if g.git(g.root, "show", "release:a.txt") != "both" {
		t.Error("not landed")
	}
}

// TestBaseBranch checks that changes are named after the branch that has the commit at which the member's branch
// began: the target of its last merge, else the branch checked out in the repository, if they have it.
func TestBaseBranch(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", map[string]string{"ann": "x"})
	is := func(want string) {
		t.Helper()
		got, err := g.BaseBranch(ctx, ann)
		g.ok(err)
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("main")
	_, err := g.Merge(ctx, Person(), MergeIn{Members: []string{"ann"}, Into: "release"})
	g.ok(err)
	is("release")
	g.git(g.root, "branch", "-D", "release")
	is("main")
	g.git(g.root, "checkout", "--quiet", "--orphan", "other")
	g.write(filepath.Join(g.root, "other"), "x") // else it may be the first commit again, to the second
	g.commit(g.root)
	is("")
	ann.Base = ""
	is("")
}

// TestDiffSinceNames checks that a diff names the task and the round of comments that it is since.
func TestDiffSinceNames(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", map[string]string{"ann": "x"})
	made, err := g.Ledger.CreateTasks(ctx, []ledger.NewTask{{Subject: "one"}, {Subject: "two"}}, "lead")
	g.ok(err)
	_, err = g.Ledger.Claim(ctx, ledger.ClaimIn{Owner: ann.SessionKey, ID: made[1].ID})
	g.ok(err)
	_, err = g.ReviewAdd(ctx, Person(), ReviewAddIn{Member: "ann", File: "ann", Text: "why?"})
	g.ok(err)
	_, err = g.ReviewSend(ctx, Person(), "ann", false)
	g.ok(err)
	for since, want := range map[Since]WorktreeDiff{SinceTask: {Task: made[1].ID}, SinceReview: {Round: 1}, "": {}} {
		diffs, err := g.WorktreeDiffsSince(ctx, Person(), []string{"ann"}, false, since)
		g.ok(err)
		if got := diffs[0]; got.Task != want.Task || got.Round != want.Round {
			t.Errorf("since %q: task %q, round %d", since, got.Task, got.Round)
		}
	}
}

// TestLongReviewIsSentTwice checks that of two who send the same comments at once the one that comes too
// late takes nothing away: the file that the member is to read is there.
func TestLongReviewIsSentTwice(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	g.join("ann", "worker", map[string]string{"ann": "x"})
	for round := range 3 {
		_, err := g.ReviewAdd(ctx, Person(), ReviewAddIn{Member: "ann", File: "ann", Text: strings.Repeat("why? ", reviewMost/4)})
		g.ok(err)
		var sent [4]SentReview
		var errs [4]error
		var all sync.WaitGroup
		for i := range sent {
			all.Go(func() { sent[i], errs[i] = g.ReviewSend(ctx, Person(), "ann", false) })
		}
		all.Wait()
		n := 0
		for i, out := range sent {
			if errs[i] != nil {
				continue
			}
			n++
			if _, err := os.Stat(out.File); err != nil || out.Round != round+1 {
				t.Errorf("round %d: %v", out.Round, err)
			}
		}
		if n != 1 {
			t.Errorf("sent %d times: %v", n, errs)
		}
	}
}

// A merge that was killed leaves rows in every open state: the next one completes them, and nothing
// is merged or reported twice.
func TestMergeResumes(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", map[string]string{"ann": "x"})
	bob := g.join("bob", "worker", map[string]string{"bob": "x"})
	cid := g.join("cid", "worker", map[string]string{"cid": "x"})
	dan := g.join("dan", "worker", map[string]string{"dan": "x"})
	row := func(m ledger.Member) ledger.Merge {
		return ledger.Merge{Member: m.Name, Session: m.SessionKey, Branch: m.Branch, Tip: g.git(m.Worktree, "rev-parse", "HEAD"), Target: "release", Strategy: "merge"}
	}
	rows, err := g.Ledger.EnqueueMerges(ctx, []ledger.Merge{row(ann), row(bob), row(cid), row(dan)})
	g.ok(err)
	old := g.git(g.root, "rev-parse", "release")
	// ann's had landed when the run was killed, bob's had not.
	g.git(g.root, "update-ref", "refs/heads/release", row(ann).Tip, old)
	for i, p := range []ledger.MergePatch{
		{State: ledger.MergeLanding, Old: old, New: row(ann).Tip},
		{State: ledger.MergeLanding, Old: old, New: row(bob).Tip},
		{State: ledger.MergeGating},
	} {
		p.IDs = []int64{rows[i].ID}
		_, err := g.Ledger.MoveMerges(ctx, p)
		g.ok(err)
	}
	out, err := g.Merge(ctx, Person(), MergeIn{Resume: true, Into: "release"})
	g.ok(err)
	if len(out.Merges) != 4 {
		t.Fatalf("%+v", out.Merges)
	}
	for _, m := range out.Merges {
		if m.State != ledger.MergeLanded {
			t.Errorf("%s: %s", m.Member, m.State)
		}
	}
	for _, name := range []string{"ann", "bob", "cid", "dan"} {
		g.git(g.root, "cat-file", "-e", "release:"+name)
	}
	if n := g.git(g.root, "rev-list", "--count", "--merges", "release"); n != "3" {
		t.Errorf("%s merges", n)
	}
	out, err = g.Merge(ctx, Person(), MergeIn{Resume: true, Into: "release"})
	if err != nil || len(out.Merges) != 0 {
		t.Errorf("%v %+v", err, out.Merges)
	}
}

// A request that is withdrawn, or made anew, between the reading of the queue and the merge is not
// merged as it was.
func TestMergeQueueChanges(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ann := g.join("ann", "worker", map[string]string{"ann": "x"})
	g.join("bob", "worker", map[string]string{"bob": "x"})
	cid := g.join("cid", "worker", map[string]string{"cid": "x"})
	once := true
	ctx := worktree.WithSteps(t.Context(), func(step string) {
		if step != "stacked" || !once {
			return
		}
		once = false
		canceled, err := g.MergeCancel(t.Context(), Person(), []string{"bob@demo"})
		g.ok(err)
		if len(canceled) != 1 || canceled[0].Member != "bob" {
			t.Errorf("%+v", canceled)
		}
		g.write(filepath.Join(cid.Worktree, "more"), "x")
		_, err = g.Ledger.EnqueueMerges(t.Context(), []ledger.Merge{{Member: cid.Name, Session: cid.SessionKey, Branch: cid.Branch,
			Tip: g.commit(cid.Worktree), Target: "release", Strategy: "squash"}})
		g.ok(err)
	})
	out, err := g.Merge(ctx, Person(), MergeIn{Members: []string{"ann", "bob", "cid"}, Into: "release"})
	g.ok(err)
	var states []string
	for _, m := range out.Merges {
		states = append(states, m.Member+" "+string(m.State)+" "+m.Strategy)
	}
	if d := cmp.Diff([]string{"ann landed merge", "bob canceled merge", "cid landed squash"}, states); d != "" {
		t.Error(d)
	}
	if got := g.git(g.root, "ls-tree", "--name-only", "release"); got != "a.txt\nann\ncid\nmore" {
		t.Errorf("release has %q", got)
	}
	if n := g.git(g.root, "rev-list", "--count", "--merges", "release"); n != "1" {
		t.Errorf("%s merges", n)
	}

	// One that is under way goes on, and is said to.
	g.write(filepath.Join(ann.Worktree, "again"), "x")
	g.commit(ann.Worktree)
	in := MergeIn{Members: []string{"ann", "bob"}, Into: "release", Gates: []string{"true"}}
	in.Each = func(n team.LaneNote) {
		if n.State == team.LaneGating {
			_, err := g.MergeCancel(t.Context(), Person(), []string{"ann"})
			if !team.IsCode(err, team.CodeConflict) || team.ReasonOf(err) != team.ReasonMergeUnderWay || err.Error() != "the merge of ann is in progress (gating) and continues" {
				t.Errorf("cancel under way: %v", err)
			}
			list, err := g.MergeCancel(t.Context(), Person(), nil)
			if err != nil || len(list) != 0 {
				t.Errorf("%v %+v", err, list)
			}
		}
	}
	out, err = g.Merge(t.Context(), Person(), in)
	g.ok(err)
	for _, m := range out.Merges {
		if m.State != ledger.MergeLanded {
			t.Errorf("%+v", m)
		}
	}
	_, err = g.MergeCancel(t.Context(), Person(), []string{"nobody"})
	refusedWith(t, err, team.CodeNotFound)
}

// Changes that may resolve by themselves leave the queue as it is; others end the merge.
func TestMergeStopped(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	g.join("ann", "worker", map[string]string{"ann": "x"})
	in := MergeIn{Members: []string{"ann"}, Into: "release", Gates: []string{"sleep 30"}}
	ctx, cancel := context.WithCancel(t.Context())
	in.Each = func(n team.LaneNote) {
		if n.State == team.LaneGating {
			cancel()
		}
	}
	if _, err := g.Merge(ctx, Person(), in); err == nil {
		t.Fatal("it was not given up")
	}
	open, err := g.MergeQueue(t.Context(), false, 0)
	g.ok(err)
	if len(open) != 1 {
		t.Fatalf("%+v", open)
	}
	_, err = g.MergeCancel(t.Context(), Person(), nil)
	g.ok(err)
	if open, _ = g.MergeQueue(t.Context(), false, 0); len(open) != 1 || open[0].State != ledger.MergeGating {
		t.Errorf("only what is queued is taken back: %+v", open)
	}
	// The target is gone: nothing can come of it.
	g.git(g.root, "branch", "-D", "release")
	_, err = g.Merge(t.Context(), Person(), MergeIn{Resume: true, Into: "main"})
	refusedWith(t, err, team.CodeNotFound)
	all, err := g.MergeQueue(t.Context(), true, 0)
	if err != nil || all[0].State != ledger.MergeFailed || all[0].Why == "" {
		t.Errorf("%v %+v", err, all)
	}
}

// Ready means idle, clean, without a task, and with something to merge. Unknown is never idle.
func TestMergeReady(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	g.join("done", "worker", map[string]string{"done": "x"})
	g.join("nothing", "worker", nil)
	dirty := g.join("dirty", "worker", map[string]string{"dirty": "x"})
	g.write(filepath.Join(dirty.Worktree, "more"), "x")
	running := func(m ledger.Member, a team.Activity) {
		for _, s := range []team.Observed{team.Starting, team.Running} {
			_, err := g.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: m.SessionKey, Observed: &s, Activity: &a})
			g.ok(err)
		}
	}
	running(g.join("unknown", "worker", map[string]string{"unknown": "x"}), team.ActivityUnknown)
	running(g.join("idle", "worker", map[string]string{"idle": "x"}), team.Idle)
	out, err := g.Merge(ctx, Person(), MergeIn{Ready: true, Into: "release", DryRun: true})
	g.ok(err)
	var names []string
	for _, m := range out.Merges {
		names = append(names, m.Member)
	}
	slices.Sort(names)
	if !cmp.Equal(names, []string{"done", "idle"}) || len(out.Notes) != 3 {
		t.Errorf("%v %q", names, out.Notes)
	}
}

func TestWorktreeRoles(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", map[string]string{"ann": "x"})
	bob := g.join("bob", "worker", nil)
	_, err := g.Merge(ctx, caller(ann), MergeIn{Ready: true})
	refusedWith(t, err, team.CodeDenied)
	_, err = g.MergeCancel(ctx, caller(ann), nil)
	refusedWith(t, err, team.CodeDenied)
	_, err = g.CheckpointRestore(ctx, caller(ann), "ann", "")
	refusedWith(t, err, team.CodeDenied)
	_, err = g.Env.RescueDrop(ctx, caller(ann), SavedIn{Team: "demo"}, []string{"x"})
	refusedWith(t, err, team.CodeDenied)
	_, err = g.LeaseTake(ctx, caller(ann), LeaseIn{Glob: "x", Member: bob.Name})
	refusedWith(t, err, team.CodeDenied)
	_, err = g.LeaseTake(ctx, caller(ann), LeaseIn{Glob: "x"})
	g.ok(err)
	got, err := g.LeaseTake(ctx, caller(bob), LeaseIn{Glob: "*"})
	g.ok(err)
	if len(got.Conflicts) != 1 || got.Conflicts[0].Name != "ann" || len(got.Touched) != 0 {
		t.Errorf("%+v", got)
	}
	box, err := g.Inbox(ctx, "ann", true)
	g.ok(err)
	if len(box.Entries) != 1 || !strings.Contains(box.Entries[0].Text, `bob has taken a lease of "*"`) {
		t.Errorf("%+v", box.Entries)
	}
}

// Two members have changed a file independently: the lead and both are warned, once. A change
// merged from the other member is not an overlap.
func TestNoteChanges(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", map[string]string{"shared": "ann", "hers": "x"})
	bob := g.join("bob", "worker", nil)
	g.git(bob.Worktree, "merge", "--quiet", ann.Branch)
	g.write(filepath.Join(bob.Worktree, "own"), "x")
	mail := func(want int) {
		t.Helper()
		for _, name := range []string{team.LeadName, "ann", "bob"} {
			box, err := g.Inbox(ctx, name, false)
			g.ok(err)
			if len(box.Entries) != want {
				t.Errorf("%s: %+v", name, box.Entries)
			}
		}
	}
	for _, m := range []ledger.Member{ann, bob} {
		g.ok(g.SaveTree(ctx, m, "a test"))
	}
	mail(0)
	g.write(filepath.Join(bob.Worktree, "shared"), "bob") // not committed
	g.write(filepath.Join(ann.Worktree, "shared"), "ann again")
	g.commit(ann.Worktree)
	for range 2 {
		for _, m := range []ledger.Member{ann, bob} {
			g.ok(g.SaveTree(ctx, m, "a test"))
		}
	}
	mail(1)
	out, err := g.Worktrees(ctx, WorktreesIn{Members: []string{"ann"}})
	g.ok(err)
	if w := out.Worktrees[0]; out.Into != "main" || !slices.Contains(w.Shared, ledger.TouchedFile{Name: "bob", Path: "shared"}) {
		t.Errorf("%+v", out)
	}
}

// A checkpoint of a member that is not running can be restored, also after later work in the
// worktree.
func TestCheckpointRestore(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	ann := g.join("ann", "worker", nil)
	g.write(filepath.Join(ann.Worktree, "notes"), "one")
	taken, err := g.CheckpointTake(ctx, caller(ann), nil, "a test")
	g.ok(err)
	g.write(filepath.Join(ann.Worktree, "notes"), "two, and longer")
	out, err := g.CheckpointRestore(ctx, Person(), "ann", taken[0].Ref)
	g.ok(err)
	data, err := os.ReadFile(filepath.Join(ann.Worktree, "notes"))
	if err != nil || string(data) != "one" || out.Rescue == "" {
		t.Errorf("%v %q %+v", err, data, out)
	}
	if g.git(g.root, "show", out.Rescue+":notes") != "two, and longer" {
		t.Error("what was there is lost")
	}
	// The last one, although another was made before the clock was set back.
	ahead := "refs/teamctl/checkpoint/demo/ann/" + time.Now().Add(2*time.Hour).UTC().Format("20060102T150405.000Z")
	g.git(g.root, "update-ref", ahead, taken[0].Ref)
	g.write(filepath.Join(ann.Worktree, "notes"), "three, the newest of all")
	taken, err = g.CheckpointTake(ctx, caller(ann), nil, "a test")
	g.ok(err)
	out, err = g.CheckpointRestore(ctx, Person(), "ann", "")
	g.ok(err)
	if data, err = os.ReadFile(filepath.Join(ann.Worktree, "notes")); err != nil || out.Ref != taken[0].Ref || string(data) != "three, the newest of all" {
		t.Errorf("%v %q %+v", err, data, out)
	}
	starting := team.Starting
	_, err = g.Ledger.UpdateMember(ctx, ledger.MemberPatch{SessionKey: ann.SessionKey, Observed: &starting})
	g.ok(err)
	_, err = g.CheckpointRestore(ctx, Person(), "ann", "")
	refusedWith(t, err, team.CodeConflict)
}

func TestPullRequests(t *testing.T) {
	t.Parallel()
	g := newTreeRig(t)
	ctx := t.Context()
	g.join("ann", "worker", map[string]string{"new": "x"})
	g.join("bob", "worker", nil)
	g.git(g.root, "remote", "add", "origin", "https://user:secret@example.org/x/y.git")
	list, err := g.PullRequests(ctx, Person(), nil, "")
	g.ok(err)
	if len(list) != 1 || list[0].Title != "work in ann" || list[0].Text.URL != "https://example.org/x/y.git" {
		t.Fatalf("%+v", list)
	}
	want := []string{"git", "-C", g.root, "push", "--set-upstream", "origin", "teamctl/demo/ann"}
	if !cmp.Equal(list[0].Commands[0], want) {
		t.Errorf("%q", list[0].Commands)
	}
	text, err := os.ReadFile(list[0].BodyFile)
	if err != nil || !strings.Contains(string(text), "- work in ann") || strings.Contains(string(text), "secret") {
		t.Errorf("%v %s", err, text)
	}
	_, err = g.PullRequests(ctx, Person(), []string{"bob"}, "")
	refusedWith(t, err, team.CodeConflict)
}
