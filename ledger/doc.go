// Package ledger is the authoritative store of a team: tasks, members, messages
// and their deliveries, runs, the scratchpad and the audit log, in one SQLite
// file.
//
// # Who may write
//
// Every change is an [Op]: a name, arguments and an id. A [Writer] applies it
// in one IMMEDIATE transaction. [Direct] does so in this process, behind a fair
// file lock, because processes that compete for SQLite's own lock starve each
// other; it keeps the lock for a few milliseconds of consecutive writes.
// [Group] does so for a supervisor, many operations with one fsync. Package
// control forwards operations to the supervisor over its socket, and
// [Switching] falls back from there to Direct. Every path runs the same
// functions with the same guarantees. Reads never go through a Writer: they use
// a pool of query-only connections.
//
// # When an answer is lost
//
// The id of a retryable operation and its result are committed together with
// its effects (table applied_ops, kept for an hour). A caller that did not get
// the answer to its operation passes the same Op to the next Writer and gets
// the first result.
//
// # Tasks
//
//	pending -> claimed -> in_progress -> completed | failed
//
// A task with a verification command, or in a team with a reviewer, stays
// in_progress while it is verified and then reviewed. It returns to pending by
// release, an expired lease, the owner's death, or the retry of a failed task.
// A claim is one UPDATE .. RETURNING; it carries a lease and an attempt number,
// and every later write of the owner is fenced by owner and attempt.
// Dependencies are rows; a trigger keeps blockedBy and the count of unmet ones
// correct, so the next claimable task is the first entry of a partial index. A
// failed dependency keeps blocking: its dependents are stuck, never silently
// run. Ids are never reused.
//
// # Messages
//
// Posting writes the message and one delivery per recipient before the sender
// gets its answer. A delivery moves forward only:
//
//	posted -> mailed -> injected -> accepted -> read -> answered
//
// held is a stop on the way and dropped is an end, both with a reason. A
// recipient is bound to its session when the message is posted, so mail for a
// reused name cannot reach the wrong agent.
//
// # Sessions
//
// A session is a conversation of the built-in agent, a turn one queued unit of
// it. All of a turn's writes are fenced by its attempt and the generation of
// its process:
//
//	TakeIn     input -> entry of the transcript, its delivery accepted, a turn queued
//	ClaimTurn  queued -> running, in a lane with a place left; the backlog becomes an entry
//	Answered   a complete answer and the calls that it asks for
//	BeginCall  before a call that may change something; EndCalls its result
//	EndTurn    the end, the announce to a parent, and the turn that the backlog needs
//	SteerTurn  the same for a new message, which comes first; the rest waits in the backlog
//
// EndTurn, SteerTurn and TakeIn may also claim what comes next, and Answered may
// begin a call. Each is one transaction. Input is single by its source.
// RecoverTurns, and the release of a dead owner, queue turns of dead processes
// again, and so does an expired lease unless the generation is observed alive:
// results that are there are used, a call that was begun gets a result
// that says so, one that only reads is asked for again. An answer is refused
// while a call has no result, so a transcript is at any moment one that a model
// takes.
//
// # Durability
//
// WAL with synchronous=FULL: a write that a Writer has answered survives a
// power failure. These settings are checked after opening, because the driver
// silently ignores misspelt ones. This package never opens the database files
// itself: closing any descriptor of theirs would drop the POSIX locks that
// SQLite holds in this process.
package ledger
