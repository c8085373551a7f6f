// Package hooks runs a person's own hooks: commands that are asked when something
// happens on a team, with the facts as JSON on standard input.
//
//	TaskCreated      before a task is put on the board; a block refuses it
//	TaskCompleted    before a task is completed; a block refuses that, and the owner is told why
//	TeammateIdle     an agent said that it is idle; a block sends it the feedback
//	TeammateExited   a member's process has ended; a block tells the lead the feedback
//	MessageAccepted  an agent has taken a message; a block sends it the feedback
//
// The first two are asked by who does the operation, and hold it up; the others by
// the supervisor, beside its loop, once for an event that it has seen.
//
// A hook answers by its exit status: 0 lets it pass, 2 blocks with what it wrote to
// standard error as feedback. Any other status, a signal, and one that takes too
// long are failures of the hook: they let it pass, and are told (event hook.failed,
// the doctor). With status 0, {"continue":false,"stopReason":"..."} on standard
// output stops the member that it is about.
//
// Hooks stand in $TEAMCTL_HOME/config.yaml, which is the person's own, and in the
// team file. Those of a team file that came with the repository run only while
// somebody's consent is to exactly their commands and the files of the repository
// that these name.
//
// Events: hook.blocked, hook.failed and hook.stop, each with hook, command and text.
package hooks
