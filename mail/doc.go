// Package mail moves messages from the ledger into mailboxes, and keeps the two in agreement.
//
// A message has two phases. Mailer.Post writes the message and one delivery per recipient in
// one transaction; from then on the message is durable. Mailer.Deliver then appends it to the
// recipient's mailbox file and marks the delivery mailed, under the mailbox's lock. The lock
// holder appends everything that is posted to that recipient, whoever posted it, so senders
// that wait for the lock find their messages mailed. A sender that is killed between the
// phases leaves the delivery posted; the next sender to that recipient, its next reader
// (Mailer.Collect) or the supervisor (Mailer.Sweep) mails it. The message id keeps every entry
// unique: an entry that is in the file and not marked is only marked.
//
// While a supervisor is up, other processes ask it to do the second phase: it serialises the
// senders to one recipient in a Queue. Nothing depends on it: a sender without an answer does
// the second phase itself.
//
// # Who writes the state of a delivery
//
// A state only moves forward: posted, mailed, injected, accepted, read, answered. Held and
// dropped may follow every state before accepted, and carry a reason; nothing follows dropped.
// Accepted, read and answered carry evidence. The ledger refuses every other change.
//
//	state     written by                                      when
//	posted    ledger, in the transaction of the message       a message is posted
//	mailed    this package, and no other                      the entry is in the mailbox file
//	held      supervisor (a breaker is open, or its          the recipient takes no messages for now
//	          channel cannot take it), agent (at a limit)
//	injected  whoever hands the text to the program of the    just before or when it is handed over
//	          recipient's present generation:
//	            supervisor, for a channel of internal/courier
//	            internal/courier/hook, for a hook's answer
//	            tool (InboxNext), for an agent that asks
//	            agent, for the built-in agents
//	            internal/bridge, for a native teammate
//	accepted  the same packages, except tool                  there is evidence that the program has the
//	                                                          whole text where its model will see it
//	read      tool (the reader says so)                       the recipient has used it
//	          tool (receipts) and this package (Prune,        its reader has marked or removed the entry
//	          restore)                                        in the mailbox file
//	answered  ledger, in the transaction of the reply         the recipient replies
//	dropped   ledger (the recipient leaves, a newer notice    the message will not arrive
//	          replaces it), this package (Sweep), supervisor
//	          (requests of an earlier generation)
//
// Injected is therefore never written by the sender or by this package: a mailbox entry says
// nothing about the recipient's program. A state after mailed is never written because time
// has passed.
//
// # Repair
//
// Other programs write the same files. A mailbox that was damaged, deleted, emptied or
// overwritten, or whose appends were lost with the machine's power (Mailer.AfterBoot), is
// marked as lacking on disk and then reconciled with the ledger (Mailer.Restore): what its
// reader is known to have taken becomes read, and what is lost is appended again, marked as
// possibly known. The mark is removed last, so a killed repair is completed by the next one.
//
// The lead's mailbox is also an address for requests of programs that know the files and not
// teamctl. LeadReader finds them; tool decides what they are worth.
package mail
