// Package llm runs turns of the built-in agent: it asks a model, runs the tools that
// the model calls, and asks again, until an answer calls none.
//
// A [Runner] keeps nothing between two turns and nothing that a turn needs is in memory
// alone. The session's entries in the ledger are the conversation; package agent takes
// mail into them and says which turn runs next.
//
// # The journal of a turn
//
//	taken in   user entries, receipts and the job             one commit, by package agent
//	asked      nothing is written: the request is made from the entries
//	answered   the assistant entry and the calls in it        one commit, after the whole answer
//	begun      a call that may change something               one commit, before it starts
//	ended      the result of a call                           one commit
//	done       the last entry, the job's end, its usage and   one commit
//	           the job of what the backlog has
//
// A request is a pure function of the entries: the entries of one request, in the same
// bytes, begin the next. What changes from request to request stands behind them, in
// Request.Ephemeral, and is stored nowhere.
//
// # After a kill
//
// The job is claimed again and the turn goes on where its entries end. A call that had
// begun is never run again: the ledger has given it a result that says so. One that had
// not, or that only reads, is run. An answer that was cut is asked for again.
//
// # Boundaries
//
// Before the first call of an answer, between two and after the last, the turn asks its
// [agent.Desk] what has come. A message that steers ends the turn there: calls that have
// not begun get a result that says so, and the ledger keeps a token of the task for
// later. Within a call, an answer or a compaction nothing is taken in.
package llm
