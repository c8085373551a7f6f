package strays

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvCommands names a directory that scripts/test makes: the programs of the tree, and
// the test binaries whose commands tests run by the thousand, all without the race
// detector.
const EnvCommands = "TEAMCTL_TEST_COMMANDS"

// Program is the path of a teamctl made from this tree, with teamctl-shim beside it: the
// ones of scripts/test, or ones that are built into dir.
func Program(dir string) (string, error) {
	if made := os.Getenv(EnvCommands); made != "" {
		return filepath.Join(made, "teamctl"), nil
	}
	const programs = "github.com/teamctl/teamctl/cmd/"
	out, err := exec.Command("go", "build", "-o", dir+"/", programs+"teamctl", programs+"teamctl-shim").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build teamctl: %w: %s", err, out)
	}
	return filepath.Join(dir, "teamctl"), nil
}

// Self is the path of this test binary: of the one without the race detector that
// scripts/test has made, or of the one that runs. For tests that start it by the hundred.
func Self() (string, error) {
	exe, err := os.Executable()
	if made := os.Getenv(EnvCommands); err == nil && made != "" {
		if plain := filepath.Join(made, filepath.Base(exe)); exists(plain) {
			return plain, nil
		}
	}
	return exe, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
