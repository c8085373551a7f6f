package ledger

import (
	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/team"
)

// networkFS lists file systems on which WAL's shared memory and locks do not
// work between hosts. It does not list 9p: sandboxes present their own disk as
// 9p, and where it cannot map shared memory SQLite refuses WAL, which is
// checked.
var networkFS = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x7461636f: "OCFS2",
}

func refuseNetworkFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil // a missing directory is reported by what needs it
	}
	return checkFSType(dir, uint32(st.Type)) // the magic number is 32 bits wide
}

func checkFSType(dir string, magic uint32) error {
	name, ok := networkFS[magic]
	if !ok {
		return nil
	}
	return team.Errorf(team.CodeUnavailable, "the ledger cannot be on %s (%s)", name, dir).
		WithReason(team.ReasonNetworkFilesystem).
		WithHint("set " + team.EnvHome + " to a directory on a local disk")
}
