// Package inbox keeps the mailboxes of a team: one JSON array per member, the
// surface on which a message is delivered.
//
// # The file
//
// inboxes/<agent>.json is an array of entries as JSON.stringify(x, null, 2)
// writes it. An entry has from, text, summary?, timestamp, color?, then keys that
// only its writer knows, then msg_id, type and read when teamctl wrote it. A
// protocol message is JSON inside text (see [Parse]). Whatever a foreign program
// wrote stays as it stands: an entry is never decoded and written anew, only its
// read mark is changed. A missing file is an empty mailbox; it is created by the
// first message.
//
// The ledger is the truth for every message. The mailbox can be rebuilt from it,
// all but the read marks; so an append is not fsynced, and a rewrite is.
//
// # Who may write
//
// Any process of the same user, under the locks, always taken in this order:
//
//  1. a semaphore per path in the process,
//  2. flock on locks/<agent>.guard, which is the truth among teamctl processes,
//  3. flock on inboxes/.lock where there is such a file: the lock of clients that lock
//     all mailboxes at once and rewrite in place. It is never made here.
//  4. the directory <agent>.json.lock of foreign clients (the proper-lockfile
//     protocol). One that was not refreshed for ten seconds is abandoned. It is taken
//     for every operation, whoever the mailbox is for: any client of the team may
//     write to any member by itself. On a full disk, where nobody can make it, it is
//     only waited for.
//
// Repair and Prune, which may take long, also write locks/<agent>.pid for people
// to see. No lock is held while anything but the mailbox is waited for.
//
// # How it changes
//
// Append overwrites the closing bracket in one write, whatever the length of the
// history, after it has checked that the file ends as an array in this format ends.
// Everything else (an empty or compact array, another program's white space) is
// parsed and rewritten once. A mark is set by changing "false" to "true " in place;
// where that is not possible, and for Prune and Clear, the file is replaced by
// rename.
//
// # Failure
//
// A failed append puts the old end back: the file is as it was and the sender gets
// the error. A writer killed inside its write leaves a torn tail. Whoever comes next
// sees it, because no complete array ends so, and repairs it: the file gets a
// second name <agent>.json.corrupt-<time>, the entries that can be read replace it,
// and the caller gets a [*CorruptError]: his operation was not done, and the
// mailbox may lack messages that the ledger has. Put them back with Reconcile,
// then try again. No content is ever overwritten that was not understood.
//
// A file that is empty or torn may also be one that another program is rewriting in this
// moment, under a lock that is not known here. It is taken for damaged only once nobody
// has written to it for half a second; until then the locks are released and the operation
// begins anew. What is replaced then keeps its second name: a late write lands there.
package inbox
