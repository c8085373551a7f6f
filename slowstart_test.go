package teamctl_test

import (
	"os"
	"regexp"
	"testing"
)

// slowVersions are releases that may not be used: what they do in their init runs
// in every process that is started, and a shim is started for every agent.
var slowVersions = []struct{ module, version, why string }{
	{
		"github.com/mattn/go-runewidth", `v0\.0\.(2[5-9]|[3-9]\d)`,
		"its init fills a table of 2.2 MB, 18 ms in every process; v0.0.24 does not. A later one may be taken when it no longer does (scripts/bench startup)",
	},
}

// TestNoSlowStart: the start of every command and every shim stays cheap.
func TestNoSlowStart(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slowVersions {
		if v := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(s.module) + ` (` + s.version + `)\b`).FindSubmatch(mod); v != nil {
			t.Errorf("go.mod has %s %s: %s", s.module, v[1], s.why)
		}
	}
}
