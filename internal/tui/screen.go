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
)

// Source feeds a Screen: it calls each with a snapshot at once and after every
// change, from one goroutine, until ctx ends.
type Source func(ctx context.Context, each func(Snapshot)) error

// Screen shows the board of a team full-screen on a terminal.
type Screen struct {
	In, Out *os.File // both the terminal
	Color   bool
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
	quit := make(chan struct{}, 1)
	all.Go(func() { readKeys(keys, quit) })
	snaps := make(chan Snapshot)
	failed := make(chan error, 1)
	all.Go(func() {
		failed <- src(ctx, func(snap Snapshot) {
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
	return s.loop(ctx, snaps, failed, quit, resize)
}

func (s *Screen) loop(ctx context.Context, snaps <-chan Snapshot, failed <-chan error, quit <-chan struct{}, resize <-chan os.Signal) error {
	var last Snapshot
	var tick <-chan time.Time
	ticker := time.NewTicker(time.Hour)
	ticker.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-quit:
			return nil
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case last = <-snaps:
			running := last.counts().Active > 0
			switch {
			case running && tick == nil:
				ticker.Reset(time.Second)
				tick = ticker.C
			case !running && tick != nil:
				ticker.Stop()
				tick = nil
			}
		case <-tick:
		case <-resize:
		}
		s.draw(last)
	}
}

func (s *Screen) draw(snap Snapshot) {
	cols, rows, err := term.GetSize(int(s.Out.Fd()))
	if err != nil || cols <= 0 || rows <= 0 {
		cols, rows = 80, 24
	}
	lines := Board(snap, cols, rows, time.Now(), Style{On: s.Color})
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

// readKeys reports q, Ctrl-C and the end of the input.
func readKeys(in io.Reader, quit chan<- struct{}) {
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for _, c := range buf[:n] {
			if c == 'q' || c == 'Q' || c == 3 {
				quit <- struct{}{}
				return
			}
		}
		if err != nil {
			if !errors.Is(err, cancelreader.ErrCanceled) {
				quit <- struct{}{}
			}
			return
		}
	}
}
