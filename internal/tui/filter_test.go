package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// TestFilterWhileTyped checks that a filter and another log apply at once, leave nothing behind that
// has not gone, and that titles say how many rows are shown.
func TestFilterWhileTyped(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, &fuzzed{})
	s.m.cols, s.m.rows = 160, 40
	s.look(0)
	key := func(k string) string {
		s.event(term.Event{Kind: term.Key, Key: k, At: s.now})
		return s.look(200 * time.Millisecond)
	}
	var text string
	for _, k := range strings.Split("/state:waiting", "") {
		text = key(k)
	}
	for _, want := range []string{"! 4 NEED YOU, 2 of 4 shown", "MEMBERS 8, 2 of 8 shown", "permission  worker-1", "permission  worker-8"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "gone: ") || strings.Contains(text, "worker-4") {
		t.Errorf("rows that do not match stay:\n%s", text)
	}
	if text = key("esc"); strings.Contains(text, "gone: ") || strings.Contains(text, " shown") || !strings.Contains(text, "worker-4") {
		t.Errorf("without the filter:\n%s", text)
	}

	for filter, want := range map[string][]string{
		"state:in_progress": {"task:101", "task:102", "task:3"},
		"agent:claude":      {"task:101", "task:102", "task:4"},
		"agent:builder":     {"task:1", "task:3"}, // its owner is not known
		"state:stuck":       {"task:6"},
	} {
		s.m.filter = filter
		s.m.refresh()
		var got []string
		for _, it := range s.m.sections[2].items {
			got = append(got, it.id)
		}
		for _, id := range want {
			if !strings.Contains(strings.Join(got, " ")+" ", id+" ") {
				t.Errorf("%s: %v, want %v", filter, got, want)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
	s.m.filter = ""

	m := s.m
	m.at, m.past, m.sections = inTime, pastOf(m.snap), nil
	s.look(0)
	for _, another := range []func(p *past){
		func(p *past) { p.logKind = "mail" },
		func(p *past) { p.logAll = true },
	} {
		key("j")
		s.apply(func(m *model) {
			another(&m.past)
			m.past.log = []view.Event{{At: epoch, Text: "another log"}}
		})
		if text := s.look(100 * time.Millisecond); strings.Contains(text, "gone: ") || !strings.Contains(text, "another log") {
			t.Errorf("another log:\n%s", text)
		}
		m.past.log = pastOf(m.snap).log
		s.look(settle)
	}
}

// TestPasteIntoFields checks that the fields of the filter and of the lists take the first line of a paste.
func TestPasteIntoFields(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, &fuzzed{})
	s.look(0)
	for _, k := range []string{"/", ":", "?"} {
		s.event(term.Event{Kind: term.Key, Key: k, At: s.now})
		s.event(term.Event{Kind: term.Paste, Text: "\nworker-1\r\nworker-2", At: s.now})
		if got := s.m.over.field.text; got != "worker-1" {
			t.Errorf("%s: %q", k, got)
		}
		if k == "/" && s.m.filter != "worker-1" {
			t.Errorf("filter %q", s.m.filter)
		}
		s.event(term.Event{Kind: term.Key, Key: "esc", At: s.now})
	}
}
