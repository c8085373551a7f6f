// Package backends says what it takes to run one teammate: a Launch starts a
// generation, a Handle is a process that we started, an Attached one that an
// earlier supervisor started and we adopted. The mechanisms stand in the
// sub-packages (tmux, pty, inproc); the holder process that every terminal
// teammate has, the shim, in backends/shim; process identity in internal/proc.
//
// A generation is one start of a member, named by a uuid. The truth about it is
// on disk in the member's bundle (team.Bundle) before anything relies on it:
//
//	launch.json  what to start         supervisor, before the backend starts anything
//	pane.json    where it was put      backend, while it holds start.lock
//	group.json   its control group     shim, before anything is in it
//	proc.json    who it is             shim, after the agent was started
//	logger.json  who writes its log    "teamctl shim log", under tmux
//	exit.json    how it ended          shim, fsynced before it tells anyone
//	run.lock     flock, held for life  shim: lock held <=> a generation lives
//	start.lock   flock, held by the backend during Start: the shim waits for it
//	             before it starts the agent, so that output and identity are caught
//	             from the first byte; the kernel frees it when the supervisor dies
//
// The supervisor may die at any moment: no agent notices, and the next one
// adopts by {boot id, pid, start ticks, generation}.
package backends
