// Package strays finds and ends the processes of a test: those that have its
// directory in their environment, whatever their present parent. It is for
// tests and developers' programs, and finds nothing without /proc.
package strays

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/internal/procfs"
)

// Below returns a function that lists the processes, except the caller, with a
// variable that starts with a path below dir.
func Below(dir string) func() []int {
	return Of(func(env []byte) bool { return bytes.Contains(env, []byte("="+dir+"/")) })
}

// Of returns a function that lists the processes, except the caller, whose
// environment belongs to the test. It waits for a process in the middle of an
// exec, which may belong to it too.
func Of(ours func(env []byte) bool) func() []int {
	return func() []int { return find(ours) }
}

func find(ours func(env []byte) bool) []int {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil
	}
	var out []int
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		if ours(environ.Of(pid, nil)) {
			out = append(out, pid)
		}
	}
	return out
}

// patience limits every wait for processes to exit.
const patience = time.Minute

// Gone waits until list is empty by itself. The error names the processes that
// remain, which are ended.
func Gone(list func() []int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		left := list()
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(late) {
			return errors.Join(fmt.Errorf("left behind: %s", strings.Join(Named(left), ", ")), End(list))
		}
	}
}

// End kills what list returns until it returns nothing: a process being killed
// may have just started another one, and writes to its directory until it has
// exited. The error names processes that do not die.
func End(list func() []int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		left := list()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have exited
		}
		if time.Now().After(late) {
			return fmt.Errorf("end processes: %s survived SIGKILL", strings.Join(Named(left), ", "))
		}
	}
}

// Named returns the pids with their command lines.
func Named(pids []int) []string {
	out := make([]string, len(pids))
	for i, pid := range pids {
		out[i] = strings.Join(append([]string{strconv.Itoa(pid)}, procfs.Args(pid)...), " ") // exited: without arguments
	}
	return out
}
