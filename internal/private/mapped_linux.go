package private

import (
	"os"
	"strconv"
	"strings"
)

// overflow is the user number of all users not mapped in this user namespace.
const overflow = 65534

// mapped reports whether a number identifies a user in this user namespace.
func mapped(uid int) bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, ferr := strconv.Atoi(f[0])
		n, nerr := strconv.Atoi(f[2])
		if ferr == nil && nerr == nil && first <= uid && uid < first+n {
			return true
		}
	}
	return false
}
