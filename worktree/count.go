package worktree

import (
	"context"
	"slices"
	"strings"
)

// pair is two commits to compare.
type pair struct{ a, b string }

// sides counts the commits that only a contains and those that only b contains.
type sides struct{ left, right int }

// countPairs compares many pairs with at most three processes: one finds the
// common ancestors of all commits, one lists the commits above them. It
// compares a single pair, and commits without common history, one by one.
func (r *Repo) countPairs(ctx context.Context, pairs []pair) (map[pair]sides, error) {
	out := map[pair]sides{}
	var args []string
	seen := map[string]bool{}
	for _, p := range pairs {
		if p.a == p.b {
			continue // no difference
		}
		out[p] = sides{}
		for _, c := range []string{p.a, p.b} {
			if !seen[c] {
				seen[c] = true
				args = append(args, c)
			}
		}
	}
	if len(args) <= 2 {
		return out, r.countEach(ctx, out)
	}
	if done, err := r.countAbove(ctx, out); err != nil || done {
		return out, err
	}
	base, err := r.read(ctx, append([]string{"merge-base", "--octopus"}, args...)...)
	if exitStatus(err) == 1 {
		return out, r.countEach(ctx, out)
	}
	if err != nil {
		return nil, failed("compare commits of "+r.root, err)
	}
	parents, err := r.listAbove(ctx, args, lines(base, '\n')...)
	if err != nil {
		return nil, err
	}
	above := map[string]map[string]bool{}
	for c := range seen {
		above[c] = reach(parents, c)
	}
	for p := range out {
		out[p] = sides{left: countMissing(above[p.a], above[p.b]), right: countMissing(above[p.b], above[p.a])}
	}
	return out, nil
}

// countAbove counts with one process if all pairs have the same first commit
// and every second commit contains it: in most teams all branches start at the
// same commit.
func (r *Repo) countAbove(ctx context.Context, out map[pair]sides) (done bool, err error) {
	base, tips := "", []string(nil)
	for p := range out {
		if base != "" && p.a != base {
			return false, nil
		}
		base, tips = p.a, append(tips, p.b)
	}
	parents, err := r.listAbove(ctx, tips, base)
	if err != nil {
		return false, err
	}
	for p := range out {
		got := reach(parents, p.b)
		begun := false
		for c := range got {
			begun = begun || slices.Contains(parents[c], base)
		}
		if !begun {
			return false, nil
		}
		out[p] = sides{right: len(got)}
	}
	return true, nil
}

// listAbove returns the commits reachable from tips but not from below, with
// their parents.
func (r *Repo) listAbove(ctx context.Context, tips []string, below ...string) (map[string][]string, error) {
	list, err := git(ctx, call{dir: r.root, read: true, args: []string{"rev-list", "--parents", "--stdin"},
		stdin: []byte(strings.Join(tips, "\n") + "\n^" + strings.Join(below, "\n^") + "\n")})
	if err != nil {
		return nil, failed("compare commits of "+r.root, err)
	}
	parents := map[string][]string{}
	for _, l := range lines(list, '\n') {
		f := strings.Fields(l)
		parents[f[0]] = f[1:]
	}
	return parents, nil
}

func (r *Repo) countEach(ctx context.Context, out map[pair]sides) error {
	t := tree{path: r.root, at: r.root, dir: r.common, main: true}
	for p := range out {
		left, right, err := t.leftRight(ctx, p.a, p.b)
		if err != nil {
			return err
		}
		out[p] = sides{left, right}
	}
	return nil
}

// reach returns the listed commits that are reachable from from, itself
// included.
func reach(parents map[string][]string, from string) map[string]bool {
	got := map[string]bool{}
	for next := []string{from}; len(next) > 0; {
		c := next[len(next)-1]
		next = next[:len(next)-1]
		if _, listed := parents[c]; listed && !got[c] {
			got[c] = true
			next = append(next, parents[c]...)
		}
	}
	return got
}

// countMissing counts the members of a that are not in b.
func countMissing(a, b map[string]bool) int {
	n := 0
	for c := range a {
		if !b[c] {
			n++
		}
	}
	return n
}
