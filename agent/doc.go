// Package agent is the built-in agent. Its worker needs no model: it claims ready tasks from the
// ledger, runs their metadata.run in its worktree, and reports the result. Run is the whole worker:
// the same call is a process in a terminal or a goroutine, so it uses no globals, never changes the
// directory, handles no signal and writes only to Env.Out.
//
// One pass of the loop, always in this order:
//
//	mail      shutdown requests, then the lead's, then the peers'
//	task      the one claimed on request, else the oldest ready of the highest priority;
//	          one without a command is left to others, and its requester is notified
//	wait      for a change of the ledger, of the mailbox, or the end of the context
//
// and of one task:
//
//	claimed -> started -> [left-over work committed] -> [dependencies merged]
//	-> metadata.run -> [changes committed] -> verify -> completed | failed
//
// It verifies its own tasks, and the supervisor those of all others: its worktree stays as the task
// has left it only until the next task, and nothing would read the report of a failed verification,
// so such a task fails.
//
// Failures:
//
//   - The task was taken away (released, cancelled, expired, deleted, assigned to another): every
//     later write is fenced by owner and attempt, and the ledger is checked on each change while a
//     command runs; the command is ended and the worker continues.
//   - The context ends: all processes of the command get SIGTERM and SIGCONT, five seconds later
//     SIGKILL (package internal/run); the task returns to pending. A task whose command and
//     verification have finished is still completed.
//   - The worker is killed: its next life, which has the same session key, releases its tasks,
//     repeats the notice of its newest task (the idempotency key prevents duplicates) and commits
//     left-over work in the worktree before it uses it.
//   - The ledger is busy or unavailable: the write is retried with a growing pause, without limit, as
//     the same operation, so an earlier attempt that did succeed is not repeated.
//   - The worktree is broken (other than by a merge conflict, which fails the task): the task returns
//     to pending and Run returns the error. The supervisor's back-off decides about the next try, and
//     other members can claim the task meanwhile.
//
// Mail is handled first and marked read after: a crash between the two repeats the handling, which
// is harmless, instead of losing the mail. It is marked read only once its receipt is in the ledger;
// a receipt that cannot be written is retried. The sender and kind of a message come from the
// ledger, by the message's id, never from the mailbox file, which any program may write.
//
// # Sessions of a model
//
// Serve runs an agent with a model. Its loop is a single goroutine too: it takes mail into the
// sessions in the ledger, claims turns, and runs each in a goroutine of its own (package llm). A turn
// asks the loop, through a desk, for everything that concerns mail, screen and roster. The mailbox
// therefore has one reader, and a message is taken in once: by a new turn, by the running turn at a
// boundary, or by the backlog.
//
//	no running turn      all unread mail: one entry for each message, its receipt
//	                     and the turn that it begins in one commit
//	at a boundary        a message or request of the lead steers: it ends the turn and
//	                     begins the next one; the rest becomes part of the turn
//	after the last one   a steering message enters the backlog, and its sender is
//	                     notified; the rest waits for the end of the turn
//	shutdown request     ends every turn, then it is answered
//
// A turn that ends with its process is queued again, by the process itself if it can, otherwise by
// the next one or the supervisor.
package agent
