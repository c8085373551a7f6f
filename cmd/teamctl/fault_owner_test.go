package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// squatter creates the directory of a socket, open to everybody from root on, and listens there
// until its input ends. Without a root it leaves the directory unchanged. Its exit status is 1 if
// a client has connected.
func squatter(args []string) int {
	if len(args) != 2 {
		return 64
	}
	root, socket := args[0], args[1]
	err := os.MkdirAll(filepath.Dir(socket), 0o700)
	for dir := filepath.Dir(socket); err == nil && root != ""; dir = filepath.Dir(dir) {
		if err = os.Chmod(dir, 0o777); dir == root { // lets every client in
			break
		}
	}
	var l net.Listener
	if err == nil {
		l, err = net.Listen("unix", socket)
	}
	if err == nil {
		err = os.Chmod(socket, 0o777) // likewise
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	var came atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Store(true)
			_ = c.Close()
		}
	}()
	fmt.Println("listening")
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = l.Close()
	<-done
	if came.Load() {
		return 1
	}
	return 0
}

// users is a world with a victim, who runs teamctl, and another user.
type users struct {
	*testing.T
	dir, exe      string
	victim, other uint32
	layout        team.Layout
	root          string // the victim's runtime directory
}

// usersMade counts the calls of newUsers, so that parallel tests have different users.
var usersMade atomic.Uint32

// newUsers creates two users whose ids are not used otherwise on the machine.
func newUsers(t *testing.T) *users {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs other users: root only")
	}
	t.Parallel()
	dir, err := os.MkdirTemp(strays.Short(), "tc-u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nothingLeft(t, dir) })
	bin, err := exec.LookPath("teamctl")
	if err != nil {
		t.Fatal(err)
	}
	n := uint32(200000+os.Getpid()*16) + 2*usersMade.Add(1) // a pid has 22 bits
	u := &users{T: t, dir: dir, exe: filepath.Join(dir, "teamctl"), victim: n, other: n + 1, root: fmt.Sprintf("/tmp/teamctl-%d", n)}
	t.Cleanup(func() { _ = os.RemoveAll(u.root) })
	u.layout = team.Home{Dir: dir + "/home/.teamctl"}.Team("demo")
	data, err := os.ReadFile(bin)
	if err == nil {
		err = strays.WriteProgram(u.exe, data)
	}
	for _, d := range []struct {
		path string
		uid  uint32
	}{{dir, 0}, {dir + "/home", u.victim}, {dir + "/theirs", u.other}} {
		if err == nil && d.uid != 0 {
			err = os.Mkdir(d.path, 0o700)
		}
		if err == nil {
			err = errors.Join(os.Chown(d.path, int(d.uid), int(d.uid)), os.Chmod(d.path, 0o711))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// as returns a command that runs as a user, without a socket directory set in its environment.
func (u *users) as(uid uint32, argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = "/"
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir + "/home", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return c
}

func (u *users) teamctl(uid uint32, args ...string) (string, int) {
	u.Helper()
	out, err := u.as(uid, append([]string{u.exe}, args...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		u.Fatal(err)
	}
	return string(out), exitCode(err)
}

func (u *users) refused(uid uint32, word string, args ...string) {
	u.Helper()
	if out, code := u.teamctl(uid, args...); code != 5 || !strings.Contains(out, word) || !strings.Contains(out, "hint:") {
		u.Errorf("teamctl %s: exit status %d, %s\nwant 5, %q and a hint", strings.Join(args, " "), code, out, word)
	}
}

// squat listens as a user at the socket of the victim's supervisor. The returned function ends
// that and reports whether a client has connected.
func (u *users) squat(uid uint32, root, socket string) func() bool {
	u.Helper()
	bin, err := exec.LookPath("squatter")
	if err != nil {
		u.Fatal(err)
	}
	exe := filepath.Join(u.dir, "squatter")
	data, err := os.ReadFile(bin)
	if err == nil {
		err = strays.WriteProgram(exe, data)
	}
	if err != nil {
		u.Fatal(err)
	}
	c := u.as(uid, exe, root, socket)
	in, err := c.StdinPipe()
	if err != nil {
		u.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		u.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		u.Fatal(err)
	}
	ended, code := false, 0
	end := func() bool {
		if !ended {
			ended = true
			_ = in.Close()
			code = exitCode(c.Wait())
		}
		return code != 0
	}
	u.Cleanup(func() { end() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		u.Fatalf("the squatter does not listen: %q, %v", line, err)
	}
	return end
}

// socket returns the path of the team's socket below root.
func (u *users) socket(root string) string {
	return filepath.Join(root, filepath.Base(u.layout.Runtime()), "s")
}

// TestRuntimeMadeByAnotherUser checks that no command connects to the supervisor's socket if
// another user has created the victim's runtime directory, or a link in its place, and listens
// there.
func TestRuntimeMadeByAnotherUser(t *testing.T) {
	for _, how := range []string{"directory", "link"} {
		t.Run(how, func(t *testing.T) {
			u := newUsers(t)
			for _, args := range [][]string{{"create", "demo"}, {"task", "add", "mine"}} {
				if out, code := u.teamctl(u.victim, args...); code != 0 {
					t.Fatalf("teamctl %v: %d\n%s", args, code, out)
				}
			}
			root := u.root
			if how == "link" {
				root = u.dir + "/theirs/r"
				if out, err := u.as(u.other, "ln", "-s", root, u.root).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			end := u.squat(u.other, root, u.socket(root))
			word := map[string]string{"directory": fmt.Sprintf("belongs to user %d", u.other), "link": "is a symbolic link"}[how]
			for _, args := range [][]string{{"task", "add", "x"}, {"message", "ls"}, {"ps"}, {"spawn", "w", "--env", "SECRET=1", "--", "true"}, {"delete", "--force"}, {"supervise", "--team", "demo"}} {
				u.refused(u.victim, word, args...)
			}
			if out, code := u.teamctl(u.victim, "doctor"); code != 7 || !strings.Contains(out, "fail  runtime") || !strings.Contains(out, word) {
				t.Errorf("doctor: %d\n%s", code, out)
			}
			if end() {
				t.Error("a command has connected to the socket of another user")
			}
			if err := os.RemoveAll(u.root); err != nil {
				t.Fatal(err)
			}
			if out, code := u.teamctl(u.victim, "task", "ls", "-o", "name"); code != 0 || strings.TrimSpace(out) != "1" {
				t.Errorf("task ls: %d\n%s", code, out)
			}
		})
	}
}

// TestSocketOfAnotherUser checks that a client compares the user of the listening process with
// its own before it sends anything, even if the directory is its own.
func TestSocketOfAnotherUser(t *testing.T) {
	u := newUsers(t)
	socket := u.socket(u.root)
	if out, err := u.as(u.victim, "mkdir", "-p", "-m", "700", filepath.Dir(socket)).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := u.teamctl(u.victim, "create", "demo"); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	u.squat(0, "", socket) // only root can enter the directory of another user
	for _, args := range [][]string{{"task", "add", "x"}, {"spawn", "w", "--env", "SECRET=1", "--", "true"}} {
		u.refused(u.victim, "belongs to a process of user 0", args...)
	}
}

// TestSudoInTheHomeOfAnotherUser checks that teamctl under sudo creates no file of root in the
// home of the person.
func TestSudoInTheHomeOfAnotherUser(t *testing.T) {
	u := newUsers(t)
	u.refused(0, "who can replace what is in it", "create", "demo") // there is no home yet
	if _, err := os.Lstat(u.layout.Home.Dir); err == nil {
		t.Fatal("root has made the home")
	}
	for _, args := range [][]string{{"create", "demo"}, {"task", "add", "mine"}} {
		if out, code := u.teamctl(u.victim, args...); code != 0 {
			t.Fatalf("teamctl %v: %d\n%s", args, code, out)
		}
	}
	for _, args := range [][]string{{"task", "add", "x"}, {"ps"}, {"create", "other"}, {"doctor", "--repair"}} {
		u.refused(0, fmt.Sprintf("belongs to user %d", u.victim), args...)
	}
	if out, code := u.teamctl(0, "doctor"); code != 7 || !strings.Contains(out, "fail  home") || !strings.Contains(out, "without sudo") {
		t.Errorf("doctor: %d\n%s", code, out)
	}
	out, err := exec.Command("find", u.layout.Home.Dir, "-uid", "0").CombinedOutput()
	if err != nil || len(out) != 0 {
		t.Errorf("files of root: %v\n%s", err, out)
	}
	if out, code := u.teamctl(u.victim, "task", "add", "another"); code != 0 {
		t.Errorf("the owner is locked out: %d\n%s", code, out)
	}
}
