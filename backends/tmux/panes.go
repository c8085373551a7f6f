package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// pane is one line of list-panes. The data about a teammate is stored in user
// options of its pane, where a later supervisor also finds it.
type pane struct {
	id, window, session string
	w, h, winW, winH    int
	pid                 int
	dead, zoomed, piped bool
	grid, hidden        bool
	role, team, agent   string
	home                string // original window of a hidden pane
	index               int    // in its window
}

const paneFormat = "#{pane_id}|#{window_id}|#{session_id}|#{pane_width}|#{pane_height}|#{window_width}|#{window_height}|#{pane_pid}" +
	"|#{pane_dead}|#{window_zoomed_flag}|#{pane_pipe}|#{@teamctl_grid}|#{@teamctl_hidden}" +
	"|#{@teamctl_role}|#{@teamctl_team}|#{@teamctl_agent}|#{@teamctl_home}|#{pane_index}"

// panes lists the panes of a target: -a, or -s -t SESSION, or -t WINDOW. Within
// a window they are in the order in which a layout assigns them.
func (s *server) panes(ctx context.Context, target ...string) ([]pane, error) {
	list := append([]string{"list-panes", "-F", paneFormat}, target...)
	out, err := s.run(ctx, list...)
	if errors.Is(err, errDisconnected) { // the client has died, not the server
		out, err = s.run(ctx, list...)
	}
	if err != nil {
		return nil, err
	}
	var ps []pane
	for l := range strings.Lines(out) {
		p, err := parsePane(strings.TrimSuffix(l, "\n"))
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func parsePane(l string) (pane, error) {
	f := strings.Split(l, "|")
	if len(f) != 18 {
		return pane{}, fmt.Errorf("tmux list-panes printed %q", l)
	}
	var bad error
	num := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil && s != "" {
			bad = fmt.Errorf("tmux list-panes printed %q: %w", l, err)
		}
		return n
	}
	on := func(s string) bool { return s == "1" }
	p := pane{
		id: f[0], window: f[1], session: f[2],
		w: num(f[3]), h: num(f[4]), winW: num(f[5]), winH: num(f[6]), pid: num(f[7]),
		dead: on(f[8]), zoomed: on(f[9]), piped: on(f[10]), grid: on(f[11]), hidden: on(f[12]),
		role: f[13], team: f[14], agent: f[15], home: f[16], index: num(f[17]),
	}
	return p, bad
}

// find returns the pane with the id; ok is false if the server has none. A pane
// linked into several sessions is listed once for each.
func (s *server) find(ctx context.Context, id string) (p pane, ok bool, err error) {
	// Query the single pane first: with two hundred panes a list is long. What
	// tmux prints for a missing pane differs by version, so the list decides.
	if out, err := s.run(ctx, "display-message", "-p", "-t", id, paneFormat); err == nil {
		if p, err := parsePane(out); err == nil && p.id == id {
			return p, true, nil
		}
	}
	ps, err := s.panes(ctx, "-a")
	if err != nil {
		return pane{}, false, err
	}
	for _, p := range ps {
		if p.id == id {
			return p, true, nil
		}
	}
	return pane{}, false, nil
}

// relayout tiles a window of the team, or the user's window as long as it
// contains only one pane of theirs, the first. Every other window keeps its
// shape. Only appearance depends on it, so a refusal by tmux (another process
// has just changed the window) is not an error if a second attempt does not
// help.
func (s *server) relayout(ctx context.Context, window string) error {
	var ref *refused
	for range 3 {
		err := s.tile(ctx, window)
		if err == nil {
			return s.fitTerminals(ctx, window)
		}
		if !errors.As(err, &ref) {
			return err
		}
	}
	return nil
}

func (s *server) tile(ctx context.Context, window string) error {
	ps, err := s.panes(ctx, "-t", window)
	if err == nil && len(ps) > 0 && ps[0].zoomed {
		s.backend.resizes.whenUnzoomed(windowRef{s, window})
		ps, err = s.panes(ctx, "-t", window) // it may have been unzoomed just before
	}
	if err != nil || len(ps) == 0 || ps[0].zoomed {
		return err
	}
	layout, ok := tiled(ps, 0)
	if !ok {
		return nil
	}
	_, err = s.run(ctx, "select-layout", "-t", window, layout)
	return err
}

// tiled returns the layout of a window with the panes ps and added more of the
// team's; ok is false if it keeps its shape.
func tiled(ps []pane, added int) (layout string, ok bool) {
	mates, n := added, len(ps)+added
	for _, p := range ps {
		if p.agent != "" {
			mates++
		}
	}
	main := ps[0].agent == ""
	if mates == 0 || n-mates > 1 || (n > mates && !main) || (!ps[0].grid && !main) {
		return "", false
	}
	layout, ok = grid(n, ps[0].winW, ps[0].winH, main)
	return layout, ok || !main
}
