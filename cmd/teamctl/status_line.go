package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// statusLine has the options of status as one line.
type statusLine struct {
	format            string
	all, follow, tmux bool
}

var statusFormats = []string{"plain", "tmux", "json"}

func (l statusLine) asked(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("format") || l.all || l.follow || l.tmux
}

func (a *app) statusLine(cmd *cobra.Command, l statusLine) error {
	switch {
	case l.format != "" && !slices.Contains(statusFormats, l.format):
		return usage(cmd, "--format is plain, tmux or json, not %q", l.format)
	case l.tmux && !l.follow:
		return usage(cmd, "--tmux goes with --follow")
	case l.tmux && l.format != "":
		return usage(cmd, "--tmux and --format do not go together")
	case l.tmux && os.Getenv("TMUX") == "":
		return team.Errorf(team.CodeInvalid, "--tmux needs tmux: this terminal is not in one").WithReason(team.ReasonNotInTmux)
	case l.format == "" && a.out.json:
		l.format = "json"
	}
	ctx := cmd.Context()
	put := func(list []view.Glance) error { a.putGlances(l, list); return a.out.failure() }
	if l.tmux {
		put = func(list []view.Glance) error { return setTmuxOption(ctx, view.ForTmux(view.Glances(list))) }
		done, err := clearTmuxOption(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	if !l.follow {
		list, err := a.glances(ctx, l.all, nil)
		if err != nil {
			return err
		}
		return put(list)
	}
	err := a.followGlances(ctx, l.all, nil, distinct(put))
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// putGlances writes one line.
func (a *app) putGlances(l statusLine, list []view.Glance) {
	switch {
	case l.format == "json" && l.all:
		a.out.encode(map[string]any{"teams": list}, "")
	case l.format == "json":
		for _, g := range list {
			a.out.encode(g, "")
		}
	case len(list) == 0: // an empty bar
	case l.format == "tmux":
		a.out.line("%s", view.ForTmux(view.Glances(list)))
	default:
		a.out.line("%s", view.Glances(list))
	}
}

// distinct calls put only with values that differ from the previous one.
func distinct(put func([]view.Glance) error) func([]view.Glance) error {
	var last []view.Glance
	shown := false
	return func(list []view.Glance) error {
		if shown && slices.Equal(list, last) {
			return nil
		}
		shown, last = true, list
		return put(list)
	}
}

// glances reads the current team, if there is one, or all teams. silent returns since when the
// supervisor of a team has not answered, zero if it does; if it is nil, all supervisors are asked
// together. It starts no supervisor.
func (a *app) glances(ctx context.Context, all bool, silent func(key string) time.Time) ([]view.Glance, error) {
	env, err := a.tools()
	if err != nil {
		return nil, err
	}
	keys, err := env.Keys()
	if err != nil {
		return nil, err
	}
	if !all && (len(keys) > 0 || a.team != "") {
		key, err := a.key(ctx, env)
		if err != nil {
			return nil, err
		}
		keys = []string{key}
	}
	if all { // a team does not go because its ledger cannot be found
		keys = append(keys, env.LostTeams()...)
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	list := make([]view.Glance, len(keys))
	rest := make([]func() (view.Glance, error), len(keys))
	for i, key := range keys {
		rest[i] = glance(ctx, env, key, silent)
	}
	for i, key := range keys {
		if list[i], err = rest[i](); err != nil && !all {
			return nil, err
		}
		if err != nil { // the others are shown anyway
			list[i] = view.Glance{Team: key, Unread: err.Error()}
		}
	}
	return list, nil
}

// unasked is the silence of supervisors that are not asked.
func unasked(string) time.Time { return time.Time{} }

// glance opens a team and asks its supervisor, unless silent is set. rest reads the team with the
// answer, and closes it.
func glance(ctx context.Context, env *tool.Env, key string, silent func(key string) time.Time) (rest func() (view.Glance, error)) {
	t, err := env.Open(ctx, key)
	if err != nil {
		return func() (view.Glance, error) { return view.Glance{}, err }
	}
	since := func() (time.Time, error) { return silent(key), nil }
	if silent == nil {
		since = t.Ask(ctx)
	}
	return func() (g view.Glance, err error) {
		at, err := since()
		if err == nil {
			g, err = look.Glance(ctx, t, at)
		}
		return g, errors.Join(err, t.Close())
	}
}

// followGlances calls put now and after every change until it fails or ctx ends. looks is as in
// view.Interest.
func (a *app) followGlances(ctx context.Context, all bool, looks <-chan bool, put func([]view.Glance) error) (err error) {
	if !all {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		err := a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
			return look.Follow(ctx, t, func() view.Interest { return view.Interest{Tasks: boardTasks, Looks: looks} }, func(s view.Snapshot) {
				if err := put([]view.Glance{view.GlanceOf(s)}); err != nil {
					cancel(err)
				}
			})
		})
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	teams, err := a.followTeams(ctx, looks)
	if err != nil {
		return err
	}
	defer teams.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-teams.Changes():
		}
		list, err := a.glances(ctx, true, teams.Silence)
		if err != nil {
			return err
		}
		if err := put(list); err != nil {
			return err
		}
		pause := time.NewTimer(relookPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// followTeams follows all teams. looks is as in view.Interest.
func (a *app) followTeams(ctx context.Context, looks <-chan bool) (*look.Teams, error) {
	env, err := a.tools()
	if err != nil {
		return nil, err
	}
	return look.FollowTeams(ctx, env, looks)
}

// tmuxOption is the user option of tmux that has the line, and tmuxOptionBy the process that has
// set it.
const (
	tmuxOption   = "@teamctl"
	tmuxOptionBy = "@teamctl_by"
)

func setTmuxOption(ctx context.Context, line string) error {
	by := strconv.Itoa(os.Getpid())
	if err := exec.CommandContext(ctx, "tmux", "set-option", "-g", tmuxOptionBy, by, ";", "set-option", "-g", tmuxOption, line).Run(); err != nil {
		return team.Errorf(team.CodeUnavailable, "set %s of tmux: %w", tmuxOption, err)
	}
	return nil
}

// clearTmuxOption starts a process that removes the line when this one has ended, however it
// ends: it reads a pipe that has no other writer. It leaves the line of another process alone.
// The function that is returned has it do so now, and waits for it.
func clearTmuxOption(ctx context.Context) (now func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "make a pipe: %w", err)
	}
	script := fmt.Sprintf(`cat >/dev/null; tmux if-shell -F '#{==:#{%[1]s},%[2]d}' 'set-option -gu %[1]s ; set-option -gu %[3]s'`, tmuxOptionBy, os.Getpid(), tmuxOption)
	c := exec.CommandContext(context.WithoutCancel(ctx), "sh", "-c", script)
	c.Stdin, c.SysProcAttr = r, &syscall.SysProcAttr{Setsid: true} // a key that ends this process does not end it
	err = c.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return nil, team.Errorf(team.CodeUnavailable, "start the process that removes %s: %w", tmuxOption, err)
	}
	return func() {
		_ = w.Close()
		_ = c.Wait() // the server may have ended
	}, nil
}
