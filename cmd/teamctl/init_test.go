package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// agentInit matches the runtime's trace of the init of a package that only the built-in agent
// needs.
const agentInit = `(?m)^init (?:github\.com/teamctl/teamctl/agent|golang\.org/x/(?:net|text))\S* @.* clock, (\d+) bytes, (\d+) allocs$`

// TestAgentInit limits what the init of the built-in agent and its libraries allocates in every
// command and every shim. Unlike the 0.6 ms that scripts/bench startup measures, this does not
// depend on the speed of the machine.
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
		b, _ := strconv.Atoi(m[1]) // the expression matches digits only
		n, _ := strconv.Atoi(m[2])
		bytes, allocs = bytes+b, allocs+n
	}
	if len(all) < 5 || bytes > mostBytes || allocs > mostAllocs {
		t.Errorf("%d packages allocate %d bytes in %d pieces at the start, at most %d in %d", len(all), bytes, allocs, mostBytes, mostAllocs)
	}
}
