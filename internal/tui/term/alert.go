package term

import (
	"context"
	"os"
	"strings"
	"time"
	"unicode"
)

// AskTmux is what a Terminal asks of the tmux that it is in: a format, whose expansion says whether
// sequences pass through, whether the pane's window is shown, and what the terminal around is.
const AskTmux = "#{allow-passthrough}\t#{window_active}\t#{client_termtype}\t#{client_termname}"

const (
	alertLength  = 200             // characters of an alert's text
	alertPatient = 5 * time.Second // with tmux
)

// Alert tells the person something while the terminal has no focus: by a notification of the
// desktop where the terminal is known to make them, else by its bell. It returns before that.
func (t *Terminal) Alert(title, text string) {
	t.alerts.Go(func() {
		defer t.caught()
		ctx, cancel := context.WithTimeout(context.Background(), alertPatient)
		defer cancel()
		go func() {
			select {
			case <-t.quit:
				cancel()
			case <-ctx.Done():
			}
		}()
		b := []byte(sequence(t.outer(ctx), title, text))
		t.mu.Lock()
		defer t.mu.Unlock()
		select {
		case <-t.quit:
		default:
			if t.reading != nil {
				t.write(b)
			}
		}
	})
}

// outer is the terminal that shows the screen, and whether tmux is between.
type outer struct {
	tmux, passes bool
	names        string
}

func (t *Terminal) outer(ctx context.Context) outer {
	if t.tmux == nil {
		names := os.Getenv("TERM") + " " + os.Getenv("TERM_PROGRAM")
		if os.Getenv("KITTY_WINDOW_ID") != "" {
			names += " kitty"
		}
		return outer{names: names}
	}
	o := outer{tmux: true}
	answer, err := t.tmux(ctx, AskTmux)
	if f := strings.Split(strings.TrimRight(answer, "\n"), "\t"); err == nil && len(f) == 4 {
		switch f[0] {
		case "", "all": // a tmux before 3.3 has no such option, and lets everything pass
			o.passes = true
		case "on", "1": // tmux 3.3 has a flag
			o.passes = f[1] != "0"
		}
		o.names = f[2] + " " + f[3]
	}
	return o
}

const bell = "\a"

// sequence is what a terminal is sent for an alert.
//
// Sources: kitty, "Desktop notifications" (OSC 99); iTerm2, "Proprietary Escape Codes" (OSC 9); foot,
// foot-ctlseqs(7), WezTerm, "Escape Sequences", and rxvt-unicode's extension (OSC 777); tmux(1),
// allow-passthrough.
func sequence(o outer, title, text string) string {
	title, text = strings.ReplaceAll(harmless(title), ";", ","), harmless(text)
	names := strings.ToLower(o.names)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(names, w) {
				return true
			}
		}
		return false
	}
	const osc, st = "\x1b]", "\x1b\\"
	s := ""
	switch {
	case o.tmux && !o.passes:
	case has("kitty"):
		s = osc + "99;i=teamctl:d=0;" + title + st + osc + "99;i=teamctl:p=body;" + text + st
	case has("iterm"):
		s = osc + "9;" + title + ": " + text + st
	case has("wezterm", "ghostty", "foot", "rxvt"):
		s = osc + "777;notify;" + title + ";" + text + st
	}
	switch {
	case s == "":
		return bell
	case o.tmux:
		return "\x1bPtmux;" + strings.ReplaceAll(s, "\x1b", "\x1b\x1b") + st
	}
	return s
}

// harmless returns text of limited length without characters that could end or begin a sequence.
func harmless(s string) string {
	n := 0
	return strings.Map(func(r rune) rune {
		if n++; n > alertLength {
			return -1
		}
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
