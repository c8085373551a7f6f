// Package shim is the process between a terminal and an agent, one per
// teammate: "teamctl shim --bundle DIR --generation GEN". It learns the agent's
// real exit status whichever other process dies, because it is the agent's
// parent and does nothing else. It is not an API for other modules.
//
// The steps, and what others may rely on (the files are those of team.Bundle):
//
//  1. wait for start.lock, shared: the backend holds it exclusively until the
//     pane's output is captured and pane.json is written. The kernel releases it
//     if the backend dies.
//  2. read launch.json; another generation in it means that this start was
//     abandoned: exit without a trace.
//  3. take run.lock and hold it for life; if another process holds it, exit with
//     an error. start.lock is released only after proc.json is written, so a
//     second Start sees either the lock or the process.
//  4. become child subreaper, to inherit the orphans of the agent's children.
//  5. create the agent's control group, if possible, and name it in group.json
//     before anything is in it; start the agent in it, limited, in a process
//     group of its own, move it to the terminal's foreground, write proc.json,
//     send "up".
//  6. reap. When the agent ends: end what it left (SIGTERM, grace, SIGKILL until
//     no child is left), write exit.json with fsync, only then send "exited". In
//     a pane of tmux, wait until tmux has read the output. Exit with the same
//     status, 128+n for signal n.
//
// If the agent does not use the terminal in which the shim runs, the shim holds
// one for it (Terminal, implemented by package pty; Main gets it as an
// argument, so that the shim of a tmux pane does not link it). It is opened in
// step 4, read from step 5 on, drained between the last descendant's end and
// the record, and closed after the record.
//
// A shim killed by SIGKILL writes nothing: the backend that watches it ends the
// survivors by generation and control group and records an unknown exit.
//
// "teamctl shim exec" is the step that limits itself and becomes the agent if
// limits are resource limits; "teamctl shim log" writes the log of a tmux pane.
package shim
