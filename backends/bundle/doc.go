// Package bundle reads and writes the files of a member's bundle, its log, and
// the notifications of its processes. It is not an API for other modules.
//
// A bundle is a directory per member (team.Bundle). Its files state facts about
// one generation, which each of them names; a reader that asks for another
// generation gets CodeNotFound. Who writes what, in this order:
//
//	start.lock   the backend holds it exclusively while it starts a generation;
//	             the shim waits for it, shared, before it reads anything
//	launch.json  the backend: what to start
//	output.log   the backend creates it; the shim of a PTY, the log writer of a
//	             pane, or the in-process backend appends to it
//	pane.json    the backend: the terminal
//	run.lock     the shim, or the in-process backend, holds it for life: a
//	             generation is alive exactly while it is held
//	group.json   the shim, before it puts anything into the control group
//	logger.json  the log writer of a pane
//	proc.json    the shim: the processes; then it releases start.lock
//	ready.json   the agent, or who speaks for it
//	exit.json    the shim with its last act, with fsync; the backend if the shim
//	             was killed
//
// A file is replaced by a rename, so a reader sees all of it or none. Without
// fsync (all but exit.json) it survives the death of every process but not of
// the machine. A writer that is killed leaves a *.tmp, which Sweep removes. The
// kernel releases the locks of whatever dies. A program that damages a file
// ends nobody's agent: Problems names the file, and package holder ends the
// member without it.
//
// # Notifications
//
// The supervisor listens on a unix datagram socket (Listen). A datagram is one
// JSON object {"agent": name, "generation": uuid, "event": event}; event is
// "up" or "exited" from the shim and may be "ready" from the agent itself,
// which gets the path in TEAMCTL_NOTIFY_SOCKET and its generation in
// TEAMCTL_GENERATION. A datagram is a hint to read the files and may be lost;
// then the supervisor notices the change by watching processes and, for
// ready.json (SayReady), the bundle.
package bundle
