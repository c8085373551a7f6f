package strays

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Place sets variable, which names where sockets are made, to a short directory
// for this test binary alone, because a test that sets it for itself cannot run
// in parallel. Call Place in TestMain. done(code) waits for the processes that
// have the variable in their environment, removes the directory, and returns
// the exit status.
func Place(variable string) (done func(code int) int) {
	dir, err := os.MkdirTemp(Short(), "tc")
	if err == nil {
		err = os.Setenv(variable, filepath.Join(dir, "r"))
	}
	if err != nil {
		panic(err)
	}
	return func(code int) int {
		if err := errors.Join(Gone(Below(dir)), os.RemoveAll(dir)); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)
			return max(code, 1)
		}
		return code
	}
}

// Short returns a directory for directories with sockets: the temporary
// directory if its path is short enough, otherwise /tmp. A socket's path has at
// most 107 bytes.
func Short() string {
	if dir := os.TempDir(); len(dir) <= 24 {
		return dir
	}
	return "/tmp"
}

// WriteProgram writes an executable file. No process is forked meanwhile: a
// child of a concurrent test would keep the file open for writing until its
// exec, and running the program at that moment would fail with "text file
// busy".
func WriteProgram(path string, data []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, data, 0o755)
}
