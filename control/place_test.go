package control_test

import (
	"os"
	"path/filepath"

	"github.com/teamctl/teamctl/team"
)

// place is a directory of an example's own, with sockets on short paths.
func place() (home string, done func(), err error) {
	dir, err := os.MkdirTemp("/tmp", "tc")
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
		_ = os.RemoveAll(dir)
	}, nil
}
