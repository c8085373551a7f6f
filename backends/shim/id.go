package shim

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends/bundle"
)

// Argv returns the command that runs a shim, given that of teamctl ([teamctl shim]): the
// small program beside teamctl if there is one, else teamctl itself.
func Argv(teamctl []string) []string {
	if len(teamctl) != 2 || teamctl[1] != "shim" {
		return teamctl
	}
	small := filepath.Join(filepath.Dir(teamctl[0]), bundle.SmallName)
	if fi, err := os.Stat(small); err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return teamctl
	}
	return []string{small, bundle.Version, teamctl[0]}
}

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
