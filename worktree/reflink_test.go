package worktree

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Each file is cloned if the file system supports it, and copied otherwise:
// neighbouring directories may be on different file systems.
func TestSetupClones(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("main/.gitignore", "*.log\n/build/\ncache\n")
	f.commitMain("ignore")
	for _, name := range []string{"one", "two", "three"} {
		f.write("main/cache/"+name, strings.Repeat(name, 1000))
	}
	setup := func(member string, clone func(dst, src *os.File) error) team.WorktreeSetUp {
		t.Helper()
		w := f.create(member)
		f.repo.clone = clone
		out, err := f.repo.Setup(f.ctx(), SetupIn{Path: w.Path, Copy: []string{"cache"}})
		f.must(err)
		for _, name := range []string{"one", "two", "three"} {
			if data, err := os.ReadFile(w.Path + "/cache/" + name); err != nil || string(data) != strings.Repeat(name, 1000) {
				t.Errorf("%s: %s: %d bytes, %v", member, name, len(data), err)
			}
		}
		return out
	}
	cloned := func(dst, src *os.File) error { _, err := io.Copy(dst, src); return err }
	if out := setup("can", cloned); out.Copied != 3 || out.Reflinked != 3 {
		t.Errorf("can: %+v", out)
	}
	for _, errno := range []syscall.Errno{syscall.EOPNOTSUPP, syscall.EXDEV, syscall.EINVAL, syscall.ENOTTY} {
		if out := setup(fmt.Sprint("cannot-", int(errno)), func(_, _ *os.File) error { return errno }); out.Copied != 3 || out.Reflinked != 0 {
			t.Errorf("%v: %+v", errno, out)
		}
	}
	n := 0
	out := setup("some", func(dst, src *os.File) error {
		if n++; n == 2 {
			return syscall.EXDEV
		}
		return cloned(dst, src)
	})
	if out.Copied != 3 || out.Reflinked != 2 {
		t.Errorf("some: %+v", out)
	}
}

// The real reflink either clones, or fails and has written nothing.
func TestReflink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src, err := os.Create(dir + "/src")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	dst, err := os.Create(dir + "/dst")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dst.Close() }()
	if _, err := src.WriteString("content"); err != nil {
		t.Fatal(err)
	}
	err = reflink(dst, src)
	data, rerr := os.ReadFile(dir + "/dst")
	if rerr != nil || err == nil && string(data) != "content" || err != nil && len(data) != 0 {
		t.Errorf("%v: %q %v", err, data, rerr)
	}
}
