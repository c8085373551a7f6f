package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	for _, hook := range []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "reference-transaction"} {
		f.write("main/.git/hooks/"+hook, "#!/bin/sh\ntouch "+f.path("hooked")+"\nexit 1\n")
		f.must(os.Chmod(f.path("main/.git/hooks/"+hook), 0o755))
	}
	f.git(f.root, "config", "commit.gpgSign", "true")
	f.git(f.root, "config", "user.useConfigOnly", "true")
	sha, files, changed, err := f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "nothing"})
	if err != nil || changed || sha != w.Base || files != nil {
		t.Errorf("%v %v %v %v", sha, files, changed, err)
	}
	f.write("wt/w/new.txt", "n")
	f.write("wt/w/noise.log", "ignored")
	f.must(os.Remove(f.path("wt/w/a.txt")))
	sha, files, changed, err = f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "#42 add\n\nbody\n"})
	f.must(err)
	if d := cmp.Diff([]string{"a.txt", "new.txt"}, files); d != "" || !changed {
		t.Error(d, changed)
	}
	if got := f.git(w.Path, "log", "-1", "--format=%H|%an <%ae>|%cn|%B"); got != sha+"|teamctl <teamctl@localhost>|teamctl|#42 add\n\nbody\n" && got != sha+"|teamctl <teamctl@localhost>|teamctl|#42 add\n\nbody" {
		t.Errorf("%q", got)
	}
	f.write("wt/w/more.txt", "m")
	_, _, _, err = f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m", AuthorName: "alice", AuthorEmail: "alice@t"})
	f.must(err)
	if got := f.git(w.Path, "log", "-1", "--format=%an <%ae>"); got != "alice <alice@t>" {
		t.Error(got)
	}
	f.git(f.root, "config", "user.name", "Pat")
	f.git(f.root, "config", "user.email", "pat@example.org")
	f.write("wt/w/more.txt", "mm")
	_, _, _, err = f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m"})
	f.must(err)
	if got := f.git(w.Path, "log", "-1", "--format=%an"); got != "Pat" {
		t.Error(got)
	}
	if f.exists(f.path("hooked")) {
		t.Error("a hook ran")
	}
}

func TestCommitLeavesNestedOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	f.git(f.dir, "init", "--quiet", f.path("wt/w/clone"))
	f.write("wt/w/clone/x", "x")
	f.commitAll(f.path("wt/w/clone"), "x")
	f.git(f.dir, "init", "--quiet", f.path("wt/w/empty")) // git add fails on it
	f.write("wt/w/new.txt", "n")
	_, files, changed, err := f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m"})
	f.must(err)
	if d := cmp.Diff([]string{"new.txt"}, files); d != "" || !changed {
		t.Error(d)
	}
	_, _, changed, err = f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m"})
	if err != nil || changed {
		t.Error(changed, err)
	}
}

func TestCommitRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create("w")
	commit := func(path, msg string) error {
		_, _, _, err := f.repo.Commit(f.ctx(), path, CommitIn{Message: msg})
		return err
	}
	f.write("main/mine.txt", "the person's")
	wantErr(t, commit(f.root, "m"), team.CodeDenied, team.ReasonMainWorktree)
	wantErr(t, commit(w.Path, " \n"), team.CodeInvalid, team.ReasonBadInput)
	f.write("wt/w/a.txt", "w\n")
	f.write("main/.git/worktrees/w/index.lock", "")
	err := commit(w.Path, "m")
	wantErr(t, err, team.CodeConflict, team.ReasonLockFile)
	if !strings.Contains(err.Error(), "index.lock") {
		t.Error(err)
	}
	f.must(os.Remove(f.path("main/.git/worktrees/w/index.lock")))
	f.must(commit(w.Path, "m"))

	if _, err := f.tryGit(w.Path, "rebase", "--exec", "false", "HEAD~1"); err == nil {
		t.Fatal("no rebase under way")
	}
	f.write("wt/w/x.txt", "x\n")
	wantErr(t, commit(w.Path, "m"), team.CodeConflict, team.ReasonOperationInProgress)
	f.git(w.Path, "rebase", "--abort")
	f.must(os.Remove(f.path("wt/w/x.txt")))

	f.must(os.Remove(f.path("main/mine.txt")))
	f.write("main/a.txt", "main\n")
	f.commitMain("main")
	if _, err := f.tryGit(w.Path, "merge", "main"); err == nil {
		t.Fatal("no conflict")
	}
	wantErr(t, commit(w.Path, "m"), team.CodeConflict, team.ReasonUnmerged)
	f.write("wt/w/a.txt", "both\n")
	f.git(w.Path, "add", "a.txt")
	f.must(commit(w.Path, "resolved"))
	if got := f.git(w.Path, "log", "-1", "--format=%s %P"); len(strings.Fields(got)) != 3 {
		t.Errorf("the merge was not concluded: %s", got)
	}
}

// The commands in hints can be pasted, whatever the directory is called.
func TestHintsArePasted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	odd := f.path("a b'c $HOME;\"d")
	f.must(os.Mkdir(odd, 0o755))
	f.must(os.Rename(f.root, filepath.Join(odd, "main")))
	f.dir, f.root = odd, filepath.Join(odd, "main")
	f.open()
	paste := func(err error, reason string) string {
		t.Helper()
		wantErr(t, err, team.CodeOf(err), reason)
		command := team.HintOf(err)
		if i := strings.LastIndex(command, ": "); i >= 0 {
			command = command[i+2:]
		}
		command, _, _ = strings.Cut(command, ", then")
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = t.TempDir()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	w := f.member("w", map[string]string{"a.txt": "w\n"})
	f.write("wt/w/a.txt", "again\n")
	lock := filepath.Join(f.root, ".git/worktrees/w/index.lock")
	f.must(os.WriteFile(lock, nil, 0o600))
	_, _, _, err := f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m"})
	paste(err, team.ReasonLockFile)
	if f.exists(lock) {
		t.Error("the lock is still there")
	}
	_, _, _, err = f.repo.Commit(f.ctx(), w.Path, CommitIn{Message: "m"})
	f.must(err)
	_, err = f.repo.Saved(f.ctx(), "rescue/demo/w/x")
	paste(err, team.ReasonUnknownRev)
	_, err = f.repo.Resolve(f.ctx(), "nowhere")
	if out := paste(err, team.ReasonUnknownRev); !strings.Contains(out, "team/w") {
		t.Errorf("%q", out)
	}
	_, err = f.repo.Create(f.ctx(), CreateIn{Path: w.Path, Branch: "other"})
	paste(err, team.ReasonWorktreeExists)
}
