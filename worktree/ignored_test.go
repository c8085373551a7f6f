package worktree

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The status lists the same ignored files as a look for them alone, and names every repository
// that is inside.
func TestStatusIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", "*.log\nbuild/\nnode_modules\n/secret\nd/only.x\n/own/*\n!/own/kept\n")
	f.commitMain("ignore more")
	w := f.create("w")
	for _, name := range []string{
		"a.log", "sub/b.log", "new/deep/c.log", "new/deep/untracked", "build/x/f", "build/y.log", "node_modules/m/f", "sub/node_modules/f", "secret",
		"d/only.x", "logs/deep/only.log", "own/x/y", "own/z", "own/kept", "sp ace/ä\n.log", "beside/x.log", "nested/x.log",
	} {
		f.write("wt/w/"+name, "x")
	}
	repos := []string{"nested", "beside/clone", "build/clone", "logs/clone", "logs/x.log"}
	for _, name := range repos {
		f.git(f.root, "init", "--quiet", f.path("wt/w/"+name))
	}
	tr, err := f.repo.tree(w.Path)
	f.must(err)
	files := func(paths []string) (list []string) {
		t.Helper()
		for _, p := range paths {
			f.must(filepath.WalkDir(filepath.Join(w.Path, p), func(p string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
					return err
				case d.IsDir() && isGitDir(filepath.Join(p, ".git")):
					return fs.SkipDir
				case !d.IsDir():
					list = append(list, p)
				}
				return nil
			}))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	alone, err := tr.ignored(f.ctx())
	f.must(err)
	st, got, err := tr.statusIgnored(f.ctx(), "")
	f.must(err)
	if d := cmp.Diff(files(alone), files(got)); d != "" {
		t.Errorf("(-alone +status)\n%s", d)
	}
	plain, err := tr.status(f.ctx())
	f.must(err)
	if d := cmp.Diff(plain, st); d != "" {
		t.Errorf("another status:\n%s", d)
	}
	found, err := tr.ignoredRepos(got)
	f.must(err)
	for _, c := range st.Changes {
		if c.Nested() {
			found = append(found, filepath.Clean(c.Path))
		}
	}
	slices.Sort(found)
	slices.Sort(repos)
	if d := cmp.Diff(repos, found); d != "" {
		t.Errorf("repositories inside:\n%s", d)
	}
}
