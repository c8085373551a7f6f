package ledger

import (
	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/team"
)

// networkFS lists file systems on which WAL's shared memory and locks do not
// work between hosts.
var networkFS = map[string]bool{"nfs": true, "smbfs": true, "afpfs": true, "webdav": true}

func refuseNetworkFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil // a missing directory is reported by what needs it
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if !networkFS[name] {
		return nil
	}
	return team.Errorf(team.CodeUnavailable, "the ledger cannot be on %s (%s)", name, dir).
		WithReason(team.ReasonNetworkFilesystem).
		WithHint("set " + team.EnvHome + " to a directory on a local disk")
}
