package tool

import (
	"os"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/dirwatch"
)

// watchChecks checks inotify's limits, and whether an instance is available now: every supervisor,
// worker and waiting command needs one.
func watchChecks() []Check { return append(watchLimits(), watchNow(dirwatch.Try())) }

// watchNow describes the effect if no instance is left.
func watchNow(err error) Check {
	if err != nil {
		return checked("inotify", "no instance is left (%v): workers look for changes once a second instead of being woken", err).
			warn(dirwatch.Advice)
	}
	return checked("inotify", "changes are told by events")
}

func watchLimits() []Check {
	const dir = "/proc/sys/fs/inotify/"
	var out []Check
	for _, l := range []struct {
		file  string
		least int
	}{{"max_user_instances", 64}, {"max_user_watches", 4096}} {
		b, err := os.ReadFile(dir + l.file)
		if err != nil {
			out = append(out, checked("inotify", "%v", err).warn("teamctl learns of changes by inotify"))
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		c := checked("inotify", "%s is %s", l.file, strings.TrimSpace(string(b)))
		if err != nil || n < l.least {
			c = c.warn("sysctl fs.inotify." + l.file + "=" + strconv.Itoa(4*l.least))
		}
		out = append(out, c)
	}
	return out
}
