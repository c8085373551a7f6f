package bundle

import (
	"os"
	"path/filepath"
)

// Version is the version of what the two sides of a bundle agree on: the files
// and their fields, the locks and their order, the datagrams, and the arguments
// of a shim. Programs with the same version may write and read one bundle; the
// small program (SmallName) with another version gives way to teamctl.
//
// Raise it by one with every change that a shim of another build would not
// take part in. TestVersion fails when fields change and it does not; a change
// of meaning or order alone is for the author to see.
const Version = "2"

// SmallName is the file name of the small program that runs a shim, or a hook
// for which nothing waits. It starts in less time and memory than teamctl,
// which runs both as well.
const SmallName = "teamctl-shim"

// Small returns the command of the small program beside teamctl, an absolute
// path, without its arguments; nil if there is none.
func Small(teamctl string) []string {
	small := filepath.Join(filepath.Dir(teamctl), SmallName)
	if fi, err := os.Stat(small); err != nil || !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return nil
	}
	return []string{small, Version, teamctl}
}

// StepLog is the shim's subcommand that writes the log of a tmux pane:
// "shim log --bundle DIR --generation GEN" writes what it reads to the member's
// log.
const StepLog = "log"

// StepHook is what the small program calls an agent's hook: "hook CLI EVENT",
// as teamctl does. One of another version runs it as "teamctl shim hook CLI EVENT".
const StepHook = "hook"
