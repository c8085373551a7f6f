package tmux

import (
	"slices"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/procfs"
)

// serverName is the process name of a tmux server; a client also uses it.
const serverName = "tmux: server"

// stray returns a living server that was started for a socket but not recorded,
// because the process that started it was killed first. While its socket exists
// that leads to it; without it only the process table does.
func stray(socket string) (id backends.ProcID, ok bool) {
	pids, err := procfs.PIDs()
	if err != nil {
		return id, false
	}
	for _, pid := range pids {
		// It may exit at any time: then it is not this process.
		if s, err := procfs.Of(pid); err != nil || s.Name != serverName {
			continue
		}
		args := procfs.Args(pid)
		if i := slices.Index(args, "-S"); i < 0 || i+1 >= len(args) || args[i+1] != socket {
			continue
		}
		if id, err = proc.Identify(pid); err == nil {
			return id, true
		}
	}
	return id, false
}
