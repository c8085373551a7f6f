package adapter

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"sync"
)

// Version is a version of a CLI; the zero value is an unknown one.
type Version [3]int

var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^0-9.])(\d{1,6})\.(\d{1,6})\.(\d{1,6})`) })

// ParseVersion finds the first x.y.z in a program's output, as in "2.1.329 (Claude Code)",
// "codex-cli 0.169.0", "1.18.33".
func ParseVersion(s string) (Version, bool) {
	m := versionPattern().FindStringSubmatch(s)
	if m == nil {
		return Version{}, false
	}
	var v Version
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // the pattern has only digits
	}
	return v, v != Version{}
}

// Known reports whether the version is known.
func (v Version) Known() bool { return v != Version{} }

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool {
	for i := range v {
		if c := cmp.Compare(v[i], w[i]); c != 0 {
			return c < 0
		}
	}
	return false
}

// String returns x.y.z, or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// atLeast reports whether v is known and not older than w: a feature is used only on versions
// where it was seen.
func (v Version) atLeast(w Version) bool { return v.Known() && !v.Less(w) }

// MarshalText returns String.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
