package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// laneLog collects the notes of a lane, by state and name.
type laneLog struct {
	notes []team.LaneNote
	at    map[string]team.LaneState
}

func (l *laneLog) note(_ context.Context, n team.LaneNote) error {
	if l.at == nil {
		l.at = map[string]team.LaneState{}
	}
	l.notes = append(l.notes, n)
	for _, it := range n.Items {
		l.at[it.Name] = n.State
	}
	return nil
}

func (l *laneLog) of(state team.LaneState) (names []string) {
	for name, s := range l.at {
		if s == state {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// items returns the branches team/<name>.
func (f *fixture) items(names ...string) []team.LaneItem {
	args := []string{"rev-parse"}
	for _, n := range names {
		args = append(args, "team/"+n)
	}
	tips := strings.Fields(f.git(f.root, args...))
	var list []team.LaneItem
	for i, n := range names {
		list = append(list, team.LaneItem{Key: int64(i + 1), Name: n, Branch: "team/" + n, Tip: tips[i]})
	}
	return list
}

// lane returns a run into the branch release, which is not checked out.
func (f *fixture) lane(l *laneLog, names ...string) LaneIn {
	return LaneIn{Target: "release", Strategy: StrategyMerge, Items: f.items(names...), Note: l.note,
		Scratch: f.path("lane"), Logs: f.path("logs"), GateLimit: time.Minute}
}

// A repository that a gate makes where git ignores it is not work: the scratch
// worktree is still removed.
func TestLaneGateMakesRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("w", map[string]string{"new": "new"})
	var l laneLog
	in := f.lane(&l, "w")
	in.Gates = []string{"git init -q build/r && cd build/r && git -c user.name=g -c user.email=g@example.org commit -q --allow-empty -m own"}
	f.must(f.repo.RunLane(f.ctx(), in))
	if got := l.of(team.LaneLanded); !cmp.Equal(got, []string{"w"}) {
		t.Errorf("landed: %v %+v", got, l.notes)
	}
	left, err := os.ReadDir(in.Scratch)
	f.must(err)
	if len(left) != 0 {
		t.Errorf("the scratch worktree stays: %v", left)
	}
}

// Twenty branches, with two conflicting pairs and one that fails the gate: the
// result is as specified for every strategy, and for a git without merge-tree.
func TestLaneTwenty(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		strategy string
		old      bool
	}{{StrategyMerge, false}, {StrategySquash, false}, {StrategyRebase, false}, {StrategyMerge, true}} {
		if testing.Short() && c.strategy != StrategySquash {
			continue
		}
		t.Run(fmt.Sprintf("%s old=%v", c.strategy, c.old), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.git(f.root, "branch", "release")
			var names []string
			branches := map[string]map[string]string{}
			for i := range 20 {
				n := fmt.Sprintf("w%02d", i)
				names = append(names, n)
				files := map[string]string{n + ".txt": n + "\n"}
				switch i {
				case 3, 4:
					files["a.txt"] = n + "\n"
				case 10, 15:
					files["sub/b.txt"] = n + "\n"
				case 12:
					files["broken"] = "x"
				}
				if i%5 == 0 {
					f.member(n, files)
				} else {
					branches[n] = files
				}
			}
			f.branchesWith(branches)
			if c.old {
				f.repo.noMergeTree.Store(true)
			}
			before, refs := contents(t, f.root), f.git(f.root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/team", "refs/heads/main")
			var l laneLog
			in := f.lane(&l, names...)
			in.Strategy, in.Gates = c.strategy, []string{"test ! -e broken", "echo ran >>" + f.path("gates")}
			f.must(f.repo.RunLane(f.ctx(), in))
			if got := l.of(team.LaneConflict); !cmp.Equal(got, []string{"w04", "w15"}) {
				t.Errorf("conflict: %v", got)
			}
			if got := l.of(team.LaneRed); !cmp.Equal(got, []string{"w12"}) {
				t.Errorf("red: %v", got)
			}
			if got := l.of(team.LaneLanded); len(got) != 17 {
				t.Errorf("landed: %v", got)
			}
			for _, n := range l.notes {
				switch n.State {
				case team.LaneConflict:
					want := map[string]string{"w04": "a.txt", "w15": "sub/b.txt"}[n.Items[0].Name]
					if !cmp.Equal(n.Files, []string{want}) {
						t.Errorf("%+v", n)
					}
				case team.LaneGating: // its log is known while it runs
					log, err := os.ReadFile(n.Log)
					if err != nil || !strings.HasPrefix(string(log), "$ test ! -e broken\n") {
						t.Errorf("%v %+v", err, n)
					}
				case team.LaneRed:
					log, err := os.ReadFile(n.Log)
					if err != nil || !strings.Contains(string(log), "test ! -e broken") || n.Ran.Status != 1 {
						t.Errorf("%v %+v", err, n)
					}
				default:
				}
			}
			files := f.git(f.root, "ls-tree", "-r", "--name-only", "release")
			for i, n := range names {
				if has, want := strings.Contains(files, n+".txt"), i != 4 && i != 12 && i != 15; has != want {
					t.Errorf("%s in release: %v", n, has)
				}
			}
			merges := f.git(f.root, "rev-list", "--count", "--merges", "release")
			all := f.git(f.root, "rev-list", "--count", "--first-parent", "release")
			if want := map[string]string{StrategyMerge: "17", StrategyRebase: "0", StrategySquash: "0"}[c.strategy]; merges != want || all != "18" {
				t.Errorf("%s merges, %s commits", merges, all)
			}
			// The user's checkout and the members' branches are unchanged. No
			// scratch worktree is left.
			if d := cmp.Diff(before, contents(t, f.root)); d != "" {
				t.Error(d)
			}
			if now := f.git(f.root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/team", "refs/heads/main"); now != refs {
				t.Error("a branch was moved")
			}
			if left, _ := filepath.Glob(f.path("lane/*")); len(left) != 0 {
				t.Error(left)
			}
			// A repeated run finds everything that landed contained; the rest
			// ends as before.
			f.open()
			l = laneLog{}
			in.Items, in.Note = f.items(names...), l.note
			f.must(f.repo.RunLane(f.ctx(), in))
			if len(l.of(team.LaneContained)) != 17 || len(l.of(team.LaneConflict)) != 2 || len(l.of(team.LaneRed)) != 1 {
				t.Errorf("again: %v", l.at)
			}
		})
	}
}

// A branch that conflicts with a red one does not conflict with the target.
func TestLaneConflictWithRed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("red", map[string]string{"a.txt": "red\n", "broken": "x"})
	f.member("good", map[string]string{"a.txt": "good\n"})
	f.member("same", map[string]string{"other.txt": "x\n"})
	f.git(f.path("wt/same"), "merge", "--quiet", "team/good") // contains another of the batch
	var l laneLog
	in := f.lane(&l, "red", "good", "same")
	in.Gates = []string{"test ! -e broken"}
	f.must(f.repo.RunLane(f.ctx(), in))
	if d := cmp.Diff(map[string]team.LaneState{"red": team.LaneRed, "good": team.LaneLanded, "same": team.LaneLanded}, l.at); d != "" {
		t.Error(d)
	}
	if f.git(f.root, "show", "release:a.txt") != "good" {
		t.Error("good did not land")
	}
}

func TestLaneRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("a", map[string]string{"new.txt": "a\n"})
	run := func(edit func(*LaneIn)) error {
		var l laneLog
		in := f.lane(&l, "a")
		edit(&in)
		return f.repo.RunLane(f.ctx(), in)
	}
	main := func(in *LaneIn) { in.Target = "main" }
	both := func(in *LaneIn) { in.Target, in.UpdateCheckout = "main", true }
	wantErr(t, run(main), team.CodeConflict, team.ReasonTargetCheckedOut)
	f.write("main/a.txt", "the person's own\n")
	wantErr(t, run(main), team.CodeConflict, team.ReasonTargetDirty)
	wantErr(t, run(both), team.CodeConflict, team.ReasonTargetDirty)
	if f.git(f.root, "status", "--porcelain") != "M a.txt" && f.git(f.root, "diff", "--name-only") != "a.txt" {
		t.Error("the person's work was touched")
	}
	f.git(f.root, "checkout", "--quiet", "a.txt")
	f.write("main/new.txt", "untracked, in the way")
	err := run(both)
	wantErr(t, err, team.CodeConflict, team.ReasonMergeRefused)
	if want := "git refuses to fast-forward " + f.root + ": "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	f.must(os.Remove(f.path("main/new.txt")))
	// A git that has crashed there is not a file in the way.
	f.write("main/.git/index.lock", "")
	wantErr(t, run(both), team.CodeConflict, team.ReasonLockFile)
	f.must(os.Remove(f.path("main/.git/index.lock")))
	wantErr(t, run(func(in *LaneIn) { in.Target = "nowhere" }), team.CodeNotFound, team.ReasonUnknownRev)
	wantErr(t, run(func(in *LaneIn) { in.Strategy = "octopus" }), team.CodeInvalid, team.ReasonBadInput)
	wantErr(t, run(func(in *LaneIn) { in.Gates = []string{"false"} }), team.CodeConflict, team.ReasonTargetRed)
	wantErr(t, run(func(in *LaneIn) { in.Note = func(context.Context, team.LaneNote) error { return errNotDir } }), team.CodeInternal, "")
	if f.git(f.root, "rev-parse", "release") != f.git(f.root, "rev-parse", "main") {
		t.Error("it was moved")
	}
	// A clean checkout is fast-forwarded on request.
	f.must(run(both))
	if f.git(f.root, "status", "--porcelain") != "" || !f.exists(f.path("main/new.txt")) {
		t.Error("not fast-forwarded")
	}
}

// Another process commits to the target while the gate runs: none of its
// commits is lost.
func TestLaneTargetMoves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("a", map[string]string{"new.txt": "a\n"})
	f.member("other", map[string]string{"other.txt": "o\n"})
	var l laneLog
	in := f.lane(&l, "a")
	in.Gates = []string{"test -e " + f.path("once") + " || { touch " + f.path("once") + " && git -C " + f.root + " branch -f release team/other; }"}
	f.must(f.repo.RunLane(f.ctx(), in))
	if files := f.git(f.root, "ls-tree", "--name-only", "release"); !strings.Contains(files, "new.txt") || !strings.Contains(files, "other.txt") {
		t.Error(files)
	}
}

func TestLaneDryRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.member("a", map[string]string{"a.txt": "by a\n"})
	f.member("b", map[string]string{"a.txt": "b\n"})
	f.member("c", map[string]string{"c.txt": "c\n"})
	f.create("d")
	refs := f.git(f.root, "for-each-ref")
	for _, s := range []string{StrategyMerge, StrategyRebase} {
		var l laneLog
		in := f.lane(&l, "a", "b", "c", "d")
		in.Target, in.DryRun, in.Strategy, in.Gates = "main", true, s, []string{"touch " + f.path("gate-ran")}
		f.must(f.repo.RunLane(f.ctx(), in))
		want := map[string]team.LaneState{"a": team.LaneLanded, "b": team.LaneConflict, "c": team.LaneLanded, "d": team.LaneContained}
		if d := cmp.Diff(want, l.at); d != "" {
			t.Error(s, d)
		}
	}
	if f.git(f.root, "for-each-ref") != refs || f.exists(f.path("gate-ran")) {
		t.Error("a dry run did something")
	}
}

// A kill at any step loses no commit and no branch, and the next run completes.
func TestLaneKilled(t *testing.T) {
	t.Parallel()
	steps := []string{"stacked", "noted-gating", "begun", "added", "recorded", "checked-out", "scratch-made", "gated", "remove-begun", "moved", "doomed", "dropped", "deleted", "noted-landing", "forwarding", "moved-target", "noted-landed", "noted-contained", "noted-conflict", "noted-red"}
	if testing.Short() {
		steps = []string{"added", "noted-gating", "moved", "gated", "noted-landed", "noted-red", "forwarding"}
	}
	for i, step := range steps {
		for j, target := range []string{"release", "main"} {
			if testing.Short() && step != "forwarding" && (i+j)%2 != 0 { // the targets in turn
				continue
			}
			switch step {
			case "begun", "added", "recorded", "checked-out", "scratch-made", "remove-begun", "moved", "doomed", "dropped", "deleted":
				if target == "main" { // same scratch worktree for both targets
					continue
				}
			case "forwarding":
				if target == "release" {
					continue
				}
			}
			t.Run(step+" "+target, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.git(f.root, "branch", "release")
				f.member("a", map[string]string{"a.txt": "by a\n", "new/a": "a\n"})
				branches := map[string]map[string]string{"b": {"a.txt": "b\n"}, "c": {"c.txt": "c\n"}}
				f.write("main/mine.txt", "the person's, untracked")
				var l laneLog
				names := []string{"a", "b", "c"}
				final := map[string]team.LaneState{"b": team.LaneConflict}
				switch step {
				case "noted-red":
					branches["d"] = map[string]string{"broken": "x"}
					names, final["d"] = append(names, "d"), team.LaneRed
				case "noted-contained":
					f.create("d")
					names = append(names, "d")
				}
				f.branchesWith(branches)
				in := f.lane(&l, names...)
				in.Target, in.UpdateCheckout, in.Gates = target, true, []string{"test ! -e broken"}
				in.Book = run.Book{Dir: f.path("commands")}
				killed(t, childJob{Repo: f.root, Do: "lane", Lane: in, KillAt: step})
				refs := f.git(f.root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/team")
				f.must(f.repo.RunLane(f.ctx(), in))
				for _, it := range in.Items {
					s, want := l.at[it.Name], final[it.Name]
					if want != "" && s != want || want == "" && s != team.LaneLanded && s != team.LaneContained {
						t.Errorf("%s: %s", it.Name, s)
					}
				}
				if f.git(f.root, "show", target+":a.txt") != "by a" || f.git(f.root, "show", target+":c.txt") != "c" {
					t.Error("not landed")
				}
				if st := f.git(f.root, "status", "--porcelain"); st != "?? mine.txt" {
					t.Errorf("the person's checkout: %q", st)
				}
				if f.git(f.root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/team") != refs {
					t.Error("a branch was moved")
				}
				f.noScratch(in)
			})
		}
	}
}

// git is killed in the middle of a fast-forward of the user's checkout: the
// next run completes it, unless the user has made changes there since.
func TestLaneForwardKilled(t *testing.T) {
	t.Parallel()
	for _, touched := range []bool{false, true} {
		t.Run(fmt.Sprint("touched ", touched), func(t *testing.T) {
			f := newFixture(t)
			started, _ := f.slowCheckout()
			f.git(f.root, "config", "filter.slow.smudge", "cat")
			f.member("a", map[string]string{"a.txt": "by a\n", "sub/b.txt": "by a\n", "new/a": "a\n"})
			f.git(f.root, "config", "filter.slow.smudge", "echo >"+f.path("hello")+"; read x <"+f.path("bye")+"; cat")
			var l laneLog
			in := f.lane(&l, "a")
			in.Target, in.UpdateCheckout = "main", true
			cmd := childCmd(t, childJob{Repo: f.root, Do: "lane", Lane: in})
			f.must(cmd.Start())
			started()
			f.must(cmd.Process.Kill())
			_ = cmd.Wait()
			f.killGits(f.root)
			f.git(f.root, "config", "filter.slow.smudge", "cat")
			if touched {
				f.write("main/sub/b.txt", "the person's\n")
			}
			err := f.repo.RunLane(f.ctx(), in)
			if touched {
				wantErr(t, err, team.CodeConflict, team.ReasonTargetDirty)
				data, rerr := os.ReadFile(f.path("main/sub/b.txt"))
				if rerr != nil || string(data) != "the person's\n" {
					t.Errorf("%q %v", data, rerr)
				}
				return
			}
			f.must(err)
			if st := f.git(f.root, "status", "--porcelain"); st != "" || f.git(f.root, "show", "HEAD:new/a") != "a" {
				t.Errorf("%q", st)
			}
		})
	}
}

func TestRunCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log := f.path("logs/x.log")
	scope, err := run.Book{}.Open("gate", f.root)
	f.must(err)
	ran, err := RunCommand(f.ctx(), Command{Run: "echo out; echo err >&2; echo $X; exit 3", Dir: f.root, Env: []string{"X=set"}, Log: log, Scope: scope})
	if err != nil || ran.OK() || ran.Status != 3 || ran.Tail != "out\nerr\nset" {
		t.Errorf("%v %+v", err, ran)
	}
	data, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(data), "out\nerr\nset\n# exit status 3") {
		t.Errorf("%v %s", err, data)
	}
	if ran, err = RunCommand(f.ctx(), Command{Run: "kill -KILL $$", Dir: f.root, Scope: scope}); err != nil || ran.OK() || ran.Status != -1 {
		t.Errorf("%v %+v", err, ran)
	}
	_, err = RunCommand(f.ctx(), Command{Run: "true", Dir: f.path("nowhere"), Scope: scope})
	wantErr(t, err, team.CodeUnavailable, team.ReasonCommandFailed)
	ctx, cancel := context.WithCancel(f.ctx())
	cancel()
	_, err = RunCommand(ctx, Command{Run: "true", Dir: f.root, Scope: scope})
	wantErr(t, err, team.CodeUnavailable, team.ReasonCanceled)
}

// A process that a gate, setup or teardown command detaches ends with the
// command, however the command ends.
func TestCommandsEndWhole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	for _, what := range []string{"setup", "teardown", "late", "cut"} {
		t.Run(what, func(t *testing.T) {
			pids := f.path(what + ".pids")
			in := SetupIn{Path: w.Path, Run: []string{hide}, Env: []string{"PIDS=" + pids}, Log: f.path(what + ".log"), Book: run.Book{Dir: f.path("commands"), Team: "demo"}}
			ctx, cancel := context.WithCancel(f.ctx())
			defer cancel()
			var err error
			switch what {
			case "setup":
				_, err = f.repo.Setup(ctx, in)
			case "teardown":
				_, err = f.repo.Teardown(ctx, in)
			case "late":
				in.Run[0] = hide + "wait"
				for data := []byte(nil); len(data) == 0; data, _ = os.ReadFile(pids) { // on a busy machine it may end before it hides
					in.Limit = 2*in.Limit + time.Second
					_, err := f.repo.Setup(ctx, in)
					wantErr(t, err, team.CodeConflict, team.ReasonSetup)
				}
			case "cut":
				in.Run[0] = hide + "wait"
				done := make(chan error, 1)
				go func() {
					_, err := f.repo.Setup(ctx, in)
					done <- err
				}()
				f.hidden(pids)
				cancel()
				wantErr(t, <-done, team.CodeUnavailable, team.ReasonCanceled)
			}
			f.must(err)
			if pid := f.hidden(pids); !isEnded(pid) {
				t.Errorf("%d lives", pid)
			}
			if left, err := os.ReadDir(f.path("commands")); err != nil || len(left) != 0 {
				t.Errorf("records: %v %v", left, err)
			}
		})
	}
}

// A lane is killed while its gate has a hidden process: the next lane ends the
// process and removes the scratch worktree, but keeps that of a living lane.
func TestLaneGateKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git(f.root, "branch", "release")
	f.member("a", map[string]string{"new": "new"})
	var l laneLog
	in := f.lane(&l, "a")
	in.Book = run.Book{Dir: f.path("commands"), Team: "demo"}
	in.Env, in.Gates = []string{"PIDS=" + f.path("pids")}, []string{hide + "wait"}
	cmd := childCmd(t, childJob{Repo: f.root, Do: "lane", Lane: in})
	f.must(cmd.Start())
	pid := f.hidden(f.path("pids"))
	if left, owned := Scratches(in.Scratch, in.Book); len(left) != 0 || len(owned) != 1 {
		t.Errorf("left %v, owned %v", left, owned)
	}
	n, err := f.repo.SweepScratch(f.ctx(), in.Scratch, in.Book)
	if err != nil || n != 0 || isEnded(pid) {
		t.Errorf("a living lane: %d %v", n, err)
	}
	f.must(cmd.Process.Kill())
	_ = cmd.Wait()
	in.Gates = []string{"true"}
	f.must(f.repo.RunLane(f.ctx(), in))
	if !isEnded(pid) {
		t.Errorf("%d lives", pid)
	}
	f.noScratch(in)
}

// noScratch fails if a lane left a directory, registration or record.
func (f *fixture) noScratch(in LaneIn) {
	f.Helper()
	for _, dir := range []string{in.Scratch, in.Book.Dir} {
		if left, err := os.ReadDir(dir); err == nil && len(left) != 0 {
			f.Errorf("left in %s: %v", dir, left)
		}
	}
	if list := f.git(f.root, "worktree", "list", "--porcelain"); strings.Contains(list, in.Scratch) {
		f.Errorf("registered: %s", list)
	}
	if refs := f.git(f.root, "for-each-ref", "refs/teamctl/rescue"); refs != "" {
		f.Errorf("rescued: %s", refs)
	}
}

// A sweep removes a registration without a directory, a directory without a
// registration, one of an earlier version and one damaged by a gate.
func TestSweepScratch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var l laneLog
	in := f.lane(&l)
	scratch := func(name string) string {
		p := filepath.Join(in.Scratch, name)
		f.git(f.root, "worktree", "add", "-q", "--detach", p)
		return p
	}
	f.must(os.RemoveAll(scratch("lane-" + team.NewUUID())))
	plain := filepath.Join(in.Scratch, "lane-"+team.NewUUID())
	f.must(os.MkdirAll(filepath.Join(plain, "sub"), 0o700))
	old := scratch("lane-0123abcd")
	f.git(f.root, "worktree", "lock", old)
	spoilt := scratch("lane-" + team.NewUUID())
	f.must(os.Remove(filepath.Join(spoilt, ".git")))
	f.must(os.WriteFile(filepath.Join(spoilt, "work"), []byte("x"), 0o400))
	f.must(os.Chmod(spoilt, 0o500))
	mine := filepath.Join(in.Scratch, "lane-mine")
	f.must(os.Mkdir(mine, 0o700))
	n, err := f.repo.SweepScratch(f.ctx(), in.Scratch, in.Book)
	if err != nil || n != 4 || !f.exists(mine) {
		t.Errorf("%d %v", n, err)
	}
	f.must(os.Remove(mine))
	f.noScratch(in)
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.member("a", map[string]string{"a.txt": "by a\n"})
	b := f.member("b", map[string]string{"b.txt": "b\n"})
	f.write("main/a.txt", "by main\n")
	f.commitMain("main goes on")
	onto := f.head(f.root)
	f.write("main/.git/worktrees/b/index.lock", "")
	_, err := f.repo.Refresh(f.ctx(), b.Path, "main")
	wantErr(t, err, team.CodeConflict, team.ReasonLockFile)
	f.must(os.Remove(f.path("main/.git/worktrees/b/index.lock")))
	res, err := f.repo.Refresh(f.ctx(), b.Path, "main")
	f.must(err)
	st, err := f.repo.Status(f.ctx(), b.Path)
	if err != nil || st.Base != onto || st.Ahead != 1 || st.Behind != 0 || res.Head != st.Head || res.Before == res.Head {
		t.Errorf("%v %+v %+v", err, st, res)
	}
	before := f.state(a.Path)
	res, err = f.repo.Refresh(f.ctx(), a.Path, "main")
	wantErr(t, err, team.CodeConflict, team.ReasonMergeConflict)
	if !cmp.Equal(before, f.state(a.Path)) || !cmp.Equal(res.Conflicts, []string{"a.txt"}) {
		t.Errorf("%+v", res)
	}
	f.write("wt/a/x", "x")
	_, err = f.repo.Refresh(f.ctx(), a.Path, "main")
	wantErr(t, err, team.CodeConflict, team.ReasonWorktreeDirty)
	_, err = f.repo.Refresh(f.ctx(), f.root, "main")
	wantErr(t, err, team.CodeDenied, team.ReasonMainWorktree)
}
