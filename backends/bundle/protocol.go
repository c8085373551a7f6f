package bundle

// StepLog is the shim's subcommand that writes the log of a tmux pane:
// "shim log --bundle DIR --generation GEN" writes what it reads to the member's log.
const StepLog = "log"
