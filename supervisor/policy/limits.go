package policy

import "github.com/teamctl/teamctl/backends"

// LimitWarnings returns warnings for requested limits that are not enforced as intended.
func LimitWarnings(p backends.Proc) (out []string) {
	for _, l := range []struct {
		by              backends.Keeper
		rlimit, nothing string
	}{
		{p.Limits.Memory, "the memory limit holds for each process by itself: there is no memory controller", "nothing keeps the memory limit here"},
		{p.Limits.PIDs, "the limit of processes counts other processes of yours that start later: there is no pids controller", "nothing keeps the limit of processes here"},
		{p.Limits.CPU, "", "nothing keeps the cpu limit here"},
	} {
		switch l.by {
		case backends.KeptByRlimit:
			out = append(out, l.rlimit)
		case backends.KeptByNothing:
			out = append(out, l.nothing+" (teamctl doctor says why)")
		case backends.NotLimited, backends.KeptByCgroup:
		}
	}
	return out
}
