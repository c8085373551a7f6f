// Package pty is the backend that needs no terminal program: the shim of every
// agent (package shim, "teamctl shim") owns a pseudoterminal. The shim leads a
// session of its own with the slave as controlling terminal, the agent has its own
// process group in the foreground of it: the same as in a tmux pane. (Were the agent
// the leader, its end would hang up on what it leaves behind, and the backends would
// differ.) The shim's own files are /dev/null and shim.log in the bundle, so the
// supervisor's death harms nothing.
//
// The shim's half is Host: it reads the terminal, writes the member's output.log
// (rotated, see shim.LogFile), keeps a model of the screen (package vt), and serves
// clients. It never waits for any of them: input that the program does not read is
// queued up to a megabyte and then refused, a client that does not keep up with a
// megabyte of output is dropped, a disk that hangs holds the agent back for a second
// and then costs log, which the log says. The supervisor's half is Backend, a
// person's is Attach.
//
// A shim killed by SIGKILL takes the master with it: the agent gets SIGHUP, what
// survives that is ended by whoever watches the shim, and the exit is unknown.
//
// # The socket
//
// Launch.Socket, 0600 in the team's runtime directory, "p" and a hash of the bundle's
// path; pane.json names it. One user's processes talk there, the peer's uid is
// checked. SIGUSR1 to the shim makes a removed socket anew. A connection carries
// frames: one byte of kind, the payload's length in four bytes, big-endian, the
// payload. Client to shim:
//
//	H  hello, first: {"version":1,"generation":GEN or "","role":ROLE,"cols":N,"rows":N}
//	   attach types and sets the size, view only looks, call asks one thing
//	I  input, as typed
//	W  size: columns and rows, two bytes each
//	T  type {"text":TEXT,"enter":BOOL}     (call: answered by R)
//	C  capture {"scrollback":N}            (call: answered by R)
//	S  size {"cols":N,"rows":N}            (call: answered by R)
//	D  detach
//
// Shim to client:
//
//	H  hello: version, generation, agent, cols, rows
//	O  output: first a redraw of the screen with its history, then what the program
//	   writes
//	N  notice for the person: some input was dropped
//	R  reply {"text":TEXT} or {"error":{"code":..,"message":..}}, last; a hello that is
//	   refused gets one too
//	X  exit, last: exit.json, which is on disk by then
//
// The size is that of the client that typed, resized or attached last. A question
// of the program to its terminal (cursor position, colours, ...) goes to that client
// only, so that one answer comes; without one the model answers.
package pty
