// Package inproc is the backend whose agents are goroutines of the supervisor.
//
// The files are those of every backend (see package backends): launch.json before
// anything starts, proc.json with the supervisor's own process, run.lock held for
// life, exit.json fsynced at the end, output.log rotated. What is different:
//
//   - Agents die with the supervisor. Nothing of them can be adopted by the next
//     one: Adopt records an unknown exit and says CodeNotFound, and the member is
//     started again from its durable state.
//   - A goroutine cannot be killed. Stop cancels its context; one that does not end is
//     leaked: Stop says so (reason "leaked"), the generation stays alive, and
//     until it ends no other of the member starts (run.lock).
//   - There is no terminal: nothing can be typed, interrupted or resized. Capture is
//     the end of the log.
//   - Commands that the agent runs must carry TEAMCTL_GENERATION, as its Launch.Env
//     does: by it what they leave behind is found and ended.
//
// A panic of the agent's own goroutine is a failed exit of this agent alone, with
// its stack in the log. Fatal for the supervisor with all its in-process agents, by the
// rules of the language, are: a panic in a goroutine that the agent has started
// itself, a concurrent map write, a deadlock of the runtime, memory exhaustion,
// os.Exit. Where that is not acceptable, use the backend pty or tmux.
package inproc
