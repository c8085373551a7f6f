package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// agentInit matches what the runtime says of the init of a package that only the built-in agent needs.
const agentInit = `(?m)^init (?:github\.com/teamctl/teamctl/agent|golang\.org/x/(?:net|text))\S* @.* clock, (\d+) bytes, (\d+) allocs$`

// TestAgentInit bounds what the built-in agent and its libraries do before main, in every command and
// every shim, by what they allocate there: it stands for the 0.6 ms that scripts/bench startup measures,
// and no slow machine changes it.
func TestAgentInit(t *testing.T) {
	t.Parallel()
	const mostBytes, mostAllocs = 160_000, 90
	cmd := exec.Command("teamctl", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	var bytes, allocs int
	all := regexp.MustCompile(agentInit).FindAllStringSubmatch(out.String(), -1)
	for _, m := range all {
		b, _ := strconv.Atoi(m[1]) // the expression has digits only
		n, _ := strconv.Atoi(m[2])
		bytes, allocs = bytes+b, allocs+n
	}
	if len(all) < 5 || bytes > mostBytes || allocs > mostAllocs {
		t.Errorf("%d packages allocate %d bytes in %d pieces at the start, at most %d in %d", len(all), bytes, allocs, mostBytes, mostAllocs)
	}
}
