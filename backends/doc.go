// Package backends defines how one teammate is run: a Launch starts a
// generation, a Handle is a generation started by this process, and an Attached
// is one that was adopted from an earlier supervisor. It is not an API for
// other modules. The mechanisms are in the sub-packages tmux, pty and inproc;
// the shim, which is the holder process of every terminal teammate, is in
// backends/shim; process identity is in internal/proc.
//
// A generation is one start of a member, named by a uuid. Its state is on disk
// in the member's bundle (team.Bundle) before anything relies on it:
//
//	launch.json  what to start         supervisor, before the backend starts anything
//	pane.json    where it was put      backend, while it holds start.lock
//	group.json   its control group     shim, before anything is in it
//	proc.json    its process identity  shim, after the agent was started
//	logger.json  its log writer        "teamctl shim log", under tmux
//	exit.json    how it ended          shim, fsynced before it notifies anyone
//	run.lock     flock, held for life  shim: lock held <=> a generation is alive
//	start.lock   flock, held by the backend during Start: the shim waits for it
//	             before it starts the agent, so that output and identity are caught
//	             from the first byte; the kernel releases it if the supervisor dies
//
// The supervisor may die at any moment: no agent notices, and the next
// supervisor adopts by {boot id, pid, start ticks, generation}.
package backends
