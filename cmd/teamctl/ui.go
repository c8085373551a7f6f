package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/control"
	"github.com/teamctl/teamctl/internal/tui"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// screenFlags are the options of the full screen.
type screenFlags struct {
	view, selected  string
	readOnly, ascii bool
	plain           bool
	plainSaid       bool // --plain was given
	asciiSaid       bool // --ascii was given
	pane            bool // in the team's own tmux session
}

func newUI(a *app) *cobra.Command {
	var f screenFlags
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Open the full screen of the team, to see and to answer",
		Long: `Open the full screen of the team: what waits for you, the members and their activity,
the tasks, mail, changes and cost, and the actions on them. The last line shows the
keys, ? lists them and : lists all actions. With several teams it begins with their
list, without one with the first commands, of which enter runs one after a question.
In a terminal, teamctl alone opens it too.

--plain, or TEAMCTL_PLAIN=1, is for screen readers, braille displays and slow lines:
labelled lines that are written once, and the same actions by words; help lists them.

ui.yaml in TEAMCTL_HOME changes every key and more, see docs/ui.md. Flags come before
variables, and these before the file.

It works like the other commands and runs nothing itself: q leaves it and the team
keeps running.`,
		Example: `  teamctl ui
  teamctl ui --view mail
  teamctl ui --select approval:3
  teamctl ui --team demo --select builder --read-only`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.view != "" && !slices.Contains(tui.Views(), f.view) {
				return usage(cmd, "--view is %s, not %q", strings.Join(tui.Views(), ", "), f.view)
			}
			f.plainSaid, f.asciiSaid = cmd.Flags().Changed("plain"), cmd.Flags().Changed("ascii")
			if f.plain && (f.view != "" || f.selected != "") {
				return usage(cmd, "--view and --select are of the full screen: --plain has the words show and menu")
			}
			if !a.atTerminal() {
				return team.Errorf(team.CodeInvalid, "the full screen needs a terminal").WithReason(team.ReasonNoTerminal).
					WithHint("teamctl show prints the same once, teamctl status what waits for you")
			}
			return a.screen(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.view, "view", "", "what it shows first: "+strings.Join(tui.Views(), ", "))
	flags.StringVar(&f.selected, "select", "", "initial selection: builder, task:5, approval:3")
	flags.BoolVar(&f.readOnly, "read-only", false, "show only: nothing can be changed from it")
	flags.BoolVar(&f.plain, "plain", false, "labelled lines and words, for screen readers and slow lines (default: TEAMCTL_PLAIN, then ui.yaml)")
	flags.BoolVar(&f.ascii, "ascii", false, "draw with ASCII only (default where the locale is not UTF-8)")
	a.complete(cmd, "view", words(tui.Views()...))
	return cmd
}

// startTakes is the time after which a screen is at rest.
const startTakes = time.Second

// atRest returns the memory that the start has needed. The process is open all day: from then on its
// memory matters more than the time of the collector.
func atRest() {
	debug.SetGCPercent(25)
	debug.FreeOSMemory()
}

// screen shows the full screen until the person leaves it.
func (a *app) screen(ctx context.Context, f screenFlags) error {
	runtime.GOMAXPROCS(1) // what it does is short, and each handover between threads wakes one
	defer time.AfterFunc(startTakes, atRest).Stop()
	h := &screenHome{app: a, teams: map[string]*screenTeam{}, ctx: ctx, door: tool.DoorScreen}
	defer h.close()
	env, err := a.tools()
	if err != nil {
		return err
	}
	name := ""
	keys, err := env.Keys()
	if err != nil {
		return err
	}
	if len(keys) > 0 || a.team != "" {
		name, err = a.key(ctx, env)
		switch {
		case team.ReasonOf(err) == team.ReasonTeamAmbiguous:
		case err != nil:
			return err
		}
	}
	conf, notice := screenConfig(env.Home)
	if why := f.plainBy(conf.Plain); why != "" && !f.pane {
		if notice != "" {
			a.out.line("%s", notice)
		}
		p := &tui.Plain{Home: h, Start: h, Team: name, Why: why, ReadOnly: f.readOnly, In: a.stdin, Out: a.out.screen}
		return p.Run(ctx)
	}
	u := &tui.UI{
		Home: h, Start: h, Team: name, View: f.view, Select: f.selected, ReadOnly: f.readOnly, Color: a.out.style.On, ASCII: f.drawsASCII(conf), Mouse: conf.Mouse, Alerts: conf.Alerts,
		Keys: conf.Keys, Notice: notice, Terminal: "/dev/tty", Report: filepath.Join(env.Home.Dir, "screen-panic.txt"),
	}
	if os.Getenv("TMUX") != "" {
		u.Tmux = expandInTmux
	}
	if f.pane {
		u.Leave = detachClient
	}
	if len(conf.Pager) > 0 {
		u.Pager = newPager(conf.Pager).page
	}
	err = u.Run(ctx)
	if err != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// envPlain asks for the plain screen.
const envPlain = "TEAMCTL_PLAIN"

// plainBy is what asks for the plain screen, "" for nothing: the flag before the variable, and that
// before ui.yaml.
func (f screenFlags) plainBy(inFile bool) string {
	switch v := os.Getenv(envPlain); {
	case f.plainSaid && f.plain:
		return "--plain"
	case f.plainSaid, v == "0":
		return ""
	case v != "":
		return envPlain
	case inFile:
		return tui.ConfigName
	}
	return ""
}

// drawsASCII reports whether only ASCII is drawn: the flag before ui.yaml, and that before the locale and the
// terminal. The font of the Linux console has not all signs.
func (f screenFlags) drawsASCII(conf tui.Config) bool {
	switch {
	case f.asciiSaid:
		return f.ascii
	case conf.ASCII != nil:
		return *conf.ASCII
	}
	return !unicodeLocale() || decTerminal() || os.Getenv("TERM") == "linux"
}

// screenConfig reads ui.yaml. A mistake in it keeps nobody from the screen: notice says where it is.
func screenConfig(home team.Home) (conf tui.Config, notice string) {
	conf, err := tui.ReadConfig(home.Dir)
	if err != nil {
		notice = err.Error() + ": the default keys are used"
	}
	return conf, notice
}

// unicodeLocale reports whether the terminal is said to show UTF-8. Where nothing is said
// it is taken to.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		if v == "C" || v == "POSIX" {
			return false
		}
		_, charset, ok := strings.Cut(v, ".")
		charset, _, _ = strings.Cut(strings.ToLower(charset), "@")
		return !ok || charset == "utf-8" || charset == "utf8"
	}
	return true
}

// screenHome is a screen's access to the machine. It opens every team once, and closes it when it was
// deleted, or with the screen.
type screenHome struct {
	app  *app
	ctx  context.Context
	door string // tool.DoorScreen, or the page's

	mu    sync.Mutex
	teams map[string]*screenTeam
}

func (h *screenHome) Teams(ctx context.Context, looks <-chan bool, each func([]view.Glance)) error {
	env, err := h.app.tools()
	if err == nil {
		err = os.MkdirAll(env.Home.TeamsDir(), 0o700) // to be watched: the first team may be made elsewhere
	}
	if err != nil {
		return err
	}
	list, err := h.app.glances(ctx, true, unasked)
	if err != nil {
		return err
	}
	h.closeDeleted(list)
	if each(list); ctx.Err() != nil { // one list was enough: no team is followed for it
		return ctx.Err()
	}
	return h.app.followGlances(ctx, true, looks, func(list []view.Glance) error {
		h.closeDeleted(list)
		each(list)
		return nil
	})
}

func (h *screenHome) Open(ctx context.Context, name string) (view.Team, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.teams[name]; t != nil {
		if _, err := t.team.Ledger.Team(ctx); err == nil || ctx.Err() != nil {
			return t, err
		}
		t.close() // its ledger was moved or replaced
		delete(h.teams, name)
	}
	env, err := h.app.tools()
	if err != nil {
		return nil, err
	}
	key, err := env.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	t, err := env.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	s := &screenTeam{app: h.app, team: t, env: env, key: key, door: h.door}
	if h.app.origin(t.Layout) == control.FromPerson { // the one in the lead's pane is part of the team
		s.unattend = keepAttended(h.ctx, t)
	}
	h.teams[name] = s
	return s, nil
}

// closeDeleted closes the teams that are in no list any more, which would keep their connections and
// a goroutine that tries to start their supervisor. A team that is still followed is closed by its
// follower, which opens it again when its ledger is gone.
func (h *screenHome) closeDeleted(list []view.Glance) {
	var gone []*screenTeam
	h.mu.Lock()
	for name, t := range h.teams {
		if t.followed.Load() > 0 || slices.ContainsFunc(list, func(g view.Glance) bool { return g.Team == t.key }) {
			continue
		}
		if _, err := t.team.Ledger.Team(h.ctx); err == nil || h.ctx.Err() != nil {
			continue // it was made after the list
		}
		delete(h.teams, name)
		gone = append(gone, t)
	}
	h.mu.Unlock()
	for _, t := range gone {
		t.close()
	}
}

func (h *screenHome) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.teams {
		t.close()
	}
}

// opensScreen reports whether teamctl alone opens the full screen: to a person at a
// terminal that can show it. An agent that types it gets the help.
func (a *app) opensScreen() bool {
	if !a.atTerminal() || os.Getenv(team.EnvAgentID) != "" {
		return false
	}
	if term := os.Getenv("TERM"); term != "dumb" && term != "" {
		return true
	}
	home, err := team.FindHome()
	conf := tui.Config{}
	if err == nil {
		conf, _ = screenConfig(home)
	}
	return screenFlags{}.plainBy(conf.Plain) != ""
}

var (
	_ view.Home     = (*screenHome)(nil)
	_ view.Beginner = (*screenHome)(nil)
)
