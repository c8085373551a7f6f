package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Start implements view.Beginner.
func (h *screenHome) Start(ctx context.Context) (view.Start, error) {
	env, err := h.app.tools()
	if err != nil {
		return view.Start{}, err
	}
	var out view.Start
	for _, c := range append(env.Doctor(ctx), screenCheck(env.Home)...) {
		if c.Status != tool.CheckOK {
			out.Found = append(out.Found, view.Finding{Name: c.Name, Detail: c.Detail, Hint: c.Hint, Fails: c.Status == tool.CheckFail})
		}
	}
	for _, c := range []view.Command{
		{Line: newTeamCommand(env.Dir), About: "a team, with a task list"},
		{Line: "teamctl spawn builder", About: "a worker, which runs tasks and needs no model"},
		{Line: "teamctl task add hello --run date", About: "a task for it"},
	} {
		c.Args = strings.Fields(c.Line)[1:]
		out.Commands = append(out.Commands, c)
	}
	return out, nil
}

// Begin implements view.Beginner. The commands are processes, as in a shell.
func (h *screenHome) Begin(ctx context.Context, commands []view.Command) (said string, err error) {
	exe, err := executable()
	if err != nil {
		return "", err
	}
	for _, c := range commands {
		cmd := exec.CommandContext(ctx, exe, c.Args...)
		var out, trouble bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &trouble
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", commandError(trouble.String())
		}
		if err != nil {
			return "", err
		}
		said = firstLine(out.String())
	}
	return said, nil
}

// commandError is the error that a command of teamctl has printed.
func commandError(printed string) error {
	var text []string
	hint := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "teamctl: hint: "); ok {
			hint = h
		} else if line != "" {
			text = append(text, strings.TrimPrefix(line, "teamctl: error: "))
		}
	}
	return team.Errorf(team.CodeInternal, "%s", strings.Join(text, "; ")).WithHint(hint)
}
