package shim

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/procfs"
)

// intoGroup starts a process in the control group whose directory fd is.
func intoGroup(sys *syscall.SysProcAttr, fd int) { sys.UseCgroupFD, sys.CgroupFD = true, fd }

// canLimitMemory is true; see limitSelf.
const canLimitMemory = true

// canLimitPIDs returns false for root, to which RLIMIT_NPROC does not apply.
func canLimitPIDs() bool { return os.Getuid() != 0 }

// selfPath returns the path of this program, even if its file was replaced
// meanwhile.
func selfPath() (string, error) { return "/proc/self/exe", nil }

// limitSelf sets resource limits that persist through an exec and cannot be
// raised again.
//
// Memory is RLIMIT_DATA: the private writable memory of each process. RLIMIT_AS
// would also count address space that is reserved and never used: Node reserves
// gigabytes for every WebAssembly memory, Go for its heap, and both fail under
// a limit far above what they use.
//
// RLIMIT_NPROC counts all processes and threads of the user, not only the
// agent's: it is set to the given number above the user's present count.
// Whatever else the user starts later counts as well.
func limitSelf(memory, pids int64) error {
	if pids > 0 {
		n, err := ownTasks()
		if err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
		if err := setLimit(unix.RLIMIT_NPROC, n+uint64(pids)); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	if memory > 0 {
		// From here on this process may itself be over its limit and unable to
		// allocate: the memory needed to execute the agent must be available
		// already.
		reserve()
		if err := setLimit(unix.RLIMIT_DATA, uint64(memory)); err != nil {
			return fmt.Errorf("limit memory: %w", err)
		}
	}
	return nil
}

// reserve makes the runtime hold 4 MiB that it can reuse.
func reserve() {
	func() { runtime.KeepAlive(make([]byte, 4<<20)) }()
	runtime.GC()
}

// setLimit never raises an existing limit.
func setLimit(what int, n uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(what, &old); err != nil {
		return err
	}
	n = min(n, old.Max)
	return unix.Setrlimit(what, &unix.Rlimit{Cur: n, Max: n})
}

// ownTasks counts the threads of this user's processes, this one as one.
func ownTasks() (uint64, error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return 0, err
	}
	n, uid, self := uint64(1), os.Getuid(), os.Getpid()
	for _, pid := range pids {
		var st unix.Stat_t
		if pid == self || unix.Stat("/proc/"+strconv.Itoa(pid)+"/task", &st) != nil || int(st.Uid) != uid {
			continue
		}
		n += uint64(max(int64(st.Nlink)-2, 1)) // the type differs between systems
	}
	return n, nil
}
