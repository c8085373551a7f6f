package worktree

import (
	"bytes"
	"crypto/sha1"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The entries read from an index file are those that git lists, and an index
// that may hide a change is left to git.
func TestEntriesFromIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	index := filepath.Join(tr.dir, "index")
	plain := func(when string, want bool) {
		t.Helper()
		got, ok := plainEntries(index)
		if ok != want {
			t.Errorf("%s: plain %v", when, ok)
		}
		listed, err := tr.gitEntries(f.ctx(), index)
		f.must(err)
		if d := cmp.Diff(listed, got, cmp.AllowUnexported(entry{})); ok && d != "" {
			t.Errorf("%s: (-git +file)\n%s", when, d)
		}
	}
	plain("created", true)
	for n := range 9 { // each padding
		f.write("wt/w/"+strings.Repeat("n", n+1), "x")
	}
	f.write("wt/w/run", "#!/bin/sh\n")
	f.must(os.Chmod(f.path("wt/w/run"), 0o755))
	f.must(os.Symlink("run", f.path("wt/w/link")))
	f.git(w.Path, "add", "--all")
	head, blob := f.git(w.Path, "rev-parse", "HEAD"), f.git(w.Path, "rev-parse", "HEAD:a.txt")
	f.git(w.Path, "update-index", "--add", "--cacheinfo", "160000,"+head+",module")
	for _, n := range []int{4094, 4095, 4096, 5000} { // the index has twelve bits for a length
		f.git(w.Path, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+strings.Repeat("p", n))
	}
	plain("staged", true)
	f.git(w.Path, "write-tree") // adds an extension
	plain("with a cached tree", true)

	whole, err := os.ReadFile(index)
	f.must(err)
	for _, args := range []string{
		"update-index --assume-unchanged a.txt", "update-index --skip-worktree a.txt", "add --intent-to-add later",
		"update-index --index-version=4", "update-index --split-index",
	} {
		f.must(os.WriteFile(index, whole, 0o600))
		f.write("wt/w/later", "x")
		f.git(w.Path, strings.Fields(args)...)
		plain(args, false)
	}
	f.must(os.WriteFile(index, whole, 0o600))
	c := tr.call("update-index", "--index-info")
	c.stdin = []byte("0 " + strings.Repeat("0", 40) + "\ta.txt\n100644 " + blob + " 1\ta.txt\n100755 " + blob + " 3\ta.txt\n")
	_, err = git(f.ctx(), c)
	f.must(err)
	plain("in conflict", true)
	list, ok := plainEntries(index)
	if whole, err = os.ReadFile(index); err != nil || !ok {
		t.Fatal(err)
	}
	for n := 0; n < len(whole); n += 97 {
		damaged := bytes.Clone(whole)
		damaged[n] ^= 1
		f.must(os.WriteFile(index, damaged, 0o600))
		if _, ok := plainEntries(index); ok {
			t.Fatalf("byte %d is damaged", n)
		}
		sum := sha1.Sum(whole[:n]) // the sum is right, and the index ends early
		f.must(os.WriteFile(index, append(whole[:n:n], sum[:]...), 0o600))
		if got, ok := plainEntries(index); ok && len(got) != len(list) {
			t.Fatalf("cut at %d, it has %d of %d entries", n, len(got), len(list))
		}
	}
}
