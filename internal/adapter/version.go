package adapter

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"sync"
)

// Version is a version of a CLI; the zero value is one that is not known.
type Version [3]int

var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^0-9.])(\d{1,6})\.(\d{1,6})\.(\d{1,6})`) })

// ParseVersion finds the first x.y.z in what a program says of itself, as in
// "2.1.329 (Claude Code)", "codex-cli 0.169.0", "1.18.33".
func ParseVersion(s string) (Version, bool) {
	m := versionPattern().FindStringSubmatch(s)
	if m == nil {
		return Version{}, false
	}
	var v Version
	for i := range v {
		v[i], _ = strconv.Atoi(m[i+1]) // the pattern has digits only
	}
	return v, v != Version{}
}

// Known reports whether it is a version at all.
func (v Version) Known() bool { return v != Version{} }

// Less reports whether v came before w.
func (v Version) Less(w Version) bool {
	for i := range v {
		if c := cmp.Compare(v[i], w[i]); c != 0 {
			return c < 0
		}
	}
	return false
}

// String is x.y.z, or "unknown".
func (v Version) String() string {
	if !v.Known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// atLeast reports a known version that is not before w: what was never seen on a
// version is not relied on there.
func (v Version) atLeast(w Version) bool { return v.Known() && !v.Less(w) }

// MarshalText is String.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }
