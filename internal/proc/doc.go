// Package proc identifies processes uniquely and acts only on the intended one:
// a pid is reused, {boot id, pid, start time} is not. It watches processes that
// are not its children without a thread and without polling (pidfd in the
// runtime's poller on Linux, kqueue on macOS), and ends whole process trees,
// verified.
//
// A process belongs to a generation if it descends from the generation's
// processes, or has TEAMCTL_GENERATION=<generation> in the environment with
// which it was executed, or is in the generation's control group (Group): the
// second finds processes that called setsid and were re-parented, the third
// those that cleared their environment. A process with TEAMCTL_DETACHED=1 in
// its environment (EnvDetached), and everything below it, belongs to no tree: a
// supervisor started by an agent's command, and the tmux server of the team,
// must outlive that agent.
//
// A zombie counts as dead: it only holds a pid.
package proc
