// Package bridge joins a team with the native team of an agent CLI that keeps one in files. Members,
// mail and tasks of each appear in the other, so that a Codex or a worker is a teammate of a Claude
// Code lead, and the lead's teammates are members of the team.
//
// # What is mirrored
//
//	native (D is the program's directory)     teamctl
//	D/teams/N/config.json, members            members, as programs that joined
//	D/teams/N/inboxes/<ours>.json             messages to our members
//	D/teams/N/inboxes/<theirs>.json           messages to theirs, and to team-lead
//	D/tasks/N/<id>.json                       tasks
//
// The two leads are one: mail to our team-lead reaches the native lead, and the native lead's mail
// comes as team-lead's. That is why only a person may start a bridge. It gives the native lead no
// approvals: requests in the queue are answered in teamctl. Of the program's files, the bridge
// writes only those in the directories above.
//
// # Exactly once, whichever process is killed
//
// Every pass compares both sides and mirrors what is missing. The ledger records what was mirrored
// (table mirrored):
//
//   - Mail, tasks and members from the native side are written in the transaction that records their
//     origin.
//   - Mail to the native side is a batch in a draft, an empty file beside the mailbox. The draft is
//     recorded first, then filled and renamed over the mailbox. After a kill, an existing draft means
//     that nothing was delivered, and a missing one that all was, even if the reader has already
//     taken the mail out.
//   - A native member is recognised as ours by its name and its joinedAt, a task by the origin in its
//     metadata: they are found again after a kill before the record.
//
// Nothing is mirrored back: what came from the native side is recorded as theirs, and mail from a
// native mailbox goes only to our members.
//
// # Other writers
//
// Mailboxes and tasks are changed under the program's own locks, which are held for one read and one
// write: some versions drop a write when they find a lock held. For the same reason nothing is
// locked for reading; an incomplete text is read again when it changes. config.json is replaced by
// rename, because the program reads it without a lock. Some versions also write it without a lock
// and in place, so the old file is read once more after the rename, and changes in it are merged.
//
// Some versions mark all entries as read, whether they have read them or not: unless the config
// shows a newer version, a mailbox with unread mail gets no more. Their marks may come late, and
// until then they take the same mail again: the bridge marks it once the mailbox was read (taken.go),
// and adds nothing before a member that starts has read and marked its prompt (starting.go).
//
// A task that both sides have changed stays as it is in the ledger, which is authoritative.
package bridge
