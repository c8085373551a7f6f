package bundle

// Version is the version of what the two sides of a bundle agree on: the files
// and their fields, the locks and their order, the datagrams, and the arguments
// of a shim. Programs with the same version may write and read one bundle; the
// small program (SmallName) with another version gives way to teamctl.
//
// Raise it by one with every change that a shim of another build would not
// take part in. TestVersion fails when fields change and it does not; a change
// of meaning or order alone is for the author to see.
const Version = "1"

// SmallName is the file name of the small program that runs a shim and nothing
// else. It starts in less time and memory than teamctl, which runs a shim as
// well.
const SmallName = "teamctl-shim"

// StepLog is the shim's subcommand that writes the log of a tmux pane:
// "shim log --bundle DIR --generation GEN" writes what it reads to the member's
// log.
const StepLog = "log"
