package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/shim"
)

// How many teammates share a window of the private server before the next window
// is opened: beside the lead, and in a window of their own.
const (
	besideLead = 6
	perWindow  = 9
)

const putFormat = "#{pid} #{session_id} #{window_id} #{pane_id} #{pane_pid} #{session_name}"

// colours of tmux for team.Colors.
var colours = map[string]string{
	"blue": "blue", "green": "green", "yellow": "yellow", "purple": "colour141",
	"orange": "colour208", "pink": "colour205", "cyan": "cyan", "red": "red",
}

// put makes the pane of a launch, with the shim waiting in it, catches its output
// and returns where it is and the shim's pid.
func (b *Backend) put(ctx context.Context, l backends.Launch) (*server, backends.Pane, int, error) {
	b.place.Lock()
	defer b.place.Unlock()
	argv := append(append([]string{}, b.opt.ShimArgv...), "--bundle", string(l.Bundle), "--generation", l.Generation)
	s, out, err := b.choose(ctx, l, argv)
	if err != nil {
		return nil, backends.Pane{}, 0, err
	}
	f := strings.SplitN(out, " ", 6)
	if len(f) != 6 {
		return nil, backends.Pane{}, 0, fmt.Errorf("tmux printed %q for a new pane", out)
	}
	pid, err := strconv.Atoi(f[4])
	if err != nil {
		return nil, backends.Pane{}, 0, fmt.Errorf("tmux printed %q for a new pane: %w", out, err)
	}
	p := backends.Pane{
		Generation: l.Generation, Backend: Name, Socket: s.socket,
		ServerPID: s.id.PID, ServerStart: s.id.StartTicks,
		SessionID: f[1], WindowID: f[2], PaneID: f[3], Session: f[5], Private: s.private,
	}
	if f[0] != strconv.Itoa(s.id.PID) {
		return s, p, pid, errServerGone
	}
	err = b.decorate(ctx, s, p.PaneID, l)
	if err == nil {
		err = b.pipe(ctx, s, p.PaneID, l)
	}
	if err == nil {
		err = s.relayout(ctx, p.WindowID)
	}
	if err != nil { // the caller does not know the pane yet
		_ = s.batch(ctx, []string{"kill-pane", "-t", p.PaneID})
	}
	return s, p, pid, err
}

// choose finds the place and starts argv there; it returns what tmux printed for
// putFormat.
func (b *Backend) choose(ctx context.Context, l backends.Launch, argv []string) (*server, string, error) {
	private := l.Place.TMUX == "" || l.Place.Layout == backends.LayoutSession
	var s *server
	var window, session string
	var err error
	if !private {
		s, window, session, err = b.person(ctx, l.Place)
		if err != nil {
			if l.Place.Layout != backends.LayoutAuto {
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
	case l.Place.Layout == backends.LayoutWindow:
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
	old, err := shim.ReadPane(l.Bundle, "")
	if err != nil || old.Socket != s.socket || old.ServerPID != s.id.PID || old.ServerStart != s.id.StartTicks {
		return "", false
	}
	p, ok, err := s.find(ctx, old.PaneID)
	if err != nil || !ok || p.agent != l.Agent || p.team != l.Team {
		return "", false
	}
	// -k: the old shim is dead (run.lock is free), but tmux may not have noticed.
	cmd := append([]string{"respawn-pane", "-k", "-e", shim.EnvThreads, "-t", p.id, "--"}, argv...)
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
	args := []string{"new-window", "-d", "-e", shim.EnvThreads, "-P", "-F", putFormat, "-t", session + ":", "-n", literal(name, false), "--"}
	return s.run(ctx, append(args, argv...)...)
}

func (s *server) split(ctx context.Context, target string, beside bool, argv []string) (string, error) {
	dir := "-v"
	if beside {
		dir = "-h"
	}
	args := []string{"split-window", "-d", dir, "-e", shim.EnvThreads, "-P", "-F", putFormat, "-t", target, "--"}
	return s.run(ctx, append(args, argv...)...)
}

// intoGrid uses the first window of ours that has room, else opens one.
func (s *server) intoGrid(ctx context.Context, session, name string, argv []string) (string, error) {
	ps, err := s.panes(ctx, "-s", "-t", session)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(ps); {
		j := i
		for j < len(ps) && ps[j].window == ps[i].window {
			j++
		}
		win := ps[i:j]
		i = j
		limit, main := perWindow, win[0].role == "lead"
		if main {
			limit = besideLead + 1
		}
		if !win[0].grid || len(win) >= limit {
			continue
		}
		if _, ok := grid(len(win)+1, win[0].winW, win[0].winH, main); !ok {
			continue
		}
		if out, err := s.splitLast(ctx, win, main, argv); err == nil {
			return out, nil
		}
	}
	out, err := s.newWindow(ctx, session, "team", argv)
	if err != nil {
		return "", err
	}
	if f := strings.Fields(out); len(f) > 2 {
		err = s.batch(ctx, []string{"set-option", "-w", "-t", f[2], "@teamctl_grid", "1"})
	}
	return out, err
}

// splitLast appends a pane to a window; the last pane is tried first so that the
// others keep their order.
func (s *server) splitLast(ctx context.Context, win []pane, main bool, argv []string) (string, error) {
	last := win[len(win)-1]
	out, err := s.split(ctx, last.id, (main && len(win) == 1) || last.w > 2*last.h, argv)
	var ref *refused
	if !errors.As(err, &ref) {
		return out, err
	}
	big := last // no space there
	for _, p := range win {
		if p.w*p.h > big.w*big.h && p.role != "lead" {
			big = p
		}
	}
	return s.split(ctx, big.id, big.w > 2*big.h, argv)
}

// beside puts a teammate at the right of the person's pane. A window that is
// zoomed, or too small, is left alone: the teammate gets a window.
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
		if err := s.dress(ctx, window); err != nil {
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
			_ = s.undress(ctx, window)
		}
		return s.newWindow(ctx, session, l.Agent, argv)
	}
	return out, err
}

// decorate marks the pane as the teammate's.
func (b *Backend) decorate(ctx context.Context, s *server, id string, l backends.Launch) error {
	title := title(l)
	colour := colours[l.Color]
	if colour == "" {
		colour = "default"
	}
	set := func(opt, val string) []string { return []string{"set-option", "-p", "-t", id, opt, val} }
	return s.batch(ctx,
		set("remain-on-exit", "on"),
		set("@teamctl_team", l.Team), set("@teamctl_agent", l.Agent),
		set("@teamctl_title", title), set("@teamctl_color", colour),
		[]string{"select-pane", "-t", id, "-T", literal(title, false)},
	)
}

// title is what stands in the pane's border: printable, and without '#', which
// starts a style there.
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

// pipe writes the pane's output to the log from now on, by a process of ours that
// keeps it from growing without bound. tmux runs the command by sh.
func (b *Backend) pipe(ctx context.Context, s *server, id string, l backends.Launch) error {
	cmd := "export " + shim.EnvThreads + "; exec"
	for _, w := range append(append([]string{}, b.opt.ShimArgv...), shim.StepLog, "--bundle", string(l.Bundle), "--generation", l.Generation) {
		cmd += " " + shellQuote(w)
	}
	_, err := s.run(ctx, "pipe-pane", "-O", "-t", id, literal(cmd, true))
	return err
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
