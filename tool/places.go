package tool

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/private"
	"github.com/teamctl/teamctl/team"
)

// homeFiles lists the names in a home directory, without the part after the first dot or dash:
// locks, temporary files, damaged ones that were moved aside.
var homeFiles = []string{"teams", "config", "consent", "kept", "agents", "rules", "versions", "sandbox"}

func homeDir(h team.Home) private.Dir {
	return private.Dir{Path: h.Dir, Links: true, Own: func(name string) bool {
		name = strings.TrimLeft(name, ".")
		if i := strings.IndexAny(name, ".-"); i >= 0 {
			name = name[:i]
		}
		return slices.Contains(homeFiles, name)
	}}
}

func runtimeRoot() private.Dir {
	return private.Dir{Path: team.RuntimeRoot(), Own: team.IsRuntimeName}
}

// SecurePlaces closes the home directory and the directory of the sockets to other users, if they
// exist. CodeDenied with the reason backends.ReasonNotPrivate: another user owns one of them, or
// can replace it.
func SecurePlaces(h team.Home) error {
	for _, d := range []private.Dir{homeDir(h), {Path: h.TeamsDir(), Links: true}} {
		if err := d.Secure(); err != nil {
			hint := homeHint()
			if r := (*private.Refusal)(nil); !errors.As(err, &r) {
				hint = "set " + team.EnvHome + " to a directory that you can write to"
			}
			return backends.NotPrivate("home directory", err, hint)
		}
	}
	if err := runtimeRoot().Secure(); err != nil {
		return backends.NotPrivate("runtime directory", err, backends.RuntimeHint)
	}
	return nil
}

// SecureRuntime calls backends.SecureRuntime.
func SecureRuntime(dir string) error { return backends.SecureRuntime(dir) }

// homeHint returns the hint for a home directory of another user.
func homeHint() string {
	if os.Geteuid() == 0 {
		return "run teamctl as the user of that home, without sudo, or set " + team.EnvHome + " to a directory of root"
	}
	return "set " + team.EnvHome + " to a directory of your own"
}

// placeCheck returns the doctor's check of a directory that must be private.
func placeCheck(c Check, d private.Dir, hint string) Check {
	wide, err := d.Check()
	if r := (*private.Refusal)(nil); errors.As(err, &r) && r.Mend != nil {
		hint = team.ShellLine(r.Mend)
	}
	switch {
	case err != nil:
		c.Detail = err.Error()
		return c.fail(hint)
	case wide != 0:
		c.Detail = fmt.Sprintf("%s is open to others (%04o); the next command closes it", d.Path, 0o700|wide)
		return c.warn("chmod 700 " + team.ShellQuote(d.Path))
	}
	return c
}
