package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// initsOf reads the runtime's trace of the init of packages.
const initsOf = `(?m)^init (\S+) @.* clock, (\d+) bytes, (\d+) allocs$`

// TestInits limits what the init of packages allocates in every command and every shim. Unlike the
// times that scripts/bench startup measures, this does not depend on the speed of the machine.
func TestInits(t *testing.T) {
	t.Parallel()
	groups := []struct {
		what         string
		of           *regexp.Regexp
		bytes, alloc int // at most
		least        int // packages
	}{
		{"the built-in agent and the libraries that only it needs", regexp.MustCompile(`^(?:github\.com/teamctl/teamctl/agent|golang\.org/x/(?:net|text))`), 160_000, 90, 5},
		{"all other packages of teamctl", regexp.MustCompile(`^(?:main|github\.com/teamctl/teamctl/[^a].*|github\.com/teamctl/teamctl/a[^g].*)$`), 70_000, 460, 5},
		{"all packages, those of the tests included", regexp.MustCompile(`.`), 900_000, 4_400, 100},
	}
	cmd := exec.Command("teamctl", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	all := regexp.MustCompile(initsOf).FindAllStringSubmatch(out.String(), -1)
	for _, g := range groups {
		var packages, bytes, allocs int
		for _, m := range all {
			if g.of.MatchString(m[1]) {
				b, _ := strconv.Atoi(m[2]) // the expression matches digits only
				n, _ := strconv.Atoi(m[3])
				packages, bytes, allocs = packages+1, bytes+b, allocs+n
			}
		}
		if t.Logf("%s: %d packages allocate %d bytes in %d pieces", g.what, packages, bytes, allocs); packages < g.least || bytes > g.bytes || allocs > g.alloc {
			t.Errorf("%s: %d packages allocate %d bytes in %d pieces at the start, at most %d in %d", g.what, packages, bytes, allocs, g.bytes, g.alloc)
		}
	}
}
