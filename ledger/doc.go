// Package ledger is the team's truth: tasks, members, messages and their
// deliveries, runs, the scratchpad and the audit log, in one SQLite file.
//
// # Who may write
//
// Every change is an [Op]: a name, arguments and an id. A [Writer] applies it in
// one IMMEDIATE transaction. [Direct] does so in this process, behind a fair
// file lock, because processes that fight for SQLite's own lock starve each
// other; the lock is kept for a few milliseconds of writes that follow each other.
// [Group] does so for a supervisor, many operations with one fsync. The
// control room carries operations to the supervisor over its socket, and
// [Switching] falls back from there to Direct. The functions that run are the
// same ones on every way, and so are the guarantees. Reads never go through a
// Writer: they use a pool of query-only connections.
//
// # When an answer is lost
//
// The id of a retryable operation and its result are committed together with
// what it did (table applied_ops, kept for an hour). A caller that does not
// know what became of its operation hands the same Op to the next Writer and
// gets the first result.
//
// # Tasks
//
//	pending -> claimed -> in_progress -> completed | failed
//
// A task with a command to verify it by, or on a team with a reviewer, stays in_progress
// while it is verified and then reviewed. It goes back to pending by release, an expired lease, the owner's death, or the
// retry of a failed task. A claim is one UPDATE .. RETURNING; it carries a
// lease and an attempt number, and every later write of the owner is fenced by
// owner and attempt. Dependencies are rows; a trigger keeps blockedBy and the
// count of unmet ones right, so the next claimable task is the first entry of a
// partial index. A failed dependency keeps blocking: its dependents are stuck,
// never silently run. Ids are never used again.
//
// # Messages
//
// Posting writes the message and one delivery per recipient before the sender
// is told. A delivery moves forward only:
//
//	posted -> mailed -> injected -> accepted -> read -> answered
//
// held is a stop on the way and dropped is an end, both with a reason. A
// recipient is bound to its session when the message is posted, so mail for a
// name that was used again cannot reach the wrong agent.
//
// # Durability
//
// WAL with synchronous=FULL: what a Writer has answered survives the power
// cord. These settings are asserted after opening, because the driver ignores
// misspelt ones in silence. Nothing in this package opens the database files
// itself: closing any descriptor of theirs would drop the POSIX locks that
// SQLite holds in this process.
package ledger
