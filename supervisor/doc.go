// Package supervisor keeps the processes of one team as they are wanted.
//
// One goroutine (loop) owns all state and reads typed messages; everything that
// blocks (a worktree, a backend's start or stop) runs in a step of its own, one
// per member at a time, and reports back as a message. Each member has a desired
// state, written by requests, and an observed one, written by what was seen; the
// loop moves observed towards desired (reconcile) after every message. All
// transitions stand in team's table.
//
// What was asked is in the ledger before anything is done about it, and what was
// done is in the member's bundle before anything relies on it. So a supervisor
// may be killed at any moment: the next one reads the ledger, asks the backend to
// adopt each generation, and takes up what is missing. A generation that is gone
// without a recorded exit ended as "unknown", never as 0.
//
// Wake-ups are events: requests, exits (pidfd), datagrams of shims and agents,
// changes of the ledger. The only timers are back-offs, deadlines of requests,
// the idle exit, and the renewal of leases while a member runs.
//
// What the loop need not know by itself is a part of its own: package loop says what the loop
// offers a part, and package looptest has a loop for their tests.
//
//	delivery  mail to members and what is seen of them, by channels
//	usage     what members use, budgets and the limits of providers (their numbers: quota)
//	services  what changes no member
//	trees     where a member works
//	policy    when a member is started again, and by which clock
//	rest      when an output has come to rest
//	approval  what answers a request
//	rename    a member's new name
//	found     the roster as files have it, for a ledger that is made anew
//	state     what an agent does, from what was observed
package supervisor
