package hookcall

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/team"
)

// maxAsked bounds the input that the supervisor is asked with, MaxInput that of a hook.
const (
	maxAsked = 1 << 20
	MaxInput = 64 << 20
)

// EnvDebug makes a hook explain its errors on standard error.
const EnvDebug = "TEAMCTL_HOOK_DEBUG"

// Main is "teamctl ARG..." in the small program, where args are "hook CLI EVENT". It returns the exit
// status, or does not return. same: both programs are of the same version.
func Main(teamctl string, args []string, same bool) int {
	name, key, ok := team.ParseAgentID(os.Getenv(team.EnvAgentID))
	r := Request{
		AgentID: os.Getenv(team.EnvAgentID), Generation: os.Getenv(team.EnvGen), Token: os.Getenv(team.EnvToken), Notify: os.Getenv(team.EnvNotify),
		Program: fileid.At(teamctl), At: time.Now(),
	}
	home := os.Getenv(team.EnvHome)
	if !same || len(args) != 3 || !ok || name == "" || r.Generation == "" || home == "" || os.Getenv(EnvDebug) != "" {
		return replace(teamctl, args)
	}
	r.CLI, r.Event = args[1], args[2]
	input, err := io.ReadAll(io.LimitReader(os.Stdin, maxAsked+1))
	if err == nil && len(input) <= maxAsked {
		r.Input = input
		if ask(team.Home{Dir: home}.Team(key), r) {
			return 0
		}
	}
	// Input that cannot be handed on is like unreadable input: it never makes a hook fail.
	_ = handOn(input)
	return replace(teamctl, args)
}

// replace replaces this process with teamctl.
func replace(teamctl string, args []string) int {
	err := unix.Exec(teamctl, append([]string{teamctl}, args...), os.Environ())
	_, _ = fmt.Fprintf(os.Stderr, "teamctl: error: run %s: %v\n", teamctl, err) // nobody else hears of it
	return 127
}

// handOn makes a standard input of what was read and of what follows.
func handOn(read []byte) error {
	f, err := spare()
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(f, io.LimitReader(io.MultiReader(bytes.NewReader(read), os.Stdin), MaxInput))
	if _, serr := f.Seek(0, io.SeekStart); serr != nil {
		return errors.Join(err, serr)
	}
	return errors.Join(err, asStdin(f))
}

// unnamed returns a file on disk that has lost its name.
func unnamed() (*os.File, error) {
	f, err := os.CreateTemp("", "teamctl-hook-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}
