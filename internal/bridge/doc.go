// Package bridge joins a team of ours with the native team of an agent CLI that
// keeps one in files: members, mail and tasks of each appear in the other, so that a
// Codex or a worker is a teammate of a Claude Code lead, and its teammates are ours.
//
// # What is mirrored
//
//	there (D is the program's directory)   here
//	D/teams/N/config.json, members         members, as programs that joined
//	D/teams/N/inboxes/<ours>.json          messages to our members
//	D/teams/N/inboxes/<theirs>.json        messages to theirs, and to team-lead
//	D/tasks/N/<id>.json                    tasks
//
// The two leads are one: what is sent to team-lead here reaches the lead there, and
// its mail comes as team-lead's. That is why only a person may start a bridge. It
// gives the lead there no approvals: what waits on the queue is answered there.
// Nothing of the program is written but what lies in those two directories.
//
// # Once, whoever is killed where
//
// Every pass compares both sides and brings over what is missing. What was brought is
// noted in the ledger (table mirrored):
//
//   - Mail, tasks and members that come here are written in the transaction that notes
//     where they came from.
//   - Mail that goes there is a batch in a draft, an empty file beside the mailbox. The
//     draft is noted first, then filled and renamed over the mailbox. Whoever comes after a
//     kill finds the draft and knows that nothing was delivered, or does not find it
//     and knows that all was, even if the reader has taken the mail out already.
//   - A member there is known to be ours by its name and its joinedAt, a task by the
//     origin in its metadata: a kill before the note finds them again.
//
// Nothing goes in a circle: what came from there is noted as theirs and is never
// offered back, and mail from a mailbox there goes to members here only.
//
// # Living with the other writers
//
// Mailboxes and tasks are changed under the program's own locks, which are held for one
// reading and one writing: some versions drop what they want to write while they find
// one held. For the same reason nothing is locked to be read; a text that is not whole
// is looked at again when it changes. config.json is replaced by rename, because
// the program reads it unlocked; some versions also write it unlocked and in place, so
// after the rename the old file is looked at once more, and what somebody has written
// into it meanwhile is taken over.
//
// Some versions mark everything as read that is there, read or not: unless the
// config shows a newer one, a mailbox that has unread mail gets no more.
//
// A task that both sides have changed stays as it is here: the ledger is the truth.
package bridge
