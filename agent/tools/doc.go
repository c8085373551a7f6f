// Package tools has the built-in agent's own tools: read, search and change files, run commands,
// fetch pages, keep a list. Every tool works in one [Space], which is the agent's worktree.
//
// A tool's error is a fault of the program. A mistake of the model, such as a missing file or a
// failed command, is a failed [Out] with a text that says how to continue.
//
// # Files
//
// A path is relative to the worktree, or absolute. Every file inside is opened through [os.Root]
// with its links resolved: no link leads out. A file outside is read after [Space.Gate] has
// permitted the call, and written if a rule names its path; some are opened in no mode: other
// members' state, keys, the environments of processes.
//
// Only files that the session has read, and that are unchanged since, are written; any other call
// is stale. An edit changes exactly the bytes that it names, all edits of a call or none, by a
// temporary file, fsync and a rename.
//
// # Commands
//
// A command runs through package internal/run in a session of its own, without a terminal, and is
// ended with everything that it has started, including detached processes.
//
// # Results
//
// A result has at most [MaxLines] lines and [MaxBytes] bytes. The rest is in a file of the
// member's bundle that the result names, and that the read tool may open.
package tools
