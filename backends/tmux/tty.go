package tmux

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// canonical reports whether a terminal is in canonical mode, in which it
// returns whole lines. It returns false if that cannot be determined.
func canonical(tty string) bool {
	fd, err := unix.Open(tty, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	t, err := unix.IoctlGetTermios(fd, getTermios)
	return err == nil && t.Lflag&unix.ICANON != 0
}

// fitTerminals sets the sizes of the terminals in a window to those of their
// panes if tmux does not: tmux 3.0 waits until a client shows the window, so
// that the programs of a detached session would draw for the whole window for
// good.
func (s *server) fitTerminals(ctx context.Context, window string) error {
	if !s.mute {
		return nil
	}
	out, err := s.run(ctx, "list-panes", "-t", window, "-F", "#{pane_tty} #{pane_width} #{pane_height} #{pane_dead}")
	if err != nil {
		return err
	}
	for l := range strings.Lines(out) {
		var tty string
		var size unix.Winsize
		var dead int
		if n, err := fmt.Sscan(l, &tty, &size.Col, &size.Row, &dead); err != nil || n != 4 || dead != 0 {
			continue // a dead pane's terminal may belong to another program by now
		}
		if err := setSize(tty, size); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EIO) {
			return fmt.Errorf("resize %s: %w", tty, err)
		}
	}
	return nil
}

// setSize sets the size of a terminal; its programs get SIGWINCH if it changes.
func setSize(tty string, size unix.Winsize) error {
	fd, err := unix.Open(tty, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size)
}
