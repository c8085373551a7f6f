package holder

import (
	"slices"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
)

// EnvThreads belongs in the environment with which a shim is started: it saves
// the threads that the runtime would create before the shim can limit them. An
// agent's environment comes from its launch, so the variable does not reach it.
const EnvThreads = "GOMAXPROCS=1"

// Command returns the command that runs the shim of a launch, given that of
// teamctl ([teamctl shim]). With a step (bundle.StepLog) it runs that instead.
func Command(teamctl []string, l backends.Launch, step ...string) []string {
	argv := append(program(teamctl), step...)
	return append(argv, "--bundle", string(l.Bundle), "--generation", l.Generation)
}

// program returns the small program beside teamctl if there is one, else
// teamctl itself.
func program(teamctl []string) []string {
	if len(teamctl) != 2 || teamctl[1] != "shim" {
		return slices.Clone(teamctl)
	}
	if small := bundle.Small(teamctl[0]); small != nil {
		return small
	}
	return slices.Clone(teamctl)
}
