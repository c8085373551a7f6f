package tmux

import (
	"context"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

// Hide moves the pane to a window of its own that no client is switched to. A
// hidden pane stays hidden.
func (b *Backend) Hide(ctx context.Context, p team.Pane) error {
	return b.move(ctx, "hide", p, func(s *server, q pane) error {
		if q.hidden {
			return nil
		}
		ps, err := s.panes(ctx, "-t", q.window)
		if err != nil {
			return err
		}
		mark := [][]string{
			{"set-option", "-p", "-t", q.id, "@teamctl_hidden", "1"},
			{"set-option", "-p", "-t", q.id, "@teamctl_home", q.window},
		}
		if len(ps) == 1 { // already has a window of its own
			mark[1][5] = "alone"
			return s.batch(ctx, mark...)
		}
		if err := s.batch(ctx, append(mark, []string{"break-pane", "-d", "-s", q.id, "-n", "hidden-" + q.agent})...); err != nil {
			return err
		}
		return s.tidy(ctx, q.window)
	})
}

// Show moves a hidden pane back to the window that it came from; if that no
// longer exists it stays in place.
func (b *Backend) Show(ctx context.Context, p team.Pane) error {
	return b.move(ctx, "show", p, func(s *server, q pane) error {
		if !q.hidden {
			return nil
		}
		unmark := [][]string{
			{"set-option", "-pu", "-t", q.id, "@teamctl_hidden"},
			{"set-option", "-pu", "-t", q.id, "@teamctl_home"},
		}
		ps, err := s.panes(ctx, "-a")
		if err != nil {
			return err
		}
		var last *pane
		first := true
		for i := range ps {
			if ps[i].window == q.home {
				last = &ps[i]
				first = first && ps[i].agent == ""
			}
		}
		if last == nil {
			return s.batch(ctx, unmark...)
		}
		if !s.private && first {
			if err := s.setOptions(ctx, q.home); err != nil {
				return err
			}
		}
		dir := "-v"
		if last.w > 2*last.h {
			dir = "-h"
		}
		err = s.batch(ctx, append([][]string{{"join-pane", "-d", dir, "-s", q.id, "-t", last.id}}, unmark...)...)
		if err != nil {
			return err
		}
		return s.relayout(ctx, q.home)
	})
}

// tidy lays out a window that a pane has left, and restores its options.
func (s *server) tidy(ctx context.Context, window string) error {
	if err := s.relayout(ctx, window); err != nil {
		return err
	}
	if s.private {
		return nil
	}
	return s.restoreOptions(ctx, window)
}

func (b *Backend) move(ctx context.Context, verb string, p team.Pane, f func(*server, pane) error) error {
	if err := b.Check(ctx); err != nil {
		return err
	}
	b.place.Lock()
	defer b.place.Unlock()
	s, q, err := b.locate(ctx, p)
	if err != nil {
		return err
	}
	if err := f(s, q); err != nil {
		return fmt.Errorf("%s pane %s: %w", verb, p.PaneID, err)
	}
	return nil
}

// locate finds a recorded pane on its server, after verifying that it is the
// same server.
func (b *Backend) locate(ctx context.Context, p team.Pane) (*server, pane, error) {
	boot, err := thisBoot()
	if err != nil {
		return nil, pane{}, err
	}
	s, err := b.serverOf(p, boot)
	if err != nil {
		return nil, pane{}, team.Errorf(team.CodeNotFound, "pane %s: %w", p.PaneID, err)
	}
	q, ok, err := s.find(ctx, p.PaneID)
	if err != nil {
		return nil, pane{}, fmt.Errorf("find pane %s: %w", p.PaneID, err)
	}
	if !ok || q.agent == "" {
		return nil, pane{}, team.Errorf(team.CodeNotFound, "pane %s does not exist", p.PaneID)
	}
	return s, q, nil
}
