package courier

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// fakeScreen is a terminal with an input box, as Gemini CLI draws it.
type fakeScreen struct {
	mu      sync.Mutex
	above   string // the newest turn, or a dialog
	input   string
	dialog  bool // no input box
	slow    bool // it does not read its input
	unread  string
	scrolls bool
	sent    []string
	keys    []string
	onPaste func(s *fakeScreen) // between a paste and its Enter
	onKey   func(s *fakeScreen)
	deaf    int // number of Enters that it ignores
	keyAt   time.Time
	pasteAt time.Time
}

func (s *fakeScreen) TypeText(_ context.Context, text string, enter bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow && !enter {
		s.unread += text
		return nil
	}
	s.input += text
	if !enter {
		s.pasteAt = time.Now()
	}
	if enter && s.deaf > 0 {
		s.deaf--
	} else if enter {
		s.sent = append(s.sent, s.input)
		s.input = ""
	} else if s.onPaste != nil {
		s.onPaste(s)
	}
	return nil
}

func (s *fakeScreen) Capture(context.Context, int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dialog {
		return s.above, nil
	}
	in := s.input
	if in == "" {
		in = "  Type your message or @path/to/file"
	}
	return s.above + "\n▄▄▄▄\n > " + in + "\n▀▀▀▀\n workspace\n", nil
}

func (s *fakeScreen) Interrupt(context.Context) error { return nil }

func (s *fakeScreen) Key(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.keyAt = append(s.keys, name), time.Now()
	if s.onKey != nil {
		s.onKey(s)
	}
	return nil
}

func (s *fakeScreen) Scrolling(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scrolls, nil
}

func (s *fakeScreen) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *fakeScreen) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.sent, "|")
}

// typed returns a channel to a Gemini CLI that has only the fake screen.
func typed(t *testing.T, s *fakeScreen, open Opener, ways ...adapter.Way) (Channel, Facts, *couriertest.Watcher) {
	t.Helper()
	rules, ok, err := adapter.BuiltinRules(adapter.Gemini)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), Name: "gem", AgentID: "gem@demo", Generation: "g1", Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Gemini, Ways: ways},
	}
	t.Cleanup(f.hub.close)
	f.look = newLooker(f, s, rules)
	if ways[0] == adapter.WayHooks { // its hooks run
		if err := WriteSeen(f.Bundle, SeenFile{Generation: f.Generation}); err != nil {
			t.Fatal(err)
		}
	}
	w := couriertest.NewWatcher()
	ch, err := open(t.Context(), f, s, w.Report)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ch.Close)
	return ch, f, w
}

func mail(ids ...string) (out []team.Mail) {
	for _, id := range ids {
		out = append(out, team.Mail{ID: id, Text: "text of " + id})
	}
	return out
}

// An idle agent whose hooks fetch the mail is woken once for waiting mail, and again at once for
// mail that arrives after the fetch.
func TestWakesAgainForNewMail(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{}
	ch, _, _ := typed(t, s, openHooks, adapter.WayHooks, adapter.WayTyping)
	ch.Deliver(t.Context(), mail("a"))
	ch.Deliver(t.Context(), mail("a", "b")) // a has not been fetched: that wake-up is pending
	if got := s.lines(); got != adapter.WakeText {
		t.Fatalf("typed %q", got)
	}
	ch.Deliver(t.Context(), mail("b")) // a was fetched, and b came too late for that
	if got := s.lines(); got != adapter.WakeText+"|"+adapter.WakeText {
		t.Fatalf("typed %q: what came after a wake-up waits for nothing", got)
	}
}

// A wake-up that was typed but could not be sent is sent by the next attempt.
func TestWakeThatStandsThereIsSent(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{}
	s.onPaste = func(s *fakeScreen) { s.scrolls = true } // a person begins to scroll at that moment
	ch, _, _ := typed(t, s, openHooks, adapter.WayHooks, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Held || s.lines() != "" {
		t.Fatalf("%+v, sent %q", out, s.lines())
	}
	s.with(func() { s.scrolls = false })
	ch.Deliver(t.Context(), mail("a"))
	if got := s.lines(); got != adapter.WakeText {
		t.Fatalf("sent %q", got)
	}
}

// A wake-up that a slow program shows only after it was typed again is in the box twice: it still
// counts as ours and is sent, unlike text that a person added.
func TestWakeThatStandsThereTwiceIsSent(t *testing.T) {
	t.Parallel()
	twice := adapter.WakeText + adapter.WakeText
	s := &fakeScreen{input: twice}
	ch, _, _ := typed(t, s, openHooks, adapter.WayHooks, adapter.WayTyping)
	ch.Deliver(t.Context(), mail("a"))
	if got := s.lines(); got != twice {
		t.Fatalf("sent %q", got)
	}
	s = &fakeScreen{input: twice + "no, wait"}
	ch, _, _ = typed(t, s, openHooks, adapter.WayHooks, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Held || s.lines() != "" {
		t.Fatalf("%+v, sent %q", out, s.lines())
	}
}

// An Enter that follows a paste too soon is lost: it is pressed again, and nothing is typed twice.
func TestEnterThatIsNotTaken(t *testing.T) {
	for name, open := range map[string]Opener{"hooks": openHooks, "typing": openTyping} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &fakeScreen{deaf: 1}
			ch, _, _ := typed(t, s, open, adapter.WayHooks, adapter.WayTyping)
			want := adapter.WakeText
			out := ch.Deliver(t.Context(), mail("a"))
			if name == "typing" {
				want = "text of a"
				if out[0].State != team.Held {
					t.Errorf("%+v", out)
				}
			}
			if s.lines() != "" || s.input != want {
				t.Fatalf("sent %q, and %q stands there", s.lines(), s.input)
			}
			out = ch.Deliver(t.Context(), mail("a", "b"))
			if s.lines() != want || s.input != "" {
				t.Errorf("sent %q, and %q stands there", s.lines(), s.input)
			}
			if name == "typing" && (out[0].State != team.Accepted || out[1].State != team.Held) {
				t.Errorf("%+v", out)
			}
		})
	}
}

// An Enter that had an effect which was not seen is not followed by another message.
func TestEnterThatIsSeenLate(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{deaf: 1}
	ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
	ch.Deliver(t.Context(), mail("a"))
	s.with(func() { s.input = "" }) // now the screen shows it
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Accepted || s.lines() != "" {
		t.Errorf("%+v, sent %q", out, s.lines())
	}
}

func TestTypingIsHeld(t *testing.T) {
	for _, c := range []struct {
		name, want string
		s          *fakeScreen
		sent       string
	}{
		{"half a line of a person's", "begun to type", &fakeScreen{input: "half a li"}, ""},
		{"a dialog", "waits for permission", &fakeScreen{dialog: true, above: "Allow execution of [Shell]?\n● 1. Allow once\n"}, ""},
		{"a turn", "it is working", &fakeScreen{above: "⠏ Thinking (esc to cancel, 3s)"}, ""},
		{"nothing known", "it is unknown", &fakeScreen{dialog: true, above: "$ "}, ""},
		{"a person reads back", "scrolls", &fakeScreen{scrolls: true}, ""},
		{"a person types on behind it", "not seen to have arrived", &fakeScreen{onPaste: func(s *fakeScreen) { s.input += " and me" }}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := c.s.input
			ch, _, _ := typed(t, c.s, openTyping, adapter.WayTyping)
			out := ch.Deliver(t.Context(), mail("a"))
			if len(out) != 1 || out[0].State != team.Held || !strings.Contains(out[0].Reason, c.want) {
				t.Errorf("%+v, want held: %s", out, c.want)
			}
			if got := c.s.lines(); got != c.sent {
				t.Errorf("sent %q", got)
			}
			if c.s.onPaste == nil && c.s.input != before {
				t.Errorf("the input box had %q and has %q", before, c.s.input)
			}
		})
	}
}

// A person who stops scrolling makes no output: the mail is tried again.
func TestHeldForAReaderIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{scrolls: true}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Held {
		t.Fatalf("%+v", out)
	}
	s.with(func() { s.scrolls = false })
	w.Wait(t, "another attempt", 0, func(o team.Observation) bool { return strings.Contains(o.Source, "tried again") })
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Accepted || s.lines() != "text of a" {
		t.Errorf("%+v, sent %q", out, s.lines())
	}
}

func TestCloseEndsWhatIsLeftForLater(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{scrolls: true}
	ch, _, w := typed(t, s, openTyping, adapter.WayTyping)
	ch.Deliver(t.Context(), mail("a"))
	ch.Close() // goleak reports a timer's goroutine
	if w.Mark() != 0 {
		t.Errorf("%d were reported", w.Mark())
	}
}

// geminiDialog is Gemini CLI 0.61.0's dialog before it runs a command.
const geminiDialog = `
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

const geminiAsks = `{"session_id":"c1","timestamp":"2026-11-21T14:54:14Z","notification_type":"ToolPermission","message":"m",
	"details":{"type":"exec","title":"Confirm Shell Command","command":"touch asked && touch again"}}`

// A key answers a dialog only while the requesting dialog is open.
func TestAnswerByKey(t *testing.T) {
	seen := adapter.HookSees(adapter.Gemini, "Notification", adapter.ParseHook([]byte(geminiAsks)), false, time.Now())
	if seen.Ask == nil || seen.Ask.Tool != "run_shell_command" || seen.Ask.Description != "touch asked && touch again" {
		t.Fatalf("asked: %+v", seen.Ask)
	}
	old := seen
	old.At = seen.At.Add(-2 * drawWithin)
	other := seen
	other.Ask = nil
	closes := func(s *fakeScreen) { s.above, s.dialog = "✦ done", false }
	for _, c := range []struct {
		name, keys string
		allow      bool
		screen     *fakeScreen
		last       team.Observation
		gen        string
		want       team.Code
	}{
		{name: "allowed", keys: "1", allow: true, screen: &fakeScreen{dialog: true, above: geminiDialog, onKey: closes}, last: seen, gen: "g1"},
		{name: "refused", keys: "3", screen: &fakeScreen{dialog: true, above: geminiDialog, onKey: closes}, last: seen, gen: "g1"},
		{name: "another dialog", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable,
			screen: &fakeScreen{dialog: true, above: strings.ReplaceAll(geminiDialog, "touch asked", "rm -rf /")}},
		{name: "no dialog yet", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &fakeScreen{above: "⠏ (esc to cancel, 1s)"}},
		{name: "not drawn yet", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &fakeScreen{}},
		{name: "the dialog is over", allow: true, last: old, gen: "g1", want: team.CodeNotFound, screen: &fakeScreen{}},
		{name: "a hook was called since", allow: true, last: other, gen: "g1", want: team.CodeNotFound, screen: &fakeScreen{dialog: true, above: geminiDialog}},
		{name: "an earlier process", allow: true, last: seen, gen: "g0", want: team.CodeNotFound, screen: &fakeScreen{dialog: true, above: geminiDialog}},
		{name: "the key is not taken", keys: "1", allow: true, last: seen, gen: "g1", want: team.CodeUnavailable, screen: &fakeScreen{dialog: true, above: geminiDialog}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ch, f, _ := typed(t, c.screen, openHooks, adapter.WayHooks)
			if err := WriteSeen(f.Bundle, SeenFile{Generation: c.gen, Seen: c.last}); err != nil {
				t.Fatal(err)
			}
			err := ch.Answer(t.Context(), team.Reply{ID: seen.Ask.ID, For: team.WaitPermission, Allow: c.allow})
			if got := strings.Join(c.screen.keys, ""); got != c.keys {
				t.Errorf("pressed %q, want %q", got, c.keys)
			}
			if c.want == "" && err != nil || c.want != "" && !team.IsCode(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// An agent that fetches its mail is not typed at, but its screen is read.
func TestPullLeavesMailAlone(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{above: "✦ done"}
	c := New(nil, nil)
	t.Cleanup(c.Close)
	w := couriertest.NewWatcher()
	home := team.Home{Dir: t.TempDir()}
	f := Facts{
		Layout: home.Team("demo"), Bundle: team.Bundle(t.TempDir()), Name: "gem", AgentID: "gem@demo", Generation: "g1",
		Link: adapter.Link{Agent: adapter.Gemini, Ways: []adapter.Way{adapter.WayPull}},
	}
	ch, err := c.Open(t.Context(), f, s, w.Report)
	if err != nil || ch == nil {
		t.Fatal(ch, err)
	}
	t.Cleanup(ch.Close)
	w.Wait(t, "idle", 0, couriertest.Is(team.Idle))
	if out := ch.Deliver(t.Context(), mail("a")); len(out) != 1 || out[0] != (team.Outcome{ID: "a"}) || s.lines() != "" || s.input != "" {
		t.Errorf("%+v, sent %q, in the box %q", out, s.lines(), s.input)
	}
}

// An Escape directly followed by a paste is another key for the program.
func TestEscapeStandsAlone(t *testing.T) {
	t.Parallel()
	s := &fakeScreen{}
	ch, _, _ := typed(t, s, openTyping, adapter.WayTyping)
	if err := ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := ch.Deliver(t.Context(), mail("a")); out[0].State != team.Accepted {
		t.Fatalf("%+v", out)
	}
	s.with(func() {
		if len(s.keys) != 1 || s.keys[0] != "Escape" {
			t.Errorf("keys %q", s.keys)
		}
		if gap := s.pasteAt.Sub(s.keyAt); gap < escapeAlone {
			t.Errorf("typed %s after Escape", gap)
		}
	})
}
