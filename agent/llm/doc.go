// Package llm runs turns of the built-in agent: it sends a request to a model, runs the tools that
// the model calls, and repeats that until an answer contains no call.
//
// A [Runner] keeps nothing between two turns, and nothing that a turn needs is only in memory. The
// session's entries in the ledger are the conversation; package agent takes mail into them and
// determines the next turn.
//
// # The journal of a turn
//
//	taken in   user entries, receipts and the job             one commit, by package agent
//	asked      nothing is written: the request is made from the entries
//	answered   the assistant entry and the calls in it        one commit, after the whole answer
//	begun      a call that may change something               one commit, before it starts
//	ended      the result of a call                           one commit
//	done       the last entry, the job's end, its usage and   one commit
//	           the job for the backlog
//
// A request is a pure function of the entries: the bytes of one request are the beginning of the
// next one. Text that changes between requests follows them, in Request.Ephemeral, and is not
// stored.
//
// # After a kill
//
// The job is claimed again and the turn continues after its last entry. A call that had begun is
// never repeated: the ledger has given it a result that says so. A call that had not begun, or only
// reads, is run. An answer that was cut is requested again.
//
// # Boundaries
//
// Before the first call of an answer, between two calls and after the last, the turn asks its
// [agent.Desk] for new mail. A steering message ends the turn there: calls that have not begun get
// a result that says so, and the ledger keeps a token of the task for later. Nothing is taken in
// during a call, an answer or a compaction.
package llm
