package control

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/procfs"
)

// activity returns what the threads of a process are doing now.
func activity(pid int) doing {
	if pid <= 0 {
		return doingUnknown
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil || len(threads) == 0 {
		return doingUnknown
	}
	stopped := 0
	for _, th := range threads {
		b, err := os.ReadFile(dir + "/" + th.Name() + "/stat")
		if err != nil {
			continue
		}
		s, err := procfs.ParseStat(b)
		if err != nil {
			continue
		}
		switch s.State {
		case 'R', 'D':
			return doingWork
		case 'T', 't':
			stopped++
		}
	}
	if stopped > 0 {
		return doingStopped
	}
	return doingNothing
}

// descriptors reports that a process has no free descriptor, "" if it has.
func descriptors(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	open, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return ""
	}
	limits, err := os.ReadFile(dir + "/limits")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(limits)) {
		rest, ok := strings.CutPrefix(line, "Max open files")
		f := strings.Fields(rest)
		if !ok || len(f) == 0 {
			continue
		}
		most, err := strconv.Atoi(f[0])
		if err == nil && len(open) >= most {
			return fmt.Sprintf("; all of its %d file descriptors are in use", most)
		}
	}
	return ""
}

// holder returns the process that holds a lock, 0 if unknown.
func holder(path string) int { return procfs.LockHolder(path) }
