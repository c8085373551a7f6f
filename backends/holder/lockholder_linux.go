package holder

import (
	"os"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/procfs"
)

// lockHolder returns the process, other than this one, that holds the exclusive
// flock on a file.
func lockHolder(path string) (backends.ProcID, bool) {
	pid := procfs.LockHolder(path)
	if pid == 0 || pid == os.Getpid() {
		return backends.ProcID{}, false
	}
	id, err := proc.Identify(pid)
	return id, err == nil
}
