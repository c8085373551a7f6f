package control

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/teamctl/teamctl/internal/atomicfile"
	"github.com/teamctl/teamctl/internal/gitenv"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// A supervisor has the environment that it is started with, and the agents that it starts
// build on it: programs are found there, and keys, proxies and the person's git identity.
// So it has to be the person's, whoever starts it. A start by a person's command records
// the command's environment; every other start uses what was recorded.
//
// It lies in the team's directory, beside the launch records of the members, which hold the
// same variables, and not in the ledger, which is copied and read by more programs.

// Origin describes how a process's environment relates to the person's.
type Origin int

const (
	// FromPerson is a command of the person's: the environment is the person's.
	FromPerson Origin = iota
	// FromProgram is a process that a program of the person's has started, which may have
	// kept variables from it: an MCP client, a terminal multiplexer. Its environment counts
	// while there is no better one.
	FromProgram
	// FromMember is a process of a member: its environment is never handed on.
	FromMember
)

// OriginOf is the origin as far as the environment itself shows it.
func OriginOf(environ []string) Origin {
	o := FromPerson
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case value == "":
		case name == team.EnvGen:
			return FromMember
		case name == team.EnvAgentID, name == team.EnvToken, name == team.EnvDetached:
			o = FromProgram
		}
	}
	return o
}

// personEnv returns the environment for a supervisor that this process starts, and whether to
// record it. CodeUnavailable, reason no_environment: only a person can start it.
func personEnv(l team.Layout, from Origin, own []string) (env []string, record bool, err error) {
	own = withoutOurs(own)
	if from == FromPerson {
		return own, true, nil
	}
	env, err = Recorded(l)
	switch {
	case err == nil:
		return env, false, nil
	case from == FromMember:
		return nil, false, team.Errorf(team.CodeUnavailable, "no supervisor of team %q is up, and a member cannot start the first one: it would have the member's environment", l.Key).
			WithReason(team.ReasonNoEnviron).WithHint("teamctl ps, in a shell of your own, starts it")
	}
	return own, true, nil
}

// Recorded is the person's environment as it was recorded, without what is teamctl's.
func Recorded(l team.Layout) ([]string, error) {
	data, err := regular.ReadFile(l.SupervisorEnv())
	if err != nil {
		return nil, err
	}
	if !bytes.HasSuffix(data, []byte{0}) { // not written by us, or not all of it
		return nil, fs.ErrNotExist
	}
	return withoutOurs(strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")), nil
}

// record keeps the person's environment for later starts.
func record(l team.Layout, env []string) error {
	data := []byte(strings.Join(env, "\x00") + "\x00")
	if old, err := regular.ReadFile(l.SupervisorEnv()); err == nil && bytes.Equal(old, data) {
		return os.Chmod(l.SupervisorEnv(), 0o600)
	}
	return atomicfile.Write(l.SupervisorEnv(), data, 0o600, true)
}

// Complete gives a supervisor that was not started by a command, but by a service manager,
// what was recorded of the person's environment and it does not have itself.
func Complete(l team.Layout) error {
	env, err := Recorded(l)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "read the person's environment: %w", err)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, has := os.LookupEnv(name); has || name == "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return team.Errorf(team.CodeUnavailable, "set %s: %w", name, err)
		}
	}
	return nil
}

// withoutOurs is an environment without what belongs to one process alone: who it is, where
// its terminal is, and which command of git has called it, as a hook.
func withoutOurs(env []string) []string {
	out := make([]string, 0, len(env))
	for _, kv := range gitenv.Without(env) {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "TMUX", "TMUX_PANE", team.EnvTeam, team.EnvAgentID, team.EnvAgentName, team.EnvTaskID, team.EnvAttempt,
			team.EnvGen, team.EnvCommand, team.EnvNotify, team.EnvColor, team.EnvParent, team.EnvHome, team.EnvDetached, team.EnvToken, EnvReady:
			continue
		}
		out = append(out, kv)
	}
	return out
}

// superviseEnv is the environment of a supervisor that is started with env.
func superviseEnv(env []string, l team.Layout) []string {
	return append(env[:len(env):len(env)], team.EnvHome+"="+l.Home.Dir, team.EnvDetached+"=1", EnvReady+"=1")
}
