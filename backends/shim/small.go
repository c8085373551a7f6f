package shim

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/bundle"
)

// SmallMain is the main function of the small program:
// "teamctl-shim VERSION TEAMCTL ARG...". If VERSION is not its bundle.Version,
// it replaces itself with "TEAMCTL shim ARG...": the two programs come from
// different builds. It returns the exit status as Main does.
func SmallMain(args []string, own ...Opener) int {
	if len(args) < 2 {
		return fail(fmt.Errorf("%s is started by the supervisor of a team; see teamctl --help", bundle.SmallName), 2)
	}
	if args[0] != bundle.Version {
		err := unix.Exec(args[1], append([]string{args[1], "shim"}, args[2:]...), os.Environ())
		return fail(fmt.Errorf("run %s shim: %w", args[1], err), 1)
	}
	return Main(args[2:], own...)
}
