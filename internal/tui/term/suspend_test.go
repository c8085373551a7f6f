package term

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/openpty"
)

// suspendProgram, if set, makes the test a program that shows its size and the keys that it gets.
const suspendProgram = "TEAMCTL_TEST_SUSPEND"

func suspended() int {
	t, err := Open(Options{Path: "/dev/tty"}, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer t.Close()
	keys, said := 0, ""
	for {
		cols, rows := t.Size()
		t.Draw(Frame{Lines: []string{fmt.Sprintf("<pid_%d>", os.Getpid()), fmt.Sprintf("<size_%d_%d>", cols, rows), after(keys), said}})
		e, ok := <-t.Events
		switch {
		case !ok || e.Kind == Gone || e.Kind == Key && e.Key == "q":
			return 0
		case e.Kind == Key && e.Key == "ctrl-z":
			if err := t.Suspend(); err != nil {
				said = strings.ReplaceAll(err.Error(), " ", "_")
			}
		case e.Kind == Key:
			keys++
		}
	}
}

// after returns a word for a number of keys that shares no letter with that for one more, so that it
// is written as a whole.
func after(keys int) string { return strings.Repeat(string(rune('A'+keys)), 8) }

// shell is a process at the other end of a pseudoterminal.
type shell struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	out []byte
	at  int // what is before was awaited
}

// newShell starts a program as the leader of a session with a terminal.
func newShell(t *testing.T, env []string, argv ...string) *shell {
	t.Helper()
	master, tty, err := openpty.Open()
	if err != nil {
		t.Skipf("no pty: %v", err)
	}
	s := &shell{t: t, master: master, cmd: exec.Command(argv[0], argv[1:]...)}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.size(80, 24)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			s.mu.Lock()
			s.out = append(s.out, buf[:n]...)
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = master.Close() // a hangup ends what still runs
		<-done
		_ = s.cmd.Wait()
	})
	return s
}

func (s *shell) size(cols, rows uint16) {
	s.t.Helper()
	if err := unix.IoctlSetWinsize(int(s.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shell) typed(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// await returns the groups of a match in the output since the last one.
func (s *shell) await(pattern string) []string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(5 * time.Minute); ; <-time.After(5 * time.Millisecond) {
		s.mu.Lock()
		loc := re.FindSubmatchIndex(s.out[s.at:])
		rest := bytes.Clone(s.out[s.at:])
		if loc != nil {
			s.at += loc[1]
		}
		s.mu.Unlock()
		if loc != nil {
			var groups []string
			for i := 0; i+1 < len(loc); i += 2 {
				groups = append(groups, string(rest[loc[i]:loc[i+1]]))
			}
			return groups
		}
		if time.Now().After(end) {
			s.t.Fatalf("no %s in %q", pattern, rest[max(0, len(rest)-2000):])
		}
	}
}

// TestSuspend checks that a screen that a shell or a signal has stopped takes the terminal again when it is
// continued: keys come singly, and the frame is that of the size of the terminal.
func TestSuspend(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const prompt = "<prompt>"
	argv := []string{"/bin/sh", "-i"}
	if bash, err := exec.LookPath("bash"); err == nil { // it sets the modes of the terminal when a job has stopped
		argv = []string{bash, "--noprofile", "--norc", "-i"}
	}
	s := newShell(t, []string{"PS1=" + prompt, "ENV=", "HISTFILE="}, argv...)
	s.await(prompt)
	s.typed(suspendProgram + "=1 " + self + "\n")
	pid, err := strconv.Atoi(s.await(`<pid_(\d+)>`)[1])
	if err != nil {
		t.Fatal(err)
	}
	s.await(after(0))
	for i := range 16 {
		if i%4 == 3 {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		} else {
			s.typed("\x1a")
		}
		s.await(prompt)
		cols := 80 + i/2
		s.size(uint16(cols), 24)
		s.typed("fg\n")
		s.await(fmt.Sprintf(`<size_%d_24>`, cols))
		s.await(after(i))
		s.typed("x")
		s.await(after(i + 1))
	}
	s.typed("q")
	s.await(prompt)
	s.typed("exit\n")
}

// TestSuspendWithoutShell checks that a screen that nothing would continue is not stopped.
func TestSuspendWithoutShell(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newShell(t, []string{suspendProgram + "=1"}, self)
	s.await(after(0))
	s.typed("\x1a")
	s.await(strings.ReplaceAll(errNoShell.Error(), " ", "_"))
	s.typed("x")
	s.await(after(1))
	s.typed("q")
}
