package supervisor

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/internal/sgr"
	"github.com/teamctl/teamctl/team"
)

// View calls each with the lines of a member's screen, with colours only, now and after every
// change, from one goroutine, until ctx ends, which is no error, or the member has no process any
// more. A look follows a write to the member's log, backends.FrameEvery after the one before at the
// earliest: what other members write wakes nobody, and while this one writes nothing there is no
// look.
func (s *Supervisor) View(ctx context.Context, name string, each func(lines []string)) error {
	at, row, err := s.attached(ctx, name)
	if err != nil {
		return err
	}
	look, every := lookAt(at)
	log := s.cfg.Layout.Bundle(row.Name).Log()
	// A hub of its own, which rests between two writes: one that is shared is woken by each.
	hub := &dirwatch.Hub{Rest: every}
	wrote := make(chan struct{}, 1)
	stop, err := hub.Watch(filepath.Dir(log), func(e team.FileEvent) {
		if !e.Lost && !e.Poll && filepath.Base(e.Name) != filepath.Base(log) {
			return
		}
		select {
		case wrote <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	var last []string
	for first := true; ; first = false {
		lines, err := look(ctx, 0)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if first || !slices.Equal(lines, last) {
			each(lines)
			last = lines
		}
		select {
		case <-wrote:
		case <-at.Exited():
			return team.Errorf(team.CodeNotFound, "view %s: it has exited", row.Name)
		case <-ctx.Done():
			return nil
		}
	}
}

// historyMax limits the lines of history that ViewBack returns. Terminals of ours keep fewer.
const historyMax = 5000

// ViewBack returns the lines of a member's screen as View does, once, with what its terminal keeps
// above them.
func (s *Supervisor) ViewBack(ctx context.Context, name string) ([]string, error) {
	at, _, err := s.attached(ctx, name)
	if err != nil {
		return nil, err
	}
	look, _ := lookAt(at)
	return look(ctx, historyMax)
}

// lookAt returns what looks at the screen of a generation once, and how often it may.
func lookAt(at backends.Attached) (look func(ctx context.Context, scrollback int) ([]string, error), every time.Duration) {
	if v, ok := at.(backends.Viewer); ok {
		return v.View, v.ViewEvery()
	}
	return func(ctx context.Context, scrollback int) ([]string, error) {
		text, err := at.Capture(ctx, scrollback)
		return sgr.Lines(text), err
	}, backends.FrameEvery
}
