package control_test

import (
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// place is a directory of an example's own, with sockets on short paths.
func place() (home string, done func(), err error) {
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		return "", nil, err
	}
	before, was := os.LookupEnv(team.EnvRuntime)
	if err := os.Setenv(team.EnvRuntime, filepath.Join(dir, "r")); err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "home"), func() {
		if was {
			_ = os.Setenv(team.EnvRuntime, before)
		} else {
			_ = os.Unsetenv(team.EnvRuntime)
		}
		// A supervisor leaves a moment after its last answer.
		if err := errors.Join(strays.Gone(strays.Below(dir)), os.RemoveAll(dir)); err != nil {
			log.Print(err)
		}
	}, nil
}
