// Package proc names processes for good and acts only on the one it means: a
// pid is reused, {boot id, pid, start time} is not. It watches processes that
// are no children of ours without a thread and without polling (pidfd in the
// runtime's poller on Linux, kqueue on macOS), and ends whole trees, verified.
//
// A process belongs to a generation when it descends from the generation's
// processes, or carries TEAMCTL_GENERATION=<generation> in the environment it was
// executed with, or is in the generation's control group (Group): the second finds
// what called setsid and was re-parented, the third what cleared its environment. A
// process whose environment has TEAMCTL_DETACHED=1 (EnvDetached) belongs to
// nobody's tree, nor does anything below it: a supervisor that an agent's command
// brought up, and the tmux server of the team, must outlive that agent.
//
// A zombie counts as dead: it holds a pid and nothing else.
package proc
