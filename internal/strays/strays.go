// Package strays finds and ends the processes of a test: those that have its directory
// in their environment, whoever their parent is by now. It is for tests and the
// programs of developers, and finds nothing where there is no /proc.
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
)

// Below are the processes, but the calling one, of which a variable begins with a path
// below dir.
func Below(dir string) func() []int {
	return Of(func(env []byte) bool { return bytes.Contains(env, []byte("="+dir+"/")) })
}

// Of are the processes, but the calling one, whose environment is of the test, whenever
// they are asked for. One amid its exec is waited for: it may be of it as well.
func Of(ours func(env []byte) bool) func() []int {
	return func() []int { return find(ours) }
}

func find(ours func(env []byte) bool) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []int
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if ours(environ.Of(pid, nil)) {
			out = append(out, pid)
		}
	}
	return out
}

// patience bounds every wait for processes to be gone.
const patience = time.Minute

// Gone waits until list lists nothing, of itself. What stays is named in the error, and
// ended all the same.
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

// End kills what list lists until it lists nothing: what is being killed may just have
// started another one, and writes into its directory until it is gone. Its error names
// what does not die.
func End(list func() []int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(patience); ; <-tick.C {
		left := list()
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone
		}
		if time.Now().After(late) {
			return fmt.Errorf("end processes: %s after SIGKILL", strings.Join(Named(left), ", "))
		}
	}
}

// Named are the pids with their command lines.
func Named(pids []int) []string {
	out := make([]string, len(pids))
	for i, pid := range pids {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // gone: without
		out[i] = strings.TrimSpace(fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return out
}
