package tool

import (
	"strings"

	"github.com/teamctl/teamctl/internal/cgroup"
)

// containCheck reports what contains a member's processes, and why not more. It checks the cgroup
// of this process: a supervisor started by a service manager may have more.
func containCheck(s cgroup.Support) Check {
	if !s.Kill && !s.Freeze {
		return checked("containment", "by process tree and resource limits; no pause: %s", s.Why)
	}
	var has, limits []string
	for _, f := range []struct {
		on   bool
		what string
		to   *[]string
	}{
		{s.Kill, "kill", &has}, {s.Freeze, "pause", &has},
		{s.Memory, "memory", &limits}, {s.PIDs, "pids", &limits}, {s.CPU, "cpu", &limits},
	} {
		if f.on {
			*f.to = append(*f.to, f.what)
		}
	}
	text := "control groups for " + strings.Join(has, ", ")
	if len(limits) > 0 {
		text += "; limits for " + strings.Join(limits, ", ")
	} else {
		text += "; memory limits by resource limits only"
	}
	if s.Why != "" {
		text += " (" + s.Why + ")"
	}
	return checked("containment", "%s", text)
}
