package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// These tests cover faults of a team's directory: it is removed, restored, copied or moved while
// the supervisor and the agents are running.

// subjects returns the subjects of the team's tasks.
func (r *faultRig) subjects() []string {
	r.Helper()
	var out struct{ Tasks []ledger.Task }
	if err := json.Unmarshal([]byte(r.teamctl("task", "ls", "--json")), &out); err != nil {
		r.Fatal(err)
	}
	var list []string
	for _, t := range out.Tasks {
		list = append(list, t.Subject)
	}
	return list
}

// fails runs a command that must fail with the given code and reason, and returns its output.
func (r *faultRig) fails(code team.Code, reason string, args ...string) string {
	r.Helper()
	out, err := r.try(append([]string{r.exe, "--json"}, args...)...)
	var got struct{ Error struct{ Reason string } }
	if exitCode(err) != team.ExitStatus(team.Errorf(code, "")) {
		r.Fatalf("%v: status %d, want %s: %v\n%s", args, exitCode(err), code, err, out)
	}
	text := err.Error()
	if i := strings.Index(text, "{"); i >= 0 {
		_ = json.Unmarshal([]byte(text[i:]), &got)
	}
	if got.Error.Reason != reason && !strings.Contains(text+out, `"`+reason+`"`) {
		r.Fatalf("%v: want the reason %s: %v\n%s", args, reason, err, out)
	}
	return out + text
}

// backUp copies the team's directory, as a person would do it.
func (r *faultRig) backUp() {
	r.Helper()
	r.copyLive(r.layout.Dir, r.dir+"/bk")
}

// copyLive copies a directory that processes write to. A temporary file may be renamed after cp
// has listed the directory and before it opens the file. Then cp copies everything else, and the
// file is there under its final name or will be.
func (r *faultRig) copyLive(from, to string) {
	r.Helper()
	_, err := r.try("env", "LC_ALL=C", "cp", "-a", from, to)
	var failed *runError
	if err == nil || errors.As(err, &failed) && onlyVanished(failed.stderr) {
		return
	}
	r.Fatal(err)
}

// vanished matches what cp prints for a temporary file, or a lock of a file, that was no longer
// found.
var vanished = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^cp: cannot .*\.(tmp|lock)'( for reading)?: No such file or directory\n$`)
})

// onlyVanished reports whether cp failed only because of such files.
func onlyVanished(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if !vanished().MatchString(line) {
			return false
		}
	}
	return stderr != ""
}

func TestOnlyVanished(t *testing.T) {
	t.Parallel()
	const gone = "cp: cannot stat '/t/members/a/logger.json.2100763866.tmp': No such file or directory\n"
	for stderr, want := range map[string]bool{
		gone: true,
		gone + "cp: cannot open '/t/x.json.1.tmp' for reading: No such file or directory\n": true,
		"cp: cannot stat '/t/inboxes/a.json.lock': No such file or directory\n":             true,
		gone + "cp: cannot stat '/t/ledger.db': No such file or directory\n":                false,
		"cp: error writing '/t2/x.json.1.tmp': No space left on device\n":                   false,
		"": false,
	} {
		if got := onlyVanished(stderr); got != want {
			t.Errorf("%q: %v", stderr, got)
		}
	}
}

// remove removes a directory by repeating rm -rf while processes still write to it.
func (r *faultRig) remove(dir string) {
	r.Helper()
	r.until("the removal of "+dir, func() bool { return exec.Command("rm", "-rf", dir).Run() == nil })
}

// restore replaces the directory with its copy.
func (r *faultRig) restore() {
	r.Helper()
	r.remove(r.layout.Dir)
	r.command("mv", r.dir+"/bk", r.layout.Dir)
}

// stoppedShim starts a member and stops its shim. The shim does not notice the end of its agent,
// so that the member looks like one to adopt.
func (r *faultRig) stoppedShim(name string) backends.Proc {
	r.Helper()
	r.teamctl("spawn", name, "--backend", "pty", "--worktree", "none", "--restart", "never", "--", "fakeagent", "hold")
	p := r.proc(name)
	if err := syscall.Kill(p.Shim.PID, syscall.SIGSTOP); err != nil {
		r.Fatal(err)
	}
	return p
}

// TestDirectoryRestored checks that changes made after the directory was restored from a backup
// are in the restored ledger, whatever the previous supervisor had open, and that no process of
// the previous directory survives.
func TestDirectoryRestored(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.teamctl("task", "add", "before")
	r.backUp()
	r.agent("later", "never", "fakeagent", "hold") // unknown to the backup
	sup, a, later := r.supervisor(), r.proc("a").Agent, r.proc("later").Agent
	r.restore()
	r.teamctl("task", "add", "after")
	r.send("a", "after")
	r.teamctl("spawn", "b", "--worktree", "none", "--restart", "never", "--", "fakeagent", "hold")
	if got := r.subjects(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("tasks: %v", got)
	}
	if n := len(r.mail("a")); n != 1 {
		t.Errorf("%d messages in the mailbox of a", n)
	}
	r.until("the supervisor of the directory before to end", func() bool { return !proc.Alive(sup) })
	is := r.state("a", team.Running)
	if is.PID == a.PID || proc.Alive(a) || proc.Alive(later) {
		t.Errorf("a was %d and is %d; its old process lives: %v; later's: %v", a.PID, is.PID, proc.Alive(a), proc.Alive(later))
	}
	r.state("b", team.Running)
	if log := r.teamctl("events", "--json"); !strings.Contains(log, `"team.restored"`) || !strings.Contains(log, `"later"`) {
		t.Errorf("the log does not name the ended members:\n%s", log)
	}
}

// TestDirectoryRestoredUnseen is the same without a supervisor at the time: the next one finds
// the processes of the previous directory.
func TestDirectoryRestoredUnseen(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	p := r.stoppedShim("p")
	r.backUp()
	r.agent("later", "never", "fakeagent", "hold")
	a, later := r.proc("a").Agent, r.proc("later").Agent
	r.kill(r.supervisor())
	r.restore()
	is := r.state("a", team.Running)
	if is.PID == a.PID || proc.Alive(a) || proc.Alive(later) {
		t.Errorf("a was %d and is %d; its old process lives: %v; later's: %v", a.PID, is.PID, proc.Alive(a), proc.Alive(later))
	}
	if is := r.state("p", team.Running); is.PID == p.Agent.PID || proc.Alive(p.Agent) || proc.Alive(p.Shim) {
		t.Errorf("p was %+v and is %d", p, is.PID)
	}
	r.kill(r.supervisor())
	if again := r.members()["a"]; again.PID != is.PID {
		t.Errorf("a was %d and is %d after one more supervisor", is.PID, again.PID)
	}
}

// TestDirectoryRestoredAndDeleted checks that delete --force of a restored team ends the previous
// supervisor and its agents.
func TestDirectoryRestoredAndDeleted(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	r.backUp()
	sup, a := r.supervisor(), r.proc("a").Agent
	r.restore()
	r.teamctl("delete", "f", "--force")
	r.until("the supervisor and its agents to end", func() bool { return !proc.Alive(sup) && !proc.Alive(a) })
	r.teamctl("create", "f", "--repo", "repo")
}

// TestDirectoryRemoved checks that the agents of a removed directory exit, and that doctor
// reports it.
func TestDirectoryRemoved(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "a", "-n", "3", "--restart", "always", "--", "fakeagent", "hold")
	r.teamctl("spawn", "p", "--backend", "pty", "--worktree", "none", "--", "fakeagent", "hold")
	sup := r.supervisor()
	var agents []int
	for name := range r.members() {
		agents = append(agents, r.proc(name).Agent.PID)
	}
	r.remove(r.layout.Dir)
	r.command("git", "-C", "repo", "worktree", "prune")
	gone := func() bool {
		for _, pid := range append(agents, sup.PID) {
			if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
				return false
			}
		}
		return true
	}
	for !gone() { // there is no team for until to show
		r.tick()
	}
	words, err := supervisor.ReadLastWords(r.layoutFile("lost.json"))
	if err != nil || words == nil || words.Why != "removed" || len(words.Ended) != len(agents) || len(words.Left) != 0 {
		t.Errorf("last words: %+v, %v", words, err)
	}
	if out, _ := r.try(r.exe, "doctor"); !strings.Contains(out, "was removed") || !strings.Contains(out, "a-2") {
		t.Errorf("doctor does not report it:\n%s", out)
	}
	r.teamctl("create", "f", "--repo", "repo")
	r.teamctl("spawn", "a", "--worktree", "none", "--", "fakeagent", "hold")
	if out, _ := r.try(r.exe, "doctor"); strings.Contains(out, "was removed") {
		t.Errorf("doctor still reports the previous team:\n%s", out)
	}
}

// TestDirectoryRemovedUnseen checks that doctor lists the surviving processes of a directory that
// was removed without a supervisor, and how to end them.
func TestDirectoryRemovedUnseen(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	a := r.proc("a")
	r.kill(r.supervisor())
	r.remove(r.layout.Dir)
	pid := strconv.Itoa(a.Agent.PID)
	out, _ := r.try(r.exe, "doctor")
	_, hint, _ := strings.Cut(out, "-> kill "+pid)
	hint, _, _ = strings.Cut(hint, "\n")
	if !strings.Contains(out, "a (pid "+pid+")") {
		t.Errorf("doctor does not report it:\n%s", out)
	}
	r.command("sh", "-c", "kill "+pid+hint)
	for proc.Alive(a.Shim) {
		r.tick()
	}
	if out, _ := r.try(r.exe, "doctor"); strings.Contains(out, "is gone, and") {
		t.Errorf("doctor still reports it:\n%s", out)
	}
	r.teamctl("create", "f", "--repo", "repo")
}

// layoutFile returns the path of a file in the team's runtime directory.
func (r *faultRig) layoutFile(name string) string {
	return filepath.Join(r.dir, "r", filepath.Base(r.layout.Runtime()), name)
}

// TestCopiedHome checks that a copy of a home can be read, and that no command in it affects the
// original.
func TestCopiedHome(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "a", "--restart", "never", "--", "fakeagent", "hold")
	before, sup := r.members()["a"], r.supervisor()
	r.copyLive(r.dir+"/t", r.dir+"/copy")
	original := r.env
	r.env = append(slices.Clone(original), team.EnvHome+"="+r.dir+"/copy")
	t.Cleanup(func() { r.env = original }) // before the team is deleted
	if got := r.members()["a"]; got.PID != before.PID {
		t.Errorf("the copy has a as %d, the original as %d", got.PID, before.PID)
	}
	for _, args := range [][]string{
		{"task", "add", "x"}, {"send", "a", "x"}, {"spawn", "b"}, {"kill", "a", "--force"}, {"stop", "a"}, {"restart", "a"}, {"shutdown"},
		{"merge", "a"}, {"delete"}, {"delete", "--force"}, {"relocate", "f"},
	} {
		r.fails(team.CodeConflict, team.ReasonTeamCopied, args...)
	}
	if out, _ := r.try(r.exe, "doctor"); !strings.Contains(out, "is a copy of the team in") {
		t.Errorf("doctor does not report the copy:\n%s", out)
	}
	r.env = original
	after := r.members()["a"]
	if after.PID != before.PID || after.Restarts != 0 || after.Observed != team.Running || r.supervisor() != sup {
		t.Errorf("the original had %+v and has %+v", before, after)
	}
	if _, err := os.Stat(before.Worktree); err != nil {
		t.Error(err)
	}
	r.command("git", "-C", before.Worktree, "status")
}

// TestMovedHome checks that a home that is moved while its team is running is read-only until
// teamctl relocate confirms the move. Then the same members continue there, with their worktrees.
func TestMovedHome(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "a", "--restart", "never", "--", "fakeagent", "hold")
	r.teamctl("task", "add", "before")
	sup, old := r.supervisor(), r.proc("a").Agent
	p := r.stoppedShim("p")
	r.command("sh", "-c", "echo work > t/teams/f/worktrees/a/new.txt")
	r.command("mv", r.dir+"/t", r.dir+"/t2")
	r.env = append(r.env, team.EnvHome+"="+r.dir+"/t2")
	r.layout = team.Home{Dir: r.dir + "/t2"}.Team("f")
	if got := r.subjects(); !slices.Equal(got, []string{"before"}) {
		t.Errorf("tasks: %v", got)
	}
	if text := r.fails(team.CodeConflict, team.ReasonTeamMoved, "task", "add", "x"); !strings.Contains(text, "teamctl relocate f") {
		t.Errorf("no hint: %s", text)
	}
	r.teamctl("relocate")
	r.until("the supervisor of the place before to end", func() bool { return !proc.Alive(sup) })
	m := r.state("a", team.Running)
	if m.PID == old.PID || proc.Alive(old) || m.Worktree != r.layout.Worktrees()+"/a" {
		t.Errorf("a was %d (alive: %v) and is %+v", old.PID, proc.Alive(old), m)
	}
	if is := r.state("p", team.Running); is.PID == p.Agent.PID || proc.Alive(p.Agent) || proc.Alive(p.Shim) {
		t.Errorf("p was %+v and is %d", p, is.PID)
	}
	if out := r.command("git", "-C", m.Worktree, "status", "--porcelain"); !strings.Contains(out, "new.txt") {
		t.Errorf("the worktree has no work: %q", out)
	}
	if out := r.command("git", "-C", "repo", "worktree", "list"); !strings.Contains(out, r.dir+"/t2/") || strings.Contains(out, "prunable") {
		t.Errorf("git knows:\n%s", out)
	}
	r.teamctl("task", "add", "after")
	if got := r.subjects(); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("tasks: %v", got)
	}
	if out := r.teamctl("relocate", "f"); !strings.Contains(out, "already") {
		t.Errorf("once more: %s", out)
	}
}

// TestCopyTakesOver checks that relocate lets a copy replace a missing original, and that no
// process of the original survives.
func TestCopyTakesOver(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	old := r.proc("a").Agent
	r.copyLive(r.dir+"/t", r.dir+"/t2")
	r.kill(r.supervisor())
	r.remove(r.dir + "/t")
	r.env = append(r.env, team.EnvHome+"="+r.dir+"/t2")
	r.layout = team.Home{Dir: r.dir + "/t2"}.Team("f")
	r.teamctl("relocate", "f")
	if m := r.state("a", team.Running); m.PID == old.PID || proc.Alive(old) {
		t.Errorf("a was %d (alive: %v) and is %d", old.PID, proc.Alive(old), m.PID)
	}
}

// TestHomeUnderAnotherPath checks that a home reached through a link or another mount has the
// same team and the same supervisor.
func TestHomeUnderAnotherPath(t *testing.T) {
	r := newFaultRig(t)
	r.agent("a", "never", "fakeagent", "hold")
	before, sup := r.members()["a"], r.supervisor()
	original := r.env
	same := func(home string) {
		t.Helper()
		r.env = append(slices.Clone(original), team.EnvHome+"="+home)
		if got := r.members()["a"]; got.PID != before.PID || r.supervisor() != sup {
			t.Errorf("by %s: %+v, supervisor %+v", home, got, r.supervisor())
		}
		r.teamctl("task", "add", "by "+filepath.Base(home))
		r.env = original
	}
	if err := os.Symlink(r.dir+"/t", r.dir+"/link"); err != nil {
		t.Fatal(err)
	}
	same(r.dir + "/link")
	mounted := r.dir + "/mount"
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(r.dir+"/t", mounted, "", syscall.MS_BIND, ""); err != nil {
		t.Logf("no bind mount here: %v", err)
	} else {
		t.Cleanup(func() { _ = syscall.Unmount(mounted, syscall.MNT_DETACH) }) // before the home is removed
		same(mounted)
	}
	if got := r.subjects(); len(got) == 0 || got[0] != "by link" {
		t.Errorf("tasks: %v", got)
	}
}
