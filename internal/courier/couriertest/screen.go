package couriertest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Screen is a terminal with an input box, as Gemini CLI draws it. Its fields are set before it is
// used, or by With.
type Screen struct {
	mu      sync.Mutex
	Above   string // the newest turn, or a dialog
	Input   string
	Dialog  bool // no input box
	Slow    bool // it does not read its input
	Unread  string
	Scrolls bool
	Sent    []string
	Keys    []string
	OnPaste func(s *Screen) // between a paste and its Enter
	OnKey   func(s *Screen)
	Deaf    int // number of Enters that it ignores
	KeyAt   time.Time
	PasteAt time.Time
}

// TypeText implements courier.Screen.
func (s *Screen) TypeText(_ context.Context, text string, enter bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Slow && !enter {
		s.Unread += text
		return nil
	}
	s.Input += text
	if !enter {
		s.PasteAt = time.Now()
	}
	if enter && s.Deaf > 0 {
		s.Deaf--
	} else if enter {
		s.Sent = append(s.Sent, s.Input)
		s.Input = ""
	} else if s.OnPaste != nil {
		s.OnPaste(s)
	}
	return nil
}

// Capture implements courier.Screen.
func (s *Screen) Capture(context.Context, int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Dialog {
		return s.Above, nil
	}
	in := s.Input
	if in == "" {
		in = "  Type your message or @path/to/file"
	}
	return s.Above + "\n▄▄▄▄\n > " + in + "\n▀▀▀▀\n workspace\n", nil
}

// Interrupt implements courier.Screen.
func (s *Screen) Interrupt(context.Context) error { return nil }

// Key implements courier.Keyer.
func (s *Screen) Key(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Keys, s.KeyAt = append(s.Keys, name), time.Now()
	if s.OnKey != nil {
		s.OnKey(s)
	}
	return nil
}

// Scrolling implements courier.Scroller.
func (s *Screen) Scrolling(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Scrolls, nil
}

// With calls f while nothing else uses the screen.
func (s *Screen) With(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Lines returns what was sent, separated by "|".
func (s *Screen) Lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.Sent, "|")
}

// Mail returns messages with these ids.
func Mail(ids ...string) (out []team.Mail) {
	for _, id := range ids {
		out = append(out, team.Mail{ID: id, Text: "text of " + id})
	}
	return out
}

// TypedOnce checks that what a slow program has not read yet is typed once, also by the channel that
// again opens after a kill of the supervisor, and is sent once it is in the box.
func TypedOnce(t *testing.T, s *Screen, text string, ch Channel, again func() Channel) {
	t.Helper()
	held := func(why string, ids ...string) {
		t.Helper()
		if out := ch.Deliver(t.Context(), Mail(ids...)); out[0].State != team.Held || !strings.Contains(out[0].Reason, why) {
			t.Fatalf("%+v, want held: %s", out, why)
		}
		if s.Unread != text || s.Lines() != "" {
			t.Fatalf("%q is to be read, and %q was sent", s.Unread, s.Lines())
		}
	}
	held("not seen to have arrived", "a")
	held("may still have to read it", "a", "b")
	ch.Close()
	ch = again()
	t.Cleanup(ch.Close)
	held("may still have to read it", "a", "b")
	s.With(func() { s.Slow, s.Input, s.Unread = false, s.Unread, "" })
	out := ch.Deliver(t.Context(), Mail("a", "b"))
	if typing := text == "text of a"; s.Lines() != text || typing && (out[0].State != team.Accepted || out[1].State != team.Held) {
		t.Fatalf("sent %q: %+v", s.Lines(), out)
	}
}

// GeminiDialog is Gemini CLI 0.61.0's dialog before it runs a command.
const GeminiDialog = `
╭───────────────────────────╮
│ ? Shell  touch asked && t │
│ ouch again                │
│ Allow execution of [Shell]? │
│                           │
│ ● 1. Allow once           │
│   2. Allow for this session │
│   3. No, suggest changes (esc) │
╰───────────────────────────╯
`
