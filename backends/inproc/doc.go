// Package inproc is the backend whose agents are goroutines of the supervisor.
// It is not an API for other modules.
//
// The files are those of every backend (see package backends): launch.json
// before anything starts, proc.json with the supervisor's own process, run.lock
// held for life, exit.json fsynced at the end, output.log rotated. The
// differences are:
//
//   - Agents die with the supervisor. A new supervisor can adopt nothing of them:
//     Adopt records an unknown exit and returns CodeNotFound, and the member is
//     started again from its durable state.
//   - A goroutine cannot be killed. Stop cancels its context; one that does not end
//     is leaked: Stop reports it (reason "leaked"), the generation stays alive, and
//     until it ends no other generation of the member starts (run.lock).
//   - There is no terminal: nothing can be typed, interrupted or resized. Capture
//     returns the end of the log.
//   - Commands that the agent runs must have TEAMCTL_GENERATION in their
//     environment, as its Launch.Env does: what they leave behind is found and
//     ended by it.
//
// A panic of the agent's own goroutine is a failed exit of this agent only,
// with its stack in the log. Fatal for the supervisor with all its in-process
// agents, because of the language, are: a panic in a goroutine that the agent
// has started itself, a concurrent map write, a deadlock of the runtime, memory
// exhaustion, os.Exit. Where that is not acceptable, use the backend pty or
// tmux.
package inproc
