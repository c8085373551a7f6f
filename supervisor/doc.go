// Package supervisor keeps the processes of one team in their desired state.
//
// One goroutine (loop) owns all state and reads typed messages; everything that blocks (a worktree, a
// backend's start or stop) runs in a step of its own, one per member at a time, and reports back as
// a message. Each member has a desired state, written by requests, and an observed state, written by
// observations; the loop moves observed towards desired (reconcile) after every message. Package
// team has the table of all transitions.
//
// A request is in the ledger before anything is done about it, and a result is in the member's bundle
// before anything relies on it. A supervisor may therefore be killed at any moment: the next one
// reads the ledger, asks the backend to adopt each generation, and completes what is missing. A
// generation that is gone without a recorded exit has ended as "unknown", never as 0.
//
// The loop wakes up on events: requests, exits (pidfd), datagrams of shims and agents, changes of the
// ledger. The only timers are back-offs, deadlines of requests, the idle exit, and the renewal of
// leases while a member runs.
//
// Everything that the loop itself does not need is a separate part: package loop defines what the
// loop offers a part, and package looptest has a loop for tests.
//
//	delivery  mail to members and observations of them, by channels
//	usage     members' usage, budgets and the limits of providers (package quota)
//	services  concerns that change no member
//	trees     members' worktrees
//	policy    when a member is restarted, and by which clock
//	rest      when an output has come to rest
//	approval  answers to requests
//	rename    a member's new name
//	found     the roster according to files, to rebuild a ledger
//	state     what an agent does, from observations
package supervisor
