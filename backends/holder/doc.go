// Package holder starts, adopts and ends what a shim holds: the part of a
// terminal backend that does not depend on the terminal. It runs in the
// supervisor and is not an API for other modules.
//
// A generation passes through these states, all of them in the bundle:
//
//	starting  start.lock is held by Starter; launch.json and, once the shim
//	          runs, pane.json exist. Start then releases the lock and waits
//	          (WaitUp) for proc.json.
//	up        proc.json exists and run.lock is held. Follow watches the shim.
//	ended     the shim is dead and exit.json exists (Conclude).
//
// A start that fails is undone: launch.json is removed first, so that a shim
// that is still starting exits by itself; then everything of the generation is
// ended. A supervisor that dies between any two steps leaves a generation that
// the next one adopts (AwaitProc) or ends.
//
// exit.json is the shim's to write. If it was killed, the exit is unknown:
// Unknown ends what survived it, by generation and control group, and Conclude
// writes the record. A bundle that cannot be read does not keep a member alive:
// EndUnread finds the holder of run.lock, the processes and the control group
// without it.
package holder
