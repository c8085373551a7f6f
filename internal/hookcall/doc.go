// Package hookcall runs an agent's hook in the small program (cmd/teamctl-shim), and has what that
// program and the supervisor say to each other.
//
// Before and after every tool call an agent waits for a hook, for which nearly always nothing
// waits. The small program asks the supervisor, once. If nothing waits, the supervisor records what
// the hook has seen, as "teamctl hook" does, and says so, and the small program exits as that does:
// with status 0 and no output. In every other case (something waits, the supervisor is of another
// build, is starting, is stopped or is missing, its answer is anything else, the input is long) the
// supervisor has changed nothing that "teamctl hook" would not change in the same way, and the small
// program replaces itself with "teamctl hook", which gets the same arguments and the same input.
//
// A request is one frame on the supervisor's socket, after an upgrade (package control). A wait ends
// after Within, and the supervisor leaves a request alone that would be answered later: the agent
// may have called other hooks since, which have seen more.
package hookcall
