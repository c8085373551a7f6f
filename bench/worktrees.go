package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/worktree"
)

// worktrees: what the safety of a member's worktree costs beside bare git, each
// against git with its best settings in the same round.
var worktrees = benchmark{name: "worktrees", title: "Worktrees", run: runWorktrees}

const (
	treeFiles  = 1000
	treeRounds = 21 // fewer where they take long: treeBudget
	treeMany   = 20
	treeLeast  = 3                // rounds, however long they take
	treeBudget = 45 * time.Second // for the rounds of one row: the 50 000 files of a slow disk take that long
)

// pairUp is one thing measured, ours against git's.
type pairUp struct {
	label, floor string
	goal         float64
	ours, git    func(ctx context.Context, round int) error
	took         func() time.Duration                       // of ours, where only a part of it is measured
	also         func(ctx context.Context, round int) error // git with other settings: the faster counts
	plus         time.Duration                              // allowed on top of git's time
	before       func(ctx context.Context, round int) error // not measured
	after        func(ctx context.Context, round int) error // likewise
	a, b, c      []time.Duration
}

// trees is the repository of the benchmark.
type trees struct {
	dir, root string
	files     int
	repo      *worktree.Repo
	steps     map[string]time.Time // of repo, the last of each name; of rows that do one thing at a time
	stepping  sync.Mutex
}

func runWorktrees(ctx context.Context, e env) (string, error) {
	rounds := min(e.rounds, treeRounds)
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n| operation | files | ours, median ms | beside | its median ms | ratio | goal |\n|---|---|---|---|---|---|---|\n", where(rounds))
	sizes := []int{100, treeFiles, 10_000, 50_000}
	if e.quick {
		sizes = sizes[:2]
	}
	for _, files := range sizes {
		if err := creates(ctx, e, &out, files, rounds); err != nil {
			return "", err
		}
	}
	t, err := newTrees(ctx, filepath.Join(e.dir, "many"), treeFiles)
	if err != nil {
		return "", err
	}
	defer t.repo.Wait()
	many, err := t.members(ctx, treeMany)
	if err != nil {
		return "", err
	}
	err = t.table(ctx, &out, rounds, t.remove(), t.removal(), t.unchanged(many[0]), t.snapshot(many[1]), t.status(many), t.merge())
	return out.String(), err
}

// creates measures creation in a repository of a size, and removes it.
func creates(ctx context.Context, e env, out *strings.Builder, files, rounds int) (err error) {
	dir := filepath.Join(e.dir, strconv.Itoa(files))
	t, err := newTrees(ctx, dir, files)
	if err != nil {
		return err
	}
	defer func() {
		t.repo.Wait()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if files > 10_000 { // ten of them would write a million files a round
		return t.table(ctx, out, min(rounds, treeLeast), t.create())
	}
	return t.table(ctx, out, rounds, t.create(), t.registered(), t.tenAtOnce())
}

// table measures and adds a line for each.
func (t *trees) table(ctx context.Context, out *strings.Builder, rounds int, pairs ...*pairUp) error {
	for _, p := range pairs {
		if err := p.measure(ctx, rounds); err != nil {
			return fmt.Errorf("%s: %w", p.label, err)
		}
		ours, git := median(p.a), median(p.b)
		if len(p.c) > 0 {
			git = min(git, median(p.c))
		}
		git += p.plus
		got := float64(ours) / float64(git)
		word := "met"
		if got > p.goal {
			word = "MISSED"
		}
		fmt.Fprintf(out, "| %s | %d | %s | %s | %s | %.2f | <= %.2f: %s |\n", p.label, t.files, ms(ours), p.floor, ms(git), got, p.goal, word)
	}
	return nil
}

// measure runs each once a round, in turns first; the first round warms up. Where
// rounds take long there are fewer.
func (p *pairUp) measure(ctx context.Context, rounds int) error {
	runs := []struct {
		do   func(context.Context, int) error
		took func() time.Duration
		into *[]time.Duration
	}{{p.ours, p.took, &p.a}, {p.git, nil, &p.b}, {p.also, nil, &p.c}}
	if p.also == nil {
		runs = runs[:2]
	}
	start := time.Now()
	for round := range rounds + 1 {
		if round > treeLeast && time.Since(start) > treeBudget {
			return nil
		}
		if p.before != nil {
			if err := p.before(ctx, round); err != nil {
				return err
			}
		}
		for i := range runs {
			r := runs[(i+round)%len(runs)]
			begin := time.Now()
			if err := r.do(ctx, round); err != nil {
				return err
			}
			d := time.Since(begin)
			if r.took != nil {
				d = r.took()
			}
			if round > 0 {
				*r.into = append(*r.into, d)
			}
		}
		if p.after != nil {
			if err := p.after(ctx, round); err != nil {
				return err
			}
		}
	}
	return nil
}

func newTrees(ctx context.Context, dir string, files int) (*trees, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	t := &trees{dir: dir, root: filepath.Join(dir, "repo"), files: files, steps: map[string]time.Time{}}
	for i := range files {
		p := filepath.Join(t.root, "d"+strconv.Itoa(i%40), "f"+strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(p, []byte(strings.Repeat(strconv.Itoa(i)+"\n", 50)), 0o600); err != nil {
			return nil, err
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "gc.auto", "0"}, {"add", "."}, {"commit", "-q", "-m", "start"}, {"branch", "lane"}, {"branch", "plain"}} {
		if err := t.git(ctx, t.root, args...); err != nil {
			return nil, err
		}
	}
	t.repo, err = worktree.OpenRepo(worktree.WithSteps(ctx, t.step), t.root)
	return t, err
}

// step notes when a step was reached.
func (t *trees) step(name string) {
	t.stepping.Lock()
	defer t.stepping.Unlock()
	t.steps[name] = time.Now()
}

// between is the time from one step to another one.
func (t *trees) between(from, to string) time.Duration {
	t.stepping.Lock()
	defer t.stepping.Unlock()
	return t.steps[to].Sub(t.steps[from])
}

func (t *trees) git(ctx context.Context, dir string, args ...string) error {
	return quiet(ctx, nil, "git", append([]string{"-C", dir, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"}, args...)...)
}

func (t *trees) at(name string, round int) string {
	return filepath.Join(t.dir, "wt", name+"-"+strconv.Itoa(round))
}

// members are worktrees with one commit each that do not conflict.
func (t *trees) members(ctx context.Context, n int) ([]string, error) {
	var paths []string
	for i := range n {
		w, err := t.repo.Create(ctx, worktree.CreateIn{Path: filepath.Join(t.dir, "m", strconv.Itoa(i)), Branch: "m/" + strconv.Itoa(i)})
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(w.Path, "new"+strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			return nil, err
		}
		if _, _, _, err := t.repo.Commit(ctx, w.Path, worktree.CommitIn{Message: "work"}); err != nil {
			return nil, err
		}
		paths = append(paths, w.Path)
	}
	return paths, nil
}

// drop removes worktrees after a round.
func (t *trees) drop(ctx context.Context, round int, names ...string) error {
	var errs []error
	for _, n := range names {
		errs = append(errs, t.git(ctx, t.root, "worktree", "remove", "--force", t.at(n, round)))
	}
	return errors.Join(errs...)
}

// add is `git worktree add` as name, with settings before and options behind it.
func (t *trees) add(name string, settings []string, options ...string) func(context.Context, int) error {
	return func(ctx context.Context, r int) error {
		args := append(append(append([]string{}, settings...), "worktree", "add", "-q"), options...)
		return t.git(ctx, t.root, append(args, "-b", name+"-"+strconv.Itoa(r), t.at(name, r))...)
	}
}

func (t *trees) create() *pairUp {
	return &pairUp{
		label: "create one", floor: "`git worktree add`, the faster of one and two workers", goal: 1.15,
		ours: func(ctx context.Context, r int) error {
			_, err := t.repo.Create(ctx, worktree.CreateIn{Path: t.at("one", r), Branch: "one-" + strconv.Itoa(r)})
			return err
		},
		git:   t.add("plain-one", nil),
		also:  t.add("workers-one", []string{"-c", "checkout.workers=2", "-c", "checkout.thresholdForParallelism=1"}),
		after: func(ctx context.Context, r int) error { return t.drop(ctx, r, "one", "plain-one", "workers-one") },
	}
}

// registered: a directory, a branch and a base, with the files on their way. The 10 ms
// that this may take are those of a machine where the floor takes 6.
func (t *trees) registered() *pairUp {
	return &pairUp{
		label: "create one, until it is registered", floor: "`git worktree add --no-checkout`", goal: 1.67,
		ours: func(ctx context.Context, r int) error {
			t.step("asked")
			_, err := t.repo.Create(ctx, worktree.CreateIn{Path: t.at("reg", r), Branch: "reg-" + strconv.Itoa(r)})
			return err
		},
		took:  func() time.Duration { return t.between("asked", "recorded") },
		git:   t.add("git-reg", nil, "--no-checkout"),
		after: func(ctx context.Context, r int) error { return t.drop(ctx, r, "reg", "git-reg") },
	}
}

func (t *trees) tenAtOnce() *pairUp {
	name := func(kind string, r, i int) string { return kind + strconv.Itoa(i) + "-" + strconv.Itoa(r) }
	goal := 0.8
	if t.files >= 10_000 {
		goal = 0.6
	}
	return &pairUp{
		label: "create ten at once", floor: "ten `git worktree add` in a row", goal: goal,
		ours: func(ctx context.Context, r int) error {
			return together(10, func(i int) error {
				n := name("ten", r, i)
				_, err := t.repo.Create(ctx, worktree.CreateIn{Path: filepath.Join(t.dir, "wt", n), Branch: n})
				return err
			})
		},
		git: func(ctx context.Context, r int) error {
			for i := range 10 {
				n := name("row", r, i)
				if err := t.git(ctx, t.root, "worktree", "add", "-q", "-b", n, filepath.Join(t.dir, "wt", n)); err != nil {
					return err
				}
			}
			return nil
		},
		after: func(ctx context.Context, r int) error {
			for i := range 10 {
				for _, kind := range []string{"ten", "row"} {
					if err := t.git(ctx, t.root, "worktree", "remove", "--force", filepath.Join(t.dir, "wt", name(kind, r, i))); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// together calls f for 0 to n-1 at once.
func together(n int, f func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = f(i)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// detached makes worktrees for a round.
func (t *trees) detached(ctx context.Context, round int, names ...string) error {
	var errs []error
	for _, n := range names {
		errs = append(errs, t.git(ctx, t.root, "worktree", "add", "-q", "--detach", t.at(n, round)))
	}
	return errors.Join(errs...)
}

func (t *trees) remove() *pairUp {
	return &pairUp{
		label: "remove one (files deleted behind)", floor: "its checks, twice, as git commands, and 20 ms", goal: 1, plus: 20 * time.Millisecond,
		before: func(ctx context.Context, r int) error { return t.detached(ctx, r, "rm", "git-rm") },
		ours: func(ctx context.Context, r int) error {
			_, err := t.repo.Remove(ctx, t.at("rm", r), worktree.RemoveIn{Background: true})
			return err
		},
		git: func(ctx context.Context, r int) error {
			// What must be known before anything is removed, and again under the lock.
			for range 2 {
				for _, args := range [][]string{
					{"ls-files", "-v", "-s", "-z"},
					{"status", "--porcelain=v2", "--branch", "--untracked-files=all"},
					{"worktree", "list", "--porcelain"},
					{"rev-list", "HEAD", "--not", "--branches", "--tags", "--remotes"},
				} {
					if err := t.git(ctx, t.at("git-rm", r), args...); err != nil {
						return err
					}
				}
			}
			return nil
		},
		after: func(ctx context.Context, r int) error {
			t.repo.Wait()
			return t.drop(ctx, r, "git-rm")
		},
	}
}

// removal is what removing costs when it is known that nothing is lost: from the
// facts to the answer, the files are deleted behind.
func (t *trees) removal() *pairUp {
	return &pairUp{
		label: "remove one, beyond its checks", floor: "`git worktree remove --force`", goal: 0.1,
		before: func(ctx context.Context, r int) error { return t.detached(ctx, r, "gone", "git-gone") },
		ours: func(ctx context.Context, r int) error {
			_, err := t.repo.Remove(ctx, t.at("gone", r), worktree.RemoveIn{Background: true})
			t.step("removed")
			t.repo.Wait() // not measured: took ends before
			return err
		},
		took: func() time.Duration {
			return t.between("remove-begun", "moved") + t.between("doomed", "removed")
		},
		git: func(ctx context.Context, r int) error { return t.drop(ctx, r, "git-gone") },
	}
}

// change makes a worktree dirty, with files that are not too new to tell.
func change(path string, n, round int) error {
	old := time.Now().Add(-time.Minute)
	for i := range n {
		p := filepath.Join(path, "d"+strconv.Itoa(i), "f"+strconv.Itoa(i))
		if err := os.WriteFile(p, []byte("changed "+strconv.Itoa(round)), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(p, old, old.Add(time.Duration(round)*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func (t *trees) unchanged(path string) *pairUp {
	return &pairUp{
		label: "checkpoint, nothing changed", floor: "`git status`", goal: 1.05, // no more than it, within the noise of a few rounds
		ours: func(ctx context.Context, _ int) error {
			_, _, err := t.repo.Checkpoint(ctx, path, "bench", "m0", "bench")
			return err
		},
		git: func(ctx context.Context, _ int) error {
			return t.git(ctx, path, "status", "--porcelain=v2", "--branch", "--untracked-files=all")
		},
	}
}

func (t *trees) snapshot(path string) *pairUp {
	return &pairUp{
		label: "checkpoint, ten files changed", floor: "`git add -A`, `stash create`, `reset`", goal: 3,
		ours: func(ctx context.Context, r int) error {
			if err := change(path, 10, r); err != nil {
				return err
			}
			_, fresh, err := t.repo.Checkpoint(ctx, path, "bench", "m1", "bench")
			if err == nil && !fresh {
				err = errors.New("nothing was saved")
			}
			return err
		},
		git: func(ctx context.Context, r int) error {
			if err := change(path, 10, r+1000); err != nil {
				return err
			}
			for _, args := range [][]string{{"add", "-A"}, {"stash", "create"}, {"reset", "-q"}} {
				if err := t.git(ctx, path, args...); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (t *trees) status(paths []string) *pairUp {
	return &pairUp{
		label: "status of 20 in one pass", floor: "20 `git status` at once", goal: 1.2,
		ours: func(ctx context.Context, _ int) error {
			_, errs := t.repo.StatusAll(ctx, paths)
			return errors.Join(errs...)
		},
		git: func(ctx context.Context, _ int) error {
			return together(len(paths), func(i int) error {
				return t.git(ctx, paths[i], "status", "--porcelain=v2", "--branch", "--untracked-files=all")
			})
		},
	}
}

func (t *trees) merge() *pairUp {
	scratch := filepath.Join(t.dir, "plain")
	start := sync.OnceValue(func() error {
		return t.git(context.Background(), t.root, "worktree", "add", "-q", scratch, "plain")
	})
	return &pairUp{
		label: "merge 20 branches (no gate)", floor: "20 `git merge --no-ff` in a worktree", goal: 1.2,
		ours: func(ctx context.Context, _ int) error {
			in := worktree.LaneIn{Target: "lane", Strategy: worktree.StrategyMerge, Scratch: filepath.Join(t.dir, "scratch"), Logs: filepath.Join(t.dir, "logs"),
				Note: func(_ context.Context, n team.LaneNote) error {
					if n.State == team.LaneConflict || n.State == team.LaneContained {
						return fmt.Errorf("%s: %v", n.State, n.Items)
					}
					return nil
				}}
			for i := range treeMany {
				tip, err := t.repo.Resolve(ctx, "m/"+strconv.Itoa(i))
				if err != nil {
					return err
				}
				in.Items = append(in.Items, team.LaneItem{Key: int64(i), Name: strconv.Itoa(i), Branch: "m/" + strconv.Itoa(i), Tip: tip})
			}
			return t.repo.RunLane(ctx, in)
		},
		git: func(ctx context.Context, _ int) error {
			if err := start(); err != nil {
				return err
			}
			for i := range treeMany {
				if err := t.git(ctx, scratch, "merge", "-q", "--no-ff", "--no-edit", "m/"+strconv.Itoa(i)); err != nil {
					return err
				}
			}
			return nil
		},
		after: func(ctx context.Context, _ int) error {
			return errors.Join(t.git(ctx, t.root, "branch", "-q", "-f", "lane", "main"), t.git(ctx, scratch, "reset", "-q", "--hard", "main"))
		},
	}
}
