package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/team"
)

// How many teammates share a window of the private server before the next
// window is opened: next to the lead, and in a window of their own.
const (
	besideLead = 6
	perWindow  = 9
)

const putFormat = "#{pid} #{session_id} #{window_id} #{pane_id} #{pane_pid} #{session_name}"

// colours maps team.Colors to tmux's colours.
var colours = map[string]string{
	"blue": "blue", "green": "green", "yellow": "yellow", "purple": "colour141",
	"orange": "colour208", "pink": "colour205", "cyan": "cyan", "red": "red",
}

// placed is the location of a launch: the pane and the shim's pid.
type placed struct {
	server *server
	pane   team.Pane
	pid    int
}

// put creates the pane of a launch, with the shim waiting in it, captures its
// output and returns its location. After an error nothing of it is left to
// remove.
func (b *Backend) put(ctx context.Context, l backends.Launch) (placed, error) {
	if private(l) && l.Place.Layout != team.PaneWindow {
		return b.queue.put(ctx, b, l)
	}
	b.place.Lock()
	defer b.place.Unlock()
	s, out, err := b.choose(ctx, l)
	if err != nil {
		return placed{}, err
	}
	return b.completePane(ctx, s, out, l)
}

// completePane completes one pane for which tmux printed out.
func (b *Backend) completePane(ctx context.Context, s *server, out string, l backends.Launch) (placed, error) {
	at, err := s.made(out, l)
	if err != nil {
		return placed{}, err
	}
	if err = s.batch(ctx, b.paneCommands(at.pane.PaneID, l)...); err == nil {
		err = s.relayout(ctx, at.pane.WindowID)
	}
	if err != nil {
		s.drop(ctx, at.pane.PaneID)
		return placed{}, err
	}
	return at, nil
}

// drop removes a pane that is not recorded yet.
func (s *server) drop(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
	defer cancel()
	_ = s.batch(ctx, []string{"kill-pane", "-t", id})
}

// made parses what tmux printed for putFormat.
func (s *server) made(out string, l backends.Launch) (placed, error) {
	f := strings.SplitN(out, " ", 6)
	if len(f) != 6 {
		return placed{}, fmt.Errorf("tmux printed %q for a new pane", out)
	}
	pid, err := strconv.Atoi(f[4])
	if err != nil {
		return placed{}, fmt.Errorf("tmux printed %q for a new pane: %w", out, err)
	}
	if f[0] != strconv.Itoa(s.id.PID) {
		return placed{}, errServerGone
	}
	return placed{server: s, pid: pid, pane: team.Pane{
		Generation: l.Generation, Backend: Name, Socket: s.socket,
		ServerPID: s.id.PID, ServerStart: s.id.StartTicks,
		SessionID: f[1], WindowID: f[2], PaneID: f[3], Session: f[5], Private: s.private,
	}}, nil
}

// private reports whether a launch is for the team's own server.
func private(l backends.Launch) bool {
	return l.Place.TMUX == "" || l.Place.Layout == team.PaneSession
}

// choose selects the place and starts the shim in it; it returns what tmux
// printed for putFormat.
func (b *Backend) choose(ctx context.Context, l backends.Launch) (*server, string, error) {
	argv := b.starter.Command(l)
	private := private(l)
	var s *server
	var window, session string
	var err error
	if !private {
		s, window, session, err = b.person(ctx, l.Place)
		if err != nil {
			if l.Place.Layout != team.PaneAuto {
				return nil, "", err
			}
			b.log.Info("using the team's own tmux server", "agent", l.Agent, "err", err)
			private = true
		}
	}
	if private {
		if s, err = b.ensurePrivate(ctx); err != nil {
			return nil, "", err
		}
		session = s.sessionID()
	}
	if out, ok := b.reuse(ctx, s, l, argv); ok {
		return s, out, nil
	}
	var out string
	switch {
	case l.Place.Layout == team.PaneWindow:
		out, err = s.newWindow(ctx, session, l.Agent, argv)
	case private:
		out, err = s.intoGrid(ctx, session, l.Agent, argv)
	default:
		out, err = s.beside(ctx, window, session, l, argv)
	}
	return s, out, err
}

// reuse starts argv in the member's dead pane of an earlier generation.
func (b *Backend) reuse(ctx context.Context, s *server, l backends.Launch, argv []string) (string, bool) {
	old, err := bundle.ReadPane(l.Bundle, "")
	if err != nil || old.Socket != s.socket || old.ServerPID != s.id.PID || old.ServerStart != s.id.StartTicks {
		return "", false
	}
	p, ok, err := s.find(ctx, old.PaneID)
	if err != nil || !ok || p.agent != l.Agent || p.team != l.Team {
		return "", false
	}
	// -k: the old shim is dead (run.lock is free), but tmux may not have
	// noticed.
	cmd := append([]string{"respawn-pane", "-k", "-e", holder.EnvThreads, "-t", p.id, "--"}, argv...)
	if err := s.batch(ctx, cmd, []string{"clear-history", "-t", p.id}); err != nil {
		b.log.Warn("restart in the old pane", "agent", l.Agent, "pane", p.id, "err", err)
		return "", false
	}
	out, err := s.run(ctx, "display-message", "-p", "-t", p.id, putFormat)
	return out, err == nil
}

func (s *server) sessionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

func (s *server) newWindow(ctx context.Context, session, name string, argv []string) (string, error) {
	out, err := s.run(ctx, newWindow(session, name, argv)...)
	if f := strings.Fields(out); err == nil && len(f) > 3 && s.size != nil {
		if err = s.batch(ctx, s.fit(f[2])...); err != nil {
			s.drop(ctx, f[3])
		}
	}
	return out, err
}

func newWindow(session, name string, argv []string) []string {
	args := []string{"new-window", "-d", "-e", holder.EnvThreads, "-P", "-F", putFormat, "-t", session + ":", "-n", literal(name, false), "--"}
	return append(args, argv...)
}

func (s *server) split(ctx context.Context, target string, beside bool, argv []string) (string, error) {
	return s.run(ctx, splitWindow(target, beside, argv)...)
}

func splitWindow(target string, beside bool, argv []string) []string {
	dir := "-v"
	if beside {
		dir = "-h"
	}
	args := []string{"split-window", "-d", dir, "-e", holder.EnvThreads, "-P", "-F", putFormat, "-t", target, "--"}
	return append(args, argv...)
}

// intoGrid uses the first window of the team with room, or opens one.
func (s *server) intoGrid(ctx context.Context, session, name string, argv []string) (string, error) {
	ps, err := s.panes(ctx, "-s", "-t", session)
	if err != nil {
		return "", err
	}
	for _, win := range windows(ps) {
		if !room(win, 0) {
			continue
		}
		if out, err := s.splitLast(ctx, win, win[0].role == "lead", argv); err == nil {
			return out, nil
		}
	}
	out, err := s.newWindow(ctx, session, "team", argv)
	if err != nil {
		return "", err
	}
	if f := strings.Fields(out); len(f) > 3 {
		if err = s.batch(ctx, []string{"set-option", "-w", "-t", f[2], "@teamctl_grid", "1"}); err != nil {
			s.drop(ctx, f[3])
		}
	}
	return out, err
}

// windows groups a list of panes by window.
func windows(ps []pane) (all [][]pane) {
	for i := 0; i < len(ps); {
		j := i
		for j < len(ps) && ps[j].window == ps[i].window {
			j++
		}
		all = append(all, ps[i:j])
		i = j
	}
	return all
}

// room reports whether a window of the team has room for one more pane when it
// contains added more panes than listed.
func room(win []pane, added int) bool {
	limit, main := perWindow, win[0].role == "lead"
	if main {
		limit = besideLead + 1
	}
	n := len(win) + added
	if !win[0].grid || n >= limit {
		return false
	}
	_, ok := grid(n+1, win[0].winW, win[0].winH, main)
	return ok
}

// splitLast appends a pane to a window; it tries the last pane first so that
// the others keep their order.
func (s *server) splitLast(ctx context.Context, win []pane, main bool, argv []string) (string, error) {
	last := win[len(win)-1]
	out, err := s.split(ctx, last.id, (main && len(win) == 1) || last.w > 2*last.h, argv)
	var ref *refused
	if !errors.As(err, &ref) {
		return out, err
	}
	big := last // it has no space
	for _, p := range win {
		if p.w*p.h > big.w*big.h && p.role != "lead" {
			big = p
		}
	}
	return s.split(ctx, big.id, big.w > 2*big.h, argv)
}

// beside puts a teammate to the right of the user's pane. If the window is
// zoomed or too small, the teammate gets a window of its own.
func (s *server) beside(ctx context.Context, window, session string, l backends.Launch, argv []string) (string, error) {
	ps, err := s.panes(ctx, "-t", window)
	if err != nil {
		return "", err
	}
	var mates []pane
	for _, p := range ps {
		if p.agent != "" {
			mates = append(mates, p)
		}
	}
	own := len(ps) - len(mates)
	fits := len(ps) > 0 && !ps[0].zoomed
	if fits && own == 1 {
		_, fits = grid(len(ps)+1, ps[0].winW, ps[0].winH, true)
	}
	if !fits {
		return s.newWindow(ctx, session, l.Agent, argv)
	}
	if len(mates) == 0 {
		if err := s.setOptions(ctx, window); err != nil {
			return "", err
		}
	}
	var out string
	if len(mates) == 0 {
		out, err = s.split(ctx, l.Place.TMUXPane, true, argv)
	} else {
		out, err = s.splitLast(ctx, mates, false, argv)
	}
	var ref *refused
	if errors.As(err, &ref) { // no space
		if len(mates) == 0 {
			_ = s.restoreOptions(ctx, window)
		}
		return s.newWindow(ctx, session, l.Agent, argv)
	}
	return out, err
}

// paneCommands returns the commands that mark a pane as the teammate's and
// capture its output.
func (b *Backend) paneCommands(id string, l backends.Launch) [][]string {
	return append(decorate(id, l), b.pipe(id, l))
}

// decorate marks the pane as the teammate's.
func decorate(id string, l backends.Launch) [][]string {
	title := title(l)
	colour := colours[l.Color]
	if colour == "" {
		colour = "default"
	}
	set := func(opt, val string) []string { return []string{"set-option", "-p", "-t", id, opt, val} }
	return [][]string{
		set("remain-on-exit", "on"),
		set("@teamctl_team", l.Team), set("@teamctl_agent", l.Agent),
		set("@teamctl_title", title), set("@teamctl_color", colour),
		{"select-pane", "-t", id, "-T", literal(title, false)},
	}
}

// title returns the text for the pane's border: printable, and without '#',
// which starts a style there.
func title(l backends.Launch) string {
	t := l.Title
	if t == "" {
		t = l.Agent
	}
	t = strings.Map(func(r rune) rune {
		if r == '#' || !strconv.IsPrint(r) {
			return -1
		}
		return r
	}, t)
	if r := []rune(t); len(r) > 80 {
		t = string(r[:80])
	}
	return t
}

// pipe returns the command that writes the pane's output to the log from now
// on, through a process that limits its size. tmux runs the command with sh.
func (b *Backend) pipe(id string, l backends.Launch) []string {
	cmd := "export " + holder.EnvThreads + "; exec " + team.ShellLine(holder.Command(b.opt.ShimArgv, l, bundle.StepLog))
	return []string{"pipe-pane", "-O", "-t", id, literal(cmd, true)}
}
