package ledger

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestNetworkFileSystemsAreRefused(t *testing.T) {
	t.Parallel()
	for magic, name := range networkFS {
		refused(t, checkFSType("/x", magic), team.CodeUnavailable, "network_filesystem")
		if name == "" {
			t.Errorf("%x has no name", magic)
		}
	}
	const ext4 = 0xef53
	ok(t, checkFSType("/x", ext4))
}
