// Package cgroup keeps an agent and all its descendants in a control group of
// the unified hierarchy (cgroup v2): no process leaves it by forking, by a new
// session or by clearing its environment, so all of them can be found, killed
// at once, paused, and limited.
//
// # Where groups are made
//
// Groups are made below the cgroup of this process, as
// teamctl/<team>/<agent>-<generation>: the surrounding cgroup (a login session,
// a service, a container) still applies to the agents. A process that is itself
// in such a group (an agent that starts a teammate) makes the new group next to
// it, not inside it.
//
// Such groups have no controllers, because a cgroup with processes cannot pass
// them on: killing and freezing work, limits do not. If the parent of this
// process's cgroup is delegated to the user (systemd's Delegate= with
// DelegateSubgroup=, or a tree given to this user) and contains no process,
// groups are made there and the controllers memory, pids and cpu are passed on
// to them. Foreign processes are never moved, and nothing is written outside
// the delegated tree.
//
// Elsewhere (no cgroup v2, mounted read-only, another system) every function
// returns an error that it is not supported, with the reason.
package cgroup
