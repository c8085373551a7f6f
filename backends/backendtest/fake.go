package backendtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/shim"
)

// Main runs the test binary as a shim or as a fake agent if its arguments say
// so, and returns the exit status.
func Main() (status int, handled bool) {
	if len(os.Args) < 2 {
		return 0, false
	}
	switch os.Args[1] {
	case "shim":
		return shim.Main(os.Args[2:]), true
	case "fake":
		return fake(os.Args[2:]), true
	}
	return 0, false
}

// fake is an agent:
//
//	exit N          print a line, exit with status N
//	die SIGNAL      end by the signal's number
//	idle            print "idle", stay until a signal
//	stubborn        the same, ignoring SIGTERM, SIGHUP and SIGINT
//	lines           print "got <line>" for every line that is typed
//	size            print "size COLSxROWS" now and at every change
//	flood N         print N numbered lines, exit 0
//	late N          print N lines, one each 10 ms, then "idle", and stay
//	tree FILE       start a child, a stubborn child and a stubborn child in a
//	                session of its own; write their pids to FILE; stay
//	leave FILE      the same, but exit with status 3
//	hide FILE       start a stubborn process in a session of its own, without its
//	                environment and without a parent; write its pid to FILE when
//	                it ignores signals; stay
//	env KEY...      print "KEY=value" for each, stay
func fake(args []string) int {
	if len(args) == 0 {
		return 64
	}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	n, _ := strconv.Atoi(arg(1))
	switch args[0] {
	case "exit":
		say("exit with %d", n)
		return n
	case "die":
		say("die of %d", n)
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		stay()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		say("idle")
		stay()
	case "idle":
		say("idle")
		stay()
	case "lines":
		say("idle")
		r := bufio.NewReader(os.Stdin)
		for {
			l, err := r.ReadString('\n')
			if err != nil {
				return 0
			}
			say("got <%s>", strings.TrimRight(l, "\n"))
		}
	case "size":
		c := make(chan os.Signal, 8)
		signal.Notify(c, syscall.SIGWINCH)
		for {
			if ws, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); err == nil {
				say("size %dx%d", ws.Col, ws.Row)
			}
			<-c
		}
	case "flood":
		w := bufio.NewWriter(os.Stdout)
		for i := range n {
			_, _ = fmt.Fprintf(w, "line %d of %d\n", i, n)
		}
		_ = w.Flush()
		return 0
	case "late":
		t := time.NewTicker(10 * time.Millisecond)
		for i := range n {
			say("line %d of %d", i, n)
			<-t.C
		}
		say("idle")
		stay()
	case "tree", "leave":
		pids := []string{}
		for _, mode := range []string{"idle", "stubborn", "stubborn"} {
			c := exec.Command(os.Args[0], "fake", mode)
			out, err := c.StdoutPipe()
			if err != nil {
				return 65
			}
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: len(pids) == 2}
			if c.Start() != nil {
				return 65
			}
			// Until it has printed that, it may not ignore SIGTERM yet.
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				return 66
			}
			pids = append(pids, strconv.Itoa(c.Process.Pid))
		}
		if os.WriteFile(arg(1)+".new", []byte(strings.Join(pids, " ")), 0o600) != nil ||
			os.Rename(arg(1)+".new", arg(1)) != nil {
			return 67
		}
		if args[0] == "leave" {
			return 3
		}
		say("idle")
		stay()
	case "hide":
		// The intermediate shell exits at once, so that the process has no
		// parent in the tree.
		c := exec.Command("sh", "-c", `env -i setsid "$0" fake stubborn >"$1" 2>&1 & echo $!`, os.Args[0], arg(1)+".up")
		out, err := c.Output()
		pid, _ := strconv.Atoi(strings.TrimSpace(string(out)))
		t := time.NewTicker(5 * time.Millisecond)
		for up := false; !up && pid > 0 && syscall.Kill(pid, 0) == nil; <-t.C {
			text, _ := os.ReadFile(arg(1) + ".up")
			up = strings.Contains(string(text), "idle")
		}
		if err != nil || os.WriteFile(arg(1)+".new", out, 0o600) != nil || os.Rename(arg(1)+".new", arg(1)) != nil {
			return 67
		}
		say("idle")
		stay()
	case "env":
		for _, k := range args[1:] {
			v, ok := os.LookupEnv(k)
			say("%s=%s %v", k, v, ok)
		}
		say("idle")
		stay()
	}
	return 64
}

func say(format string, args ...any) {
	_, _ = io.WriteString(os.Stdout, fmt.Sprintf(format, args...)+"\n")
}

// stay blocks for ever, without looking like a deadlock to the runtime.
func stay() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	for {
		<-c
	}
}
