package tmux

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/backends"
)

// placeAll creates a pane for every request and finishes it. The caller holds
// b.place. Three queries to tmux suffice for all that fit into the existing
// windows and one new window: the list of panes, creating the panes, and
// everything that must be set on them.
func (b *Backend) placeAll(ctx context.Context, rs []*request) {
	for first := true; len(rs) > 0; first = false {
		s, ps, err := b.privatePanes(ctx)
		if err != nil {
			for _, r := range rs {
				b.finish(ctx, r, placed{}, err)
			}
			return
		}
		if first {
			rs = b.restartAll(ctx, s, rs)
		}
		rs = b.placeSome(ctx, s, ps, rs)
	}
}

// privatePanes lists the panes of the private server's session, and starts what
// is missing: a list proves that both exist.
func (b *Backend) privatePanes(ctx context.Context) (*server, []pane, error) {
	b.mu.Lock()
	s := b.servers[b.opt.Layout.TmuxSocket()]
	b.mu.Unlock()
	if s != nil && s.sessionID() != "" {
		if ps, err := s.panes(ctx, "-s", "-t", s.sessionID()); err == nil {
			return s, ps, nil
		}
	}
	s, err := b.ensurePrivate(ctx)
	if err != nil {
		return nil, nil, err
	}
	ps, err := s.panes(ctx, "-s", "-t", s.sessionID())
	return s, ps, err
}

// restartAll starts members in their dead panes and returns the other requests.
func (b *Backend) restartAll(ctx context.Context, s *server, rs []*request) (rest []*request) {
	for _, r := range rs {
		out, ok := b.reuse(ctx, s, r.launch, r.argv)
		if !ok {
			rest = append(rest, r)
			continue
		}
		at, err := b.completePane(ctx, s, out, r.launch)
		b.finish(ctx, r, at, err)
	}
	return rest
}

// spot is a window of the private server while panes are added to it.
type spot struct {
	panes       []pane
	index, w, h int // of its last pane, as far as it can be predicted
	asked, made int
	dropped     bool // a pane that was created
}

// split returns the command for one more pane after the last, which is named by
// its position because its id is not known yet. If the user has moved the panes
// meanwhile, another one of the window is split, and the layout corrects that.
func (sp *spot) split(argv []string) []string {
	first := sp.panes[0]
	beside := first.role == "lead" && len(sp.panes)+sp.asked == 1 || sp.w > 2*sp.h
	target := first.window + "." + strconv.Itoa(sp.index)
	if beside {
		sp.w = (sp.w - 1) / 2
	} else {
		sp.h = (sp.h - 1) / 2
	}
	sp.index++
	sp.asked++
	return splitWindow(target, beside, argv)
}

// placeSome places requests in the windows with the panes ps and in at most one
// new window; it returns those for which there was no room.
func (b *Backend) placeSome(ctx context.Context, s *server, ps []pane, rs []*request) (rest []*request) {
	var spots []*spot
	for _, win := range windows(ps) {
		last := win[len(win)-1]
		spots = append(spots, &spot{panes: win, index: last.index, w: last.w, h: last.h})
	}
	var (
		asked []*request
		where []*spot // for each request; nil is the new window
		cmds  [][][]string
	)
	opened := false
next:
	for _, r := range rs {
		for _, sp := range spots {
			if room(sp.panes, sp.asked) {
				asked, where, cmds = append(asked, r), append(where, sp), append(cmds, [][]string{sp.split(r.argv)})
				continue next
			}
		}
		if opened {
			rest = append(rest, r)
			continue
		}
		opened = true
		asked, where, cmds = append(asked, r), append(where, nil), append(cmds, [][]string{newWindow(s.sessionID(), "team", r.argv)})
	}
	var made []newPane
	for i, a := range s.groups(ctx, cmds...) {
		r := asked[i]
		if errors.Is(a.err, errServerGone) && !r.again { // it died just before it could be asked
			r.again = true
			rest = append(rest, r)
			continue
		}
		var ref *refused
		if errors.As(a.err, &ref) || errors.Is(a.err, errDisconnected) {
			at, err := b.placeAlone(ctx, s, r)
			b.finish(ctx, r, at, err)
			continue
		}
		var at placed
		if a.err == nil {
			at, a.err = s.made(a.out, r.launch)
		}
		if a.err != nil {
			b.finish(ctx, r, placed{}, a.err)
			continue
		}
		if where[i] != nil {
			where[i].made++
		}
		made = append(made, newPane{r, at, where[i]})
	}
	b.setUpPanes(ctx, s, spots, made)
	return rest
}

// newPane is a request that has its pane.
type newPane struct {
	r    *request
	at   placed
	spot *spot // nil: a window of its own, so far
}

// setUpPanes marks new panes, captures their output and lays out their windows.
func (b *Backend) setUpPanes(ctx context.Context, s *server, spots []*spot, made []newPane) {
	var groups [][][]string
	for _, m := range made {
		cmds := b.paneCommands(m.at.pane.PaneID, m.r.launch)
		if m.spot == nil {
			cmds = append(cmds, []string{"set-option", "-w", "-t", m.at.pane.WindowID, "@teamctl_grid", "1"})
			cmds = append(cmds, s.fit(m.at.pane.WindowID)...)
		}
		groups = append(groups, cmds)
	}
	var laid []*spot
	for _, sp := range spots {
		if sp.made == 0 {
			continue
		}
		if layout, ok := tiled(sp.panes, sp.made); ok {
			laid = append(laid, sp)
			groups = append(groups, [][]string{{"select-layout", "-t", sp.panes[0].window, layout}})
		}
	}
	if len(groups) == 0 {
		return
	}
	as := s.groups(ctx, groups...)
	for i, m := range made {
		if errors.Is(as[i].err, errDisconnected) { // repeating it is harmless
			as[i].err = s.batch(ctx, groups[i]...)
		}
		if as[i].err != nil {
			s.drop(ctx, m.at.pane.PaneID)
			if m.spot != nil {
				m.spot.dropped = true
			}
		}
	}
	for i, sp := range laid {
		// The window has changed since it was listed, or has a pane fewer than
		// its layout.
		do := s.fitTerminals
		if as[len(made)+i].err != nil || sp.dropped {
			do = s.relayout
		}
		if err := do(ctx, sp.panes[0].window); err != nil {
			b.log.Warn("lay out a window", "window", sp.panes[0].window, "err", err)
		}
	}
	for i, m := range made {
		if as[i].err != nil {
			m.at = placed{}
		}
		b.finish(ctx, m.r, m.at, as[i].err)
	}
}

// placeAlone places a request that tmux has refused, perhaps because of a lack
// of space, or has not answered: then its pane may exist.
func (b *Backend) placeAlone(ctx context.Context, s *server, r *request) (placed, error) {
	out, err := s.started(ctx, r.launch)
	if err == nil && out == "" {
		out, err = s.intoGrid(ctx, s.sessionID(), r.launch.Agent, r.argv)
	}
	if err != nil {
		return placed{}, err
	}
	return b.completePane(ctx, s, out, r.launch)
}

// started searches for the pane in which a launch was started; it returns what
// tmux prints for putFormat, or nothing.
func (s *server) started(ctx context.Context, l backends.Launch) (string, error) {
	out, err := s.run(ctx, "list-panes", "-a", "-F", putFormat+"|#{pane_start_command}")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if at, cmd, _ := strings.Cut(line, "|"); strings.Contains(cmd, l.Generation) {
			return at, nil
		}
	}
	return "", nil
}
