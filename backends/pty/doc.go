// Package pty is the backend that needs no terminal program: the shim of every
// agent (package shim, "teamctl shim") owns a pseudoterminal. The package is
// not an API for other modules. The shim leads a session of its own with the
// slave as controlling terminal, and the agent has its own process group in the
// foreground of it, as in a tmux pane. (If the agent were the leader, its end
// would hang up on the processes it leaves behind, and the backends would
// differ.) The shim's own files are /dev/null and shim.log in the bundle, so
// the supervisor's death does no harm.
//
// The shim's half is Host: it reads the terminal, writes the member's
// output.log (rotated, see bundle.LogFile), maintains a model of the screen
// (package vt), and serves clients. It never waits for any of them: input that
// the program does not read is queued up to a megabyte and then refused, a
// client that falls a megabyte of output behind is disconnected, and a disk
// that hangs delays the agent for a second, after which output is missing from
// the log, which the log reports. The supervisor's half is Backend, a user's is
// Attach.
//
// When a shim is killed by SIGKILL the master is closed: the agent gets SIGHUP,
// the backend that watches the shim ends what survives that, and the exit is
// unknown.
//
// # The socket
//
// Launch.Socket, 0600 in the team's runtime directory, "p" and a hash of the
// bundle's path; pane.json names it. Only processes of one user may connect,
// and the peer's uid is checked. On SIGUSR1 the shim recreates a removed
// socket. A connection carries frames: one byte of kind, the payload's length
// in four bytes, big-endian, the payload. Client to shim:
//
//	H  hello, first: {"version":1,"generation":GEN or "","role":ROLE,"cols":N,"rows":N}
//	   attach types and sets the size, view only watches, call makes one request
//	I  input, as typed
//	W  size: columns and rows, two bytes each
//	T  type {"text":TEXT,"enter":BOOL}     (call: answered by R)
//	C  capture {"scrollback":N,"colors":BOOL}  (call: answered by R)
//	S  size {"cols":N,"rows":N}            (call: answered by R)
//	D  detach
//
// Shim to client:
//
//	H  hello: version, generation, agent, cols, rows
//	O  output: first a redraw of the screen with its history, then what the program
//	   writes
//	N  notice for the user: some input was dropped
//	R  reply {"text":TEXT} or {"error":{"code":..,"message":..}}, last; also sent
//	   for a refused hello
//	X  exit, last: exit.json, which is on disk by then
//
// The size is that of the client that last typed, resized or attached. A query
// of the program to its terminal (cursor position, colours, ...) is sent only
// to that client, so that there is one answer; without a client the model
// answers.
package pty
