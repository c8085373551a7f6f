// Package tool has every operation of teamctl once, typed: a function of a
// context, the caller and an input struct, to an output struct or a coded error.
// The command line, the control socket, the built-in agents and other doors are
// thin edges over it. It prints nothing and knows no flags.
//
// # Who asks
//
// A [Caller] is a person, or a member that [Team.Identify] has verified: a member
// gets a new secret with every start, the ledger keeps its hash, and a claim of
// an identity without the secret is denied. From then on everything is written
// in the verified name. One table (roles.go) says what each role may do; every
// operation asks it. What an operator does beyond the roles of others is logged
// as role.bypassed.
//
// # Approvals
//
// What waits for somebody's word stands in one queue (table approvals). It is
// answered there by matching request id, and nowhere else: the ledger refuses
// messages of these kinds that come any other way, and what a mailbox file says
// changes nothing. By default a person answers; a setting may name a role as
// well. Nobody answers a request of its own.
//
//	          approve -> approved
//	pending   reject  -> rejected (with feedback; also when the asker exits)
//	          deadline-> expired  (approval-deadline; default none)
//
//	permission  the asker is shown as waiting until the answer
//	plan        the same, one at a time for each member; approved: its mode changes
//	review      comes after the verification of a task that has a verify, which is
//	            nobody's word and stands in no queue; a completed task stays in_progress while it is pending; approved:
//	            completed, its dependents become ready; rejected: pending again,
//	            assigned to its owner, the feedback in metadata.review. It outlives
//	            its owner's exit (the work is done) and has no deadline
//	delegation  what a member may do only when it is approved: a task_request is
//	            posted in its name in the transaction of the answer; a spawn follows it
//
// The answer, its effect and the message that tells the asker are one
// transaction. Killed right after it, the supervisor mails the message.
//
// # Shutdown
//
//	request in the mailbox -> approved  -> exit awaited for the grace
//	                       -> rejected  -> the member goes on; the caller is told why
//	                       -> deadline (10 s, --wait) -> SIGTERM, grace, SIGKILL
//
// The supervisor runs it (stop.go there); a member answers with a
// shutdown_response for a request that was sent to this very session.
package tool
