package worktree

import (
	"fmt"
	"math/rand"
	"testing"
)

// Many pairs counted together give the same result as git for each pair, in a
// history with merges and without a common ancestor.
func TestCountPairs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rnd := rand.New(rand.NewSource(1))
	commits := []string{f.git(f.root, "rev-parse", "HEAD")}
	tree := f.git(f.root, "rev-parse", "HEAD^{tree}")
	for i := range 25 {
		args := []string{"commit-tree", tree, "-m", fmt.Sprint(i)}
		seen := map[string]bool{}
		for range 1 + rnd.Intn(2) {
			if p := commits[max(0, len(commits)-1-rnd.Intn(6))]; !seen[p] {
				seen[p] = true
				args = append(args, "-p", p)
			}
		}
		commits = append(commits, f.git(f.root, args...))
	}
	check := func(pairs []pair) {
		t.Helper()
		got, err := f.repo.countPairs(f.ctx(), pairs)
		f.must(err)
		for _, p := range pairs {
			var want sides
			_, err := fmt.Sscan(f.git(f.root, "rev-list", "--left-right", "--count", p.a+"..."+p.b), &want.left, &want.right)
			f.must(err)
			if got[p] != want {
				t.Errorf("%v: %v, want %v", p, got[p], want)
			}
		}
	}
	var pairs []pair
	for range 20 {
		pairs = append(pairs, pair{commits[rnd.Intn(len(commits))], commits[rnd.Intn(len(commits))]})
	}
	check(pairs)
	check(pairs[:1])
	var same []pair
	for _, c := range commits {
		same = append(same, pair{commits[4], c})
	}
	check(same) // most contain it, the first ones do not
	check(same[10:])
	check(nil)
	other := f.git(f.root, "commit-tree", tree, "-m", "of its own")
	check(append(pairs[:3:3], pair{other, commits[9]}))
}
