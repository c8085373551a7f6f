// Package tools is what the built-in agent can do by itself: read, search and change
// files, run commands, fetch pages, keep a list. Every tool works in one [Space], which
// is the agent's worktree.
//
// A tool's error is a fault of ours. What the model did wrong, a file that is not there,
// a command that failed, is a failed [Out] with a text that says how to go on.
//
// # Files
//
// A path is relative to the worktree, or absolute. Every file inside is opened through
// [os.Root] with its links resolved: no link leads out. A file outside is read after
// [Space.Gate] has let the call through, and written where a rule names its path; some are
// opened in no mode: other members' state, keys, the environments of processes.
//
// Only what the session has read, and what nobody has changed since, is written: another
// call is stale. An edit changes exactly the bytes that it names, all edits of a call or
// none, by a temporary file, fsync and a rename.
//
// # Commands
//
// A command runs through package internal/run in a session of its own, without a
// terminal, and ends with everything that it has started, however that detached itself.
//
// # What is shown
//
// A result has at most [MaxLines] lines and [MaxBytes] bytes. The rest is in a file of
// the member's bundle that the result names, and read may open.
package tools
