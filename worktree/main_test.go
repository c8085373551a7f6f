package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

const childEnv = "WORKTREE_TEST_CHILD"

// TestMain isolates git from the machine's configuration. With childEnv this
// binary is the process that a test kills.
func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		os.Exit(child(job))
	}
	home, err := os.MkdirTemp("", "worktree-home-")
	if err != nil {
		panic(err)
	}
	for k, v := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(home)
		os.Exit(code)
	}))
}

// childJob is the task of a child process.
type childJob struct {
	Repo   string
	Do     string // create | remove | create-full | merge | commit | checkpoint | lane | restore | recover | setup
	Create CreateIn
	Path   string
	Remove RemoveIn
	Merge  []string
	Lane   LaneIn // without its Note
	Ref    string // restore
	Setup  SetupIn
	KillAt string // the step at which the child kills itself
}

func child(spec string) int {
	var job childJob
	if err := json.Unmarshal([]byte(spec), &job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 99
	}
	ctx := context.Background()
	if job.Do == "create-full" {
		dir := filepath.Dir(job.Create.Path)
		if err := mountTiny(dir); err != nil {
			fmt.Fprintln(os.Stderr, "mount:", err)
			return 77
		}
	}
	r, err := OpenRepo(ctx, job.Repo)
	if err == nil {
		r.step = func(name string) {
			if name == job.KillAt {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		switch job.Do {
		case "remove":
			_, err = r.Remove(ctx, job.Path, job.Remove)
		case "merge":
			_, err = r.Merge(ctx, job.Path, job.Merge, "")
		case "checkpoint":
			_, _, err = r.Checkpoint(ctx, job.Path, "demo", "w", "a test")
		case "restore":
			_, err = r.RestoreInto(ctx, job.Path, job.Ref, "demo", "w")
		case "recover":
			_, err = r.Recover(ctx, job.Path, "demo", "w")
		case "setup":
			_, err = r.Setup(ctx, job.Setup)
		case "refresh":
			_, err = r.Refresh(ctx, job.Path, job.Merge[0])
		case "lane":
			job.Lane.Note = func(context.Context, team.LaneNote) error { return nil }
			err = r.RunLane(ctx, job.Lane)
		case "commit":
			_, _, _, err = r.Commit(ctx, job.Path, CommitIn{Message: "work"})
		default:
			_, err = r.Create(ctx, job.Create)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, team.ReasonOf(err), err)
		return team.ExitStatus(err)
	}
	return 0
}

// childCmd returns the command that runs job.
func childCmd(t *testing.T, job childJob) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	return cmd
}

// killed runs job and expects it to kill itself at its step.
func killed(t *testing.T, job childJob) {
	t.Helper()
	cmd := childCmd(t, job)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %s: %v %s", job.KillAt, err, &stderr)
	}
}

// fixture is a test's repository.
type fixture struct {
	*testing.T
	dir  string // contains everything
	root string // the main worktree
	repo *Repo
}

// firstCommit makes the repository that every fixture copies. It is below the
// home directory, which TestMain removes.
var firstCommit = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.Getenv("HOME"), "first")
	for _, file := range []struct{ path, text string }{{"a.txt", "a\n"}, {"sub/b.txt", "b\n"}, {".gitignore", "*.log\n/build/\n"}} {
		p := filepath.Join(dir, file.path)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(p, []byte(file.text), 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch=main"}, {"add", "--all"}, {"commit", "--quiet", "-m", "first"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), testIdentity...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %v: %w: %s", args, err, out)
		}
	}
	// The samples of hooks are of no use to a test.
	samples, err := filepath.Glob(filepath.Join(dir, ".git", "hooks", "*.sample"))
	for _, p := range samples {
		if err == nil {
			err = os.Remove(p)
		}
	}
	return dir, err
})

// newFixture makes a repository with a first commit. When the test ends, no
// stale registration and no unfinished operation may remain.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, dir: dir, root: filepath.Join(dir, "main")}
	first, err := firstCommit()
	f.must(err)
	f.must(os.CopyFS(f.root, os.DirFS(first)))
	f.git(f.root, "update-index", "-q", "--refresh") // the copies have other inodes and times
	f.open()
	t.Cleanup(f.check)
	return f
}

func (f *fixture) open() {
	f.Helper()
	r, err := OpenRepo(f.ctx(), f.root)
	if err != nil {
		f.Fatal(err)
	}
	f.repo = r
}

func (f *fixture) ctx() context.Context { return f.Context() }

func (f *fixture) check() {
	if f.Failed() {
		return
	}
	f.repo.Wait()
	if out := f.git(f.root, "worktree", "prune", "-n", "-v"); out != "" {
		f.Errorf("git worktree prune -n: %s", out)
	}
	for _, pattern := range []string{"ops/*", "index.*"} {
		left, err := filepath.Glob(f.repo.own(pattern))
		if err != nil || len(left) > 0 {
			f.Errorf("left over: %v %v", left, err)
		}
	}
	aside, err := filepath.Glob(filepath.Join(f.dir, "*", ".teamctl-removed-*"))
	if err != nil || len(aside) > 0 {
		f.Errorf("left over: %v %v", aside, err)
	}
	f.git(f.root, "fsck", "--no-dangling")
}

var testIdentity = []string{"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.org"}

func (f *fixture) tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), testIdentity...)
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (f *fixture) git(dir string, args ...string) string {
	f.Helper()
	out, err := f.tryGit(dir, args...)
	if err != nil {
		f.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return out
}

// feed runs git in the main worktree with an input.
func (f *fixture) feed(input string, args ...string) {
	f.Helper()
	cmd := exec.Command("git", append([]string{"-C", f.root}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// path returns an absolute path below the fixture's directory.
func (f *fixture) path(rel string) string { return filepath.Join(f.dir, filepath.FromSlash(rel)) }

func (f *fixture) write(rel, content string) {
	f.Helper()
	p := f.path(rel)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) commitMain(msg string) {
	f.Helper()
	f.commitAll(f.root, msg)
}

func (f *fixture) commitAll(dir, msg string) {
	f.Helper()
	f.git(dir, "add", "--all")
	f.git(dir, "commit", "--quiet", "-m", msg)
}

// head returns the commit that dir has checked out.
func (f *fixture) head(dir string) string {
	f.Helper()
	return f.git(dir, "rev-parse", "HEAD")
}

// member makes a worktree with one commit that writes files.
func (f *fixture) member(name string, files map[string]string) Worktree {
	f.Helper()
	w := f.create(name)
	for p, text := range files {
		f.write("wt/"+name+"/"+p, text)
	}
	f.commitAll(w.Path, "work of "+name)
	return w
}

// branchesWith makes the branches team/<name>, each with one commit that writes
// files, without a worktree.
func (f *fixture) branchesWith(branches map[string]map[string]string) {
	f.Helper()
	var in strings.Builder
	for name, files := range branches {
		fmt.Fprintf(&in, "commit refs/heads/team/%s\ncommitter T <t@example.org> now\ndata <<.\nwork of %s\n.\nfrom refs/heads/main^0\n", name, name)
		for p, text := range files {
			fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", p, len(text), text)
		}
	}
	f.feed(in.String(), "fast-import", "--quiet", "--date-format=now")
}

// create makes wt/<name> on the branch team/<name>.
func (f *fixture) create(name string) Worktree {
	f.Helper()
	w, err := f.repo.Create(f.ctx(), CreateIn{Path: f.path("wt/" + name), Branch: "team/" + name})
	f.must(err)
	return w
}

func (f *fixture) branches() string {
	return f.git(f.root, "for-each-ref", "--format=%(refname:short)", "refs/heads")
}

func (f *fixture) exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// wantErr checks code and reason of an error.
func wantErr(t *testing.T, err error, code team.Code, reason string) {
	t.Helper()
	if team.CodeOf(err) != code || team.ReasonOf(err) != reason {
		t.Errorf("got %q/%q (%v), want %q/%q", team.CodeOf(err), team.ReasonOf(err), err, code, reason)
	}
}

// contents maps every file below dir, without .git, to its type, mode and bytes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && p != dir {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil || d.IsDir() {
			return err
		}
		data := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			data, err = os.Readlink(p)
		} else {
			var b []byte
			b, err = os.ReadFile(p)
			data = string(b)
		}
		m[rel] = fmt.Sprintf("%v %s", info.Mode().Type()|info.Mode().Perm()&0o100, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// eventually waits for a condition that another process causes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// hide leaves a process in a session of its own that ignores SIGTERM, and its
// pid in the file $PIDS.
const hide = `setsid bash -c 'trap "" TERM; echo $$ >>"$PIDS"; while :; do sleep 0.1; done' </dev/null >/dev/null 2>&1 &
until test -s "$PIDS"; do sleep 0.02; done; `

// hidden waits for a process that hide has left and returns its pid.
func (f *fixture) hidden(file string) (pid int) {
	f.Helper()
	eventually(f.T, "a process hides", func() bool {
		data, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err == nil
	})
	return pid
}

// isEnded reports whether a process does not exist or is a zombie.
func isEnded(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(data), ") Z ")
}
