package tmux

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
)

// serverName is the process name of a tmux server; a client also uses it.
const serverName = "tmux: server\n"

// stray returns a living server that was started for a socket but not recorded,
// because the process that started it was killed first. While its socket exists
// that leads to it; without it only the process table does.
func stray(socket string) (id backends.ProcID, ok bool) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return id, false
	}
	for _, dir := range names {
		// Either file may disappear before it is read: then it is not this
		// process.
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
