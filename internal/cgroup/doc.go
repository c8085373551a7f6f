// Package cgroup keeps an agent and everything below it in a control group of the
// unified hierarchy (cgroup v2): nothing leaves it by forking, by a new session or
// by clearing its environment, so all of it can be found, killed at once, paused,
// and held to limits.
//
// # Where groups are made
//
// Below the cgroup that this process is in, as teamctl/<team>/<agent>-<generation>:
// what surrounds us (a login session, a service, a container) keeps its hold on the
// agents too. A process that is itself in such a group (an agent that starts a
// teammate) makes no group in it but beside it.
//
// Such groups have no controllers, as a cgroup with processes cannot hand them
// down: killing and freezing work, limits do not. Where the parent of our cgroup
// is delegated to us (systemd's Delegate= with DelegateSubgroup=, or a tree that
// somebody gave to this user) and holds no process, groups are made there and the
// controllers memory, pids and cpu are handed down to them. No process that is not
// ours is ever moved, and nothing is written outside of what is delegated.
//
// Elsewhere (no cgroup v2, mounted read-only, another system) every function says
// that it is not supported, with the reason.
package cgroup
