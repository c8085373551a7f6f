package tmux

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
)

// serverName is how a tmux server calls itself; a client says so of itself too.
const serverName = "tmux: server\n"

// stray is a living server that was started for a socket and is recorded nowhere:
// whoever started it was killed before it could write that down. While its socket
// is there that leads to it; with that deleted as well only the process table does.
func stray(socket string) (id backends.ProcID, ok bool) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return id, false
	}
	for _, dir := range names {
		// Both files may be gone by the time that they are read: not the one, then.
		if comm, err := os.ReadFile(filepath.Join(dir, "comm")); err != nil || string(comm) != serverName {
			continue
		}
		args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(args, []byte("\x00-S\x00"+socket+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if id, err = proc.Identify(pid); err == nil {
			return id, true
		}
	}
	return id, false
}
