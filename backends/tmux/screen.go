package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/sgr"
	"github.com/teamctl/teamctl/team"
)

// on runs f on the pane's own server. A pane or server that no longer exists is
// CodeNotFound.
func (a *attached) on(ctx context.Context, verb string, f func(s *server, id string) error) error {
	return a.server.on(ctx, verb, a.Launch().Agent, a.Pane().PaneID, f)
}

func (s *server) on(ctx context.Context, verb, agent, id string, f func(s *server, id string) error) error {
	err := errServerGone
	if s != nil {
		err = f(s, id)
	}
	var ref *refused
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errServerGone):
		return team.Errorf(team.CodeNotFound, "%s %s: %w", verb, agent, err)
	case errors.As(err, &ref):
		if _, ok, ferr := s.find(ctx, id); ferr == nil && !ok {
			return team.Errorf(team.CodeNotFound, "%s %s: its pane %s does not exist", verb, agent, id)
		}
	}
	return fmt.Errorf("%s %s: %w", verb, agent, err)
}

// TypeText pastes text, without its control characters except newline and tab,
// and then a carriage return if enter is set. It reaches the program even while
// the user scrolls in copy mode. A program that reads lines gets at most 4095
// bytes of each: a longer line is refused (CodeLimit), not truncated.
func (a *attached) TypeText(ctx context.Context, text string, enter bool) error {
	text = plain.Clean(text) // no sequence ends the bracketed paste, no character interrupts or submits
	return a.on(ctx, "type to", func(s *server, id string) error {
		p, ok, err := s.find(ctx, id)
		if err != nil {
			return err
		}
		if !ok || p.dead {
			return team.Errorf(team.CodeNotFound, "its pane %s does not exist", id)
		}
		if text != "" {
			if err := tooLong(ctx, s, id, text); err != nil {
				return err
			}
			if err := a.paste(ctx, s, id, "text", text, "-p"); err != nil {
				return err
			}
		}
		if enter {
			return a.paste(ctx, s, id, "enter", "\r")
		}
		return nil
	})
}

// paste uses a buffer with a unique name: the argument of a command would have
// to be quoted against keys, formats and separators.
func (a *attached) paste(ctx context.Context, s *server, id, what, data string, flags ...string) error {
	r, err := s.ask(ctx)
	if err != nil {
		return err
	}
	name := "teamctl-" + team.NewUUID() + "-" + what
	if err := r.buffer(ctx, name, data); err != nil {
		return err
	}
	// -r keeps a newline from becoming Enter.
	cmd := append([]string{"paste-buffer", "-r", "-d", "-b", name, "-t", id}, flags...)
	if _, err := r.run(ctx, cmd...); err != nil {
		_, _ = r.run(context.WithoutCancel(ctx), "delete-buffer", "-b", name)
		return err
	}
	return nil
}

// lineMax is the maximum length of a line that a terminal in canonical mode
// keeps.
const lineMax = 4095

func tooLong(ctx context.Context, s *server, id, text string) error {
	long := false
	for l := range strings.Lines(text) {
		long = long || len(l) > lineMax
	}
	if !long {
		return nil
	}
	tty, err := s.run(ctx, "display-message", "-p", "-t", id, "#{pane_tty}")
	if err != nil {
		return err
	}
	if canonical(tty) {
		return team.Errorf(team.CodeLimit, "the program reads lines and would lose all but the first %d bytes of one", lineMax).
			WithHint("send it as a message")
	}
	return nil
}

// Capture returns the screen as text.
func (a *attached) Capture(ctx context.Context, scrollback int) (string, error) {
	return a.capture(ctx, "capture", scrollback)
}

// View returns the screen with its colours.
func (a *attached) View(ctx context.Context, scrollback int) ([]string, error) {
	out, err := a.capture(ctx, "view", scrollback, "-e")
	if err != nil {
		return nil, err
	}
	return sgr.Lines(drawn(out)), nil
}

// capture reads the pane as it is, with what has scrolled off: the pane's own view of its history,
// the copy mode, is the person's.
func (a *attached) capture(ctx context.Context, verb string, scrollback int, flags ...string) (out string, err error) {
	err = a.on(ctx, verb, func(s *server, id string) (err error) {
		args := append([]string{"capture-pane", "-p", "-t", id}, flags...)
		if scrollback > 0 {
			args = append(args, "-S", strconv.Itoa(-scrollback))
		}
		out, err = s.run(ctx, args...)
		return err
	})
	return out, err
}

// processEvery is ViewEvery where each request starts a process.
const processEvery = 250 * time.Millisecond

// ViewEvery implements backends.Viewer.
func (a *attached) ViewEvery() time.Duration {
	if a.server != nil && !a.server.control {
		return processEvery
	}
	return backends.FrameEvery
}

// drawn puts the characters for lines and corners in place of the letters that a terminal shows as
// these between "shift out" and "shift in".
func drawn(text string) string {
	const out = 0x0e
	if strings.IndexByte(text, out) < 0 {
		return text
	}
	var b strings.Builder
	shifted := false
	for len(text) > 0 {
		at := strings.IndexAny(text, "\x0e\x0f\x1b")
		if at < 0 {
			at = len(text)
		}
		part := text[:at]
		if shifted {
			part = lineDrawing.Replace(part)
		}
		b.WriteString(part)
		text = text[at:]
		switch {
		case text == "":
		case text[0] == 0x1b: // a sequence of colours; its letters are not shown
			end := strings.IndexByte(text, 'm') + 1
			b.WriteString(text[:max(1, end)])
			text = text[max(1, end):]
		default:
			shifted = text[0] == out
			text = text[1:]
		}
	}
	return b.String()
}

// lineDrawing is DEC Special Graphics.
var lineDrawing = strings.NewReplacer("`", "◆", "a", "▒", "f", "°", "g", "±", "j", "┘", "k", "┐", "l", "┌", "m", "└", "n", "┼", "o", "⎺", "p", "⎻",
	"q", "─", "r", "⎼", "s", "⎽", "t", "├", "u", "┤", "v", "┴", "w", "┬", "x", "│", "y", "≤", "z", "≥", "{", "π", "|", "≠", "}", "£", "~", "·")

// Resize resizes the pane. If it is alone in its window and no client shows the
// window, the window is resized with it; next to others it gets what they can
// spare.
func (a *attached) Resize(ctx context.Context, cols, rows int) error {
	if cols < 1 || rows < 1 {
		return team.Errorf(team.CodeInvalid, "resize %s to %dx%d", a.Launch().Agent, cols, rows)
	}
	return a.on(ctx, "resize", func(s *server, id string) error {
		p, ok, err := s.find(ctx, id)
		if err != nil {
			return err
		}
		if !ok {
			return &refused{"resize-pane", "no such pane"}
		}
		ps, err := s.panes(ctx, "-t", p.window)
		if err != nil {
			return err
		}
		x, y := strconv.Itoa(cols), strconv.Itoa(rows)
		if len(ps) == 1 && s.private {
			dy := p.winH - p.h // the border line takes a row
			err = s.batch(ctx, []string{"resize-window", "-t", p.window, "-x", x, "-y", strconv.Itoa(rows + dy)})
		} else {
			err = s.batch(ctx, []string{"resize-pane", "-t", id, "-x", x, "-y", y})
		}
		if err != nil {
			return err
		}
		return s.fitTerminals(ctx, p.window)
	})
}

// Dispose removes the pane. A generation that is still running is CodeConflict.
func (a *attached) Dispose(ctx context.Context) error {
	return a.b.dispose(ctx, a.server, a.Launch().Agent, a.Pane().PaneID, a.Proc())
}

// Dispose removes the pane of a generation that has exited and is known only by
// its pane.json and proc.json. A pane that no longer exists is not an error.
func (b *Backend) Dispose(ctx context.Context, p team.Pane, pr backends.Proc) error {
	if err := b.Check(ctx); err != nil {
		return err
	}
	s, err := b.serverOf(p, pr.Shim.BootID)
	if err != nil {
		return nil
	}
	q, ok, err := s.find(ctx, p.PaneID)
	if err != nil || !ok || q.agent == "" {
		return err
	}
	return b.dispose(ctx, s, q.agent, p.PaneID, pr)
}

func (b *Backend) dispose(ctx context.Context, s *server, agent, id string, pr backends.Proc) error {
	if proc.Alive(pr.Shim) {
		return team.Errorf(team.CodeConflict, "dispose of %s: it is still running", agent)
	}
	err := s.on(ctx, "dispose of", agent, id, func(s *server, id string) error {
		return b.removePane(ctx, s, &removal{pane: id, agent: agent, pid: pr.Shim.PID})
	})
	if team.IsCode(err, team.CodeNotFound) {
		return nil
	}
	return err
}
