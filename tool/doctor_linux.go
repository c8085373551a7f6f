package tool

import (
	"os"
	"strconv"
	"strings"
)

// watchChecks looks at inotify's limits: every supervisor and every waiting
// command has one instance.
func watchChecks() []Check {
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
