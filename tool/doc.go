// Package tool has every operation of teamctl once, typed: a function of a context, the caller and
// an input struct, to an output struct or a coded error. The command line, the control socket, the
// built-in agents and other doors are thin layers on top. It prints nothing and knows no flags.
//
// # Callers
//
// A [Caller] is a person, or a member that [Team.Identify] has verified: a member gets a new secret
// with every start, the ledger keeps its hash, and a claim of an identity without the secret is
// denied. After that everything is written in the verified name. One table (roles.go) says what
// each role may do; every operation consults it. What an operator does beyond other roles is logged
// as role.bypassed.
//
// # Approvals
//
// All requests that need a decision are in one queue (table approvals). They are answered only
// there, by request id: the ledger refuses messages of these kinds from any other source, and the
// content of a mailbox file changes nothing. By default a person answers; a setting may name a role
// in addition. Nobody answers their own request.
//
//	          approve -> approved
//	pending   reject  -> rejected (with feedback; also when the requester exits)
//	          deadline-> expired  (approval-deadline; default none)
//
//	permission  the requester is shown as waiting until the answer
//	plan        the same, one at a time for each member; approved: its mode changes
//	review      of a completed task, which stays in_progress while it is pending; it
//	            follows the task's verification, if any, which nobody decides and
//	            which is in no queue; approved: completed, its dependents become
//	            ready; rejected: pending again, assigned to its owner, the feedback
//	            in metadata.review. It survives its owner's exit (the work is done)
//	            and has no deadline
//	delegation  an action that a member may take only with approval: a task_request
//	            is posted in its name in the transaction of the answer; a spawn
//	            follows it
//
// The answer, its effect and the message to the requester are one transaction. If the process is
// killed right after it, the supervisor mails the message.
//
// # Shutdown
//
//	request in the mailbox -> approved  -> wait for the exit, at most the grace period
//	                       -> rejected  -> the member continues; the caller gets the reason
//	                       -> deadline (10 s, --wait) -> SIGTERM, grace, SIGKILL
//
// The supervisor runs it (stop.go there); a member answers with a shutdown_response to a request
// that was sent to this very session.
package tool
