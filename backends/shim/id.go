package shim

import (
	"embed"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SmallName is the file name of the small program that runs a shim: Main and nothing
// else. It starts in less time and memory than teamctl, which runs a shim as well.
const SmallName = "teamctl-shim"

//go:embed *.go
var sources embed.FS

// ID identifies this version of the package: a checksum of its sources. Two programs
// with the same ID read and write a bundle in the same way.
func ID() string {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	entries, err := sources.ReadDir(".")
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		text, err := sources.ReadFile(e.Name())
		if err != nil {
			return ""
		}
		fmt.Fprintf(sum, "%s %d\n", e.Name(), len(text))
		_, _ = sum.Write(text)
	}
	return strconv.FormatUint(uint64(sum.Sum32()), 16)
}

// Argv returns the command that runs a shim, given that of teamctl ([teamctl shim]): the
// small program beside teamctl if there is one, else teamctl itself.
func Argv(teamctl []string) []string {
	if len(teamctl) != 2 || teamctl[1] != "shim" {
		return teamctl
	}
	small := filepath.Join(filepath.Dir(teamctl[0]), SmallName)
	if fi, err := os.Stat(small); err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return teamctl
	}
	return []string{small, ID(), teamctl[0]}
}

// SmallMain is the main function of the small program: "teamctl-shim ID TEAMCTL ARG...".
// If ID is not its own, it replaces itself with "TEAMCTL shim ARG...": the two programs
// come from different builds. It returns the exit status as Main does.
func SmallMain(args []string, own ...Opener) int {
	if len(args) < 2 {
		return fail(fmt.Errorf("%s is started by the supervisor of a team; see teamctl --help", SmallName), 2)
	}
	if args[0] != ID() {
		err := unix.Exec(args[1], append([]string{args[1], "shim"}, args[2:]...), os.Environ())
		return fail(fmt.Errorf("run %s shim: %w", args[1], err), 1)
	}
	return Main(args[2:], own...)
}
