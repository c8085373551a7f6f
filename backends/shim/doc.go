// Package shim is the process that stands between a terminal and an agent, once
// per teammate: "teamctl shim --bundle DIR --generation GEN". It knows the
// agent's real exit status whoever dies in the meantime, because it is the
// parent and nothing else.
//
// Order, and who may rely on what (the files are those of team.Bundle):
//
//  1. wait for start.lock, shared: the backend holds it exclusively until the
//     pane's output is caught and pane.json is written. The kernel frees it if
//     the backend dies.
//  2. read launch.json; another generation there means that this start was given
//     up: exit without a trace.
//  3. take run.lock and hold it for life; held by another: exit with an error.
//     start.lock is let go only after proc.json, so a second Start sees either
//     the lock or the process.
//  4. become child subreaper: what the agent's children leave behind becomes ours.
//  5. make the agent's control group, where there is one to be had, and name it in
//     group.json before anything is in it; start the agent in it, limited, in a
//     process group of its own, put it into the terminal's foreground, write
//     proc.json, send "up".
//  6. reap. On the agent's end: end what it left (SIGTERM, grace, SIGKILL until
//     no child is left), write exit.json with fsync, only then send "exited" and
//     exit with the same status, 128+n for signal n.
//
// Where the agent does not use the terminal that the shim stands in, the shim holds
// one for it (Terminal, which package pty implements; Main is handed it, so that the
// shim of a tmux pane has no part of it). It is opened in step 4, read from step 5
// on, drained between the last descendant's end and the record, and closed after it.
//
// A shim killed by SIGKILL writes nothing: whoever watches it (the backend) ends
// the survivors by generation and control group and records an unknown exit.
//
// "teamctl shim exec" is the step that limits itself and becomes the agent, where
// limits are resource limits; "teamctl shim log" writes the log of a tmux pane.
//
// # Notifications
//
// The supervisor listens on a unix datagram socket (Listen). A datagram is one
// JSON object {"agent": name, "generation": uuid, "event": event}; event is "up"
// and "exited" from the shim and may be "ready" from the agent itself, which finds
// the path in TEAMCTL_NOTIFY_SOCKET and its generation in TEAMCTL_GENERATION. A
// datagram is a hint to look at the files: it may be lost, and then the files are
// found by watching processes and, for ready.json (SayReady), the bundle.
package shim
