// Package inbox manages the mailboxes of a team: one JSON array per member, the
// interface through which messages are delivered. It is not an API for other
// modules.
//
// # The file
//
// inboxes/<agent>.json is an array of entries in the format of
// JSON.stringify(x, null, 2). An entry has from, text, summary?, timestamp,
// color?, then keys that only its writer knows, then msg_id, type and read if
// teamctl wrote it. A protocol message is JSON inside text (see [Parse]). What
// a foreign program wrote is preserved byte for byte: an entry is never decoded
// and re-encoded, only its read mark changes. A missing file is an empty
// mailbox; the first message creates it.
//
// The ledger is the authority for every message. The mailbox can be rebuilt
// from it except for the read marks, so an append is not fsynced, but a rewrite
// is.
//
// # Who may write
//
// Any process of the same user may write while it holds the locks, which are
// always taken in this order:
//
//  1. a semaphore per path in the process,
//  2. flock on locks/<agent>.guard, which excludes other teamctl processes,
//  3. flock on inboxes/.lock if that file exists: the lock of clients that lock
//     all mailboxes at once and rewrite in place. This package never creates it.
//  4. the directory <agent>.json.lock of foreign clients (the proper-lockfile
//     protocol). One that was not refreshed for ten seconds is abandoned. Every
//     operation takes it, for any recipient: any client of the team may
//     write to any member. On a full disk, where no process can create it, the
//     operation only waits until it does not exist.
//
// Repair and Prune, which may take long, also write locks/<agent>.pid for
// people to see. No lock is held while waiting for anything but the mailbox.
//
// # How it changes
//
// Append overwrites the closing bracket in one write, regardless of the length
// of the history, after checking that the file ends as an array in this format
// ends. Anything else (an empty or compact array, another program's white
// space) is parsed and rewritten once. A read mark is set by changing "false"
// to "true " in place; where that is impossible, and for Prune, the
// file is replaced by rename.
//
// # Failure
//
// A failed append restores the old end: the file is unchanged and the sender
// gets the error. A writer killed during its write leaves a torn tail. The next
// operation detects it, because no complete array ends so, and repairs it: the
// file gets a second link <agent>.json.corrupt-<time>, the readable entries
// replace it, and the caller gets a [*CorruptError]: the operation was not
// performed, and the mailbox may be missing messages that the ledger has.
// Restore them with Reconcile, then try again. Content that was not understood
// is never overwritten.
//
// A file that is empty or torn may also be one that another program is
// rewriting at this moment, under a lock unknown to this package. It counts as
// damaged only if it has not been written to for half a second; until then the
// operation releases its locks and starts again. The replaced file keeps its
// second link, so that a late write is preserved there.
package inbox
