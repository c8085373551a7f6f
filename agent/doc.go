// Package agent is the built-in agent. Its worker needs no model: it claims ready
// tasks from the ledger, runs their metadata.run in its worktree, and says what
// came of it. Run is all of it: the same call is a process of its own in a
// terminal or a goroutine, so it has no globals, never changes the directory,
// handles no signal and writes to Env.Out only.
//
// One pass of the loop, always in this order:
//
//	mail      shutdown requests, then the lead's, then the peers'
//	task      the one claimed on request, else the oldest ready of the highest priority;
//	          one without a command is left to others, and who asks for it is told
//	wait      for a change of the ledger, of the mailbox, or the end of the context
//
// and of one task:
//
//	claimed -> started -> [left-over work committed] -> [dependencies merged]
//	        -> metadata.run -> [changes committed] -> verify -> completed | failed
//
// It verifies itself, and the supervisor the tasks of everybody else: its worktree is as
// the task has left it only until it takes the next one, and nobody reads what a
// verification that fails would say to it, so such a task fails.
//
// What happens on failure:
//
//   - The task was taken away (released, canceled, expired, deleted, assigned to another):
//     every later write is fenced by owner and attempt, and the ledger is looked at
//     on each change while a command runs; the command is ended and the worker goes on.
//   - The context ends: all processes of the command get SIGTERM and SIGCONT, five
//     seconds later SIGKILL (package internal/run); the task goes back to pending. A task whose command and
//     verification were through is still completed.
//   - The worker is killed: its next life, which has the same session key, releases
//     what it held, repeats the notice of its newest task (the idempotency key keeps
//     it single) and commits what lies in the worktree before it touches it.
//   - The ledger is busy or away: retried with a growing pause, for ever, as the same
//     operation: what an earlier attempt has done, unknown to the worker, is not done twice.
//   - The worktree is broken (not: a merge conflict, which fails the task): the task
//     goes back to pending and Run returns the error. The supervisor's backoff decides
//     about the next try, other members can take the task meanwhile.
//
// Mail is handled first and marked read after: a crash between the two repeats
// the handling, which is harmless, instead of losing the mail. It is marked read only
// once its receipt is in the ledger; one that cannot be written is tried again. What a message says
// about its sender and its kind is taken from the ledger by the message's id,
// never from the mailbox file, which any program may write.
//
// # Sessions of a model
//
// Serve runs an agent that a model leads. Its loop is one goroutine too: it takes mail
// into the sessions in the ledger, claims turns, and runs each beside itself (package
// llm). What a turn wants of mail, screen and roster it asks the loop for, by a desk: so
// there is one reader of the mailbox, and a message is taken in by a new turn, by the
// turn under way at a boundary, or by the backlog, and never by two of them.
//
//	no turn under way    all that is unread: one entry for each message, its receipt
//	                     and the turn that it begins in one commit
//	at a boundary        a message or request of the lead steers: it ends the turn and is
//	                     the next one; the rest becomes part of the turn
//	after the last one   what steers enters the backlog, and its sender is told; the
//	                     rest waits for the end of the turn
//	shutdown request     ends every turn, then it is answered
//
// A turn that ends with its process is queued again, by the process itself if it can, by
// the next one or the supervisor if not.
package agent
