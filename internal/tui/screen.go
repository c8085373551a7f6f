package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/internal/view"
)

// Source feeds a Screen: it calls each with a snapshot at once and after every
// change, from one goroutine, until ctx ends.
type Source func(ctx context.Context, each func(view.Snapshot)) error

// Screen shows the board of a team full-screen on a terminal.
type Screen struct {
	In, Out *os.File // both the terminal
	Color   bool
	// Leave, where it is set, takes the person away from the screen, which goes on. If it
	// fails, or without it, the screen ends.
	Leave func(context.Context) error
}

const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[?7l" // alternate screen, no cursor, no wrapping
	leave = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Run draws what src says until a person presses q or Ctrl-C (nil), src fails
// (its error) or ctx ends (nil). The terminal is left as it was found.
func (s *Screen) Run(ctx context.Context, src Source) (err error) {
	old, err := term.MakeRaw(int(s.In.Fd()))
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	keys, err := cancelreader.NewReader(s.In)
	if err != nil {
		return errors.Join(fmt.Errorf("read the terminal: %w", err), term.Restore(int(s.In.Fd()), old))
	}
	resize := make(chan os.Signal, 1)
	signal.Notify(resize, syscall.SIGWINCH)

	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	pressed := make(chan key)
	all.Go(func() { readKeys(ctx, keys, pressed) })
	snaps := make(chan view.Snapshot)
	failed := make(chan error, 1)
	all.Go(func() {
		failed <- src(ctx, func(snap view.Snapshot) {
			select {
			case snaps <- snap:
			case <-ctx.Done():
			}
		})
	})
	s.write(enter)
	defer func() {
		cancel()
		keys.Cancel()
		all.Wait()
		signal.Stop(resize)
		s.write(leave)
		err = errors.Join(err, keys.Close(), term.Restore(int(s.In.Fd()), old))
	}()
	return s.loop(ctx, snaps, failed, pressed, resize)
}

func (s *Screen) loop(ctx context.Context, snaps <-chan view.Snapshot, failed <-chan error, pressed <-chan key, resize <-chan os.Signal) error {
	var last view.Snapshot
	top := 0
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case k := <-pressed:
			if k == keyEnd || k == keyQuit && (s.Leave == nil || s.Leave(ctx) != nil) {
				return nil
			}
			cols, rows := s.size()
			top = k.scrolled(top, rows-2, Lines(last, cols, time.Now()))
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case last = <-snaps:
		case <-timer.C:
		case <-resize:
		}
		now := time.Now()
		s.draw(last, top, now)
		timer.Stop()
		if p := period(last, now); p > 0 {
			timer.Reset(p)
		}
	}
}

// period is when what is on the screen looks different though nothing has happened: a
// second while a task is worked on or something waits for less than a minute, a minute
// while anything waits, else never.
func period(s view.Snapshot, now time.Time) time.Duration {
	if s.Count().Active > 0 {
		return time.Second
	}
	p := time.Duration(0)
	for _, n := range s.Needs {
		switch {
		case n.Since.IsZero():
		case now.Sub(n.Since) < time.Minute:
			return time.Second
		default:
			p = time.Minute
		}
	}
	return p
}

func (s *Screen) size() (cols, rows int) {
	cols, rows, err := term.GetSize(int(s.Out.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		return 80, 24
	}
	return cols, rows
}

func (s *Screen) draw(snap view.Snapshot, top int, now time.Time) {
	cols, rows := s.size()
	lines := Board(snap, cols, rows, top, now, Style{On: s.Color})
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	s.write(b.String())
}

func (s *Screen) write(text string) {
	// A terminal that is gone shows itself by the end of its input.
	_, _ = io.WriteString(s.Out, text)
}
