package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// TestHelpFindsKeys checks that the help finds a command by each of its keys, has the commands of this place
// first, and cuts no title.
func TestHelpFindsKeys(t *testing.T) {
	t.Parallel()
	for _, c := range commands() {
		for _, key := range c.keys {
			m := shownOf(crowd(8), 80, 24)
			m.over = overlay{kind: helpOverlay, choices: m.choices(true), field: field{text: key}}
			if !slices.ContainsFunc(m.matching(), func(x choice) bool { return x.command == c.id }) {
				t.Errorf("%q does not find %s", key, c.id)
			}
		}
	}
	for _, size := range [][2]int{{120, 36}, {80, 24}, {40, 12}} {
		m := shownOf(crowd(8), size[0], size[1])
		m.over = overlay{kind: helpOverlay, title: "keys", choices: m.choices(true)}
		all, headed := "", false
		for at := range m.over.choices {
			m.over.at = at
			lines := m.draw().lines
			for _, l := range lines[2 : len(lines)-1] {
				all += " " + strings.TrimLeft(strip(l), " ›")
			}
			headed = headed || strings.Contains(strings.Join(lines, "\n"), "OTHER PLACES")
			if !strings.Contains(strings.Join(lines, "\n"), "›") {
				t.Fatalf("%v: choice %d is not visible:\n%s", size, at, strings.Join(lines, "\n"))
			}
		}
		all = strings.Join(strings.Fields(all), " ")
		for _, c := range m.over.choices {
			words := strings.Fields(c.title)
			if !strings.Contains(all, strings.Join(words[max(0, len(words)-2):], " ")) && c.command != "" {
				t.Errorf("%v: the end of %q is cut", size, c.title)
			}
		}
		if !headed {
			t.Errorf("%v: no heading", size)
		}
	}
	m := shownOf(crowd(8), 120, 36)
	m.at = inTime
	list := m.choices(true)
	index := func(id string) int {
		return slices.IndexFunc(list, func(c choice) bool { return c.command == id })
	}
	if index("zoom-in") > index("base") || list[index("zoom-in")].away || !list[index("base")].away {
		t.Error("the commands of another place come before those of this one")
	}
}

// TestPaletteHasAll checks that the palette has every action with its line at a shell, and that one which the
// selected row does not allow asks for what it applies to, or says why there is nothing.
func TestPaletteHasAll(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, nil, &fuzzed{})
	s.look(0)
	m := s.m
	for _, a := range view.Actions() {
		i := slices.IndexFunc(m.choices(true), func(c choice) bool { return c.action.ID == a.ID })
		if i < 0 {
			t.Errorf("no %s", a.ID)
			continue
		}
		c := m.choices(true)[i]
		if !strings.HasPrefix(c.line, "teamctl ") {
			t.Errorf("%s: line %q", a.ID, c.line)
		}
		if !c.away {
			continue
		}
		s.chosen(c, term.Event{Kind: term.Key, Key: "enter", At: s.now})
		if m.over.kind == noOverlay && m.toast == "" || m.over.kind == choiceOverlay && len(m.over.choices) == 0 {
			t.Errorf("%s does nothing: %+v", a.ID, m.over)
		}
		m.over, m.toast = overlay{}, ""
	}
	if it, _ := m.row(); it.on.Need == nil {
		t.Fatalf("no need is selected: %+v", it)
	}
	key := func(k string) string {
		s.event(term.Event{Kind: term.Key, Key: k, At: s.now})
		return s.look(time.Second)
	}
	for _, k := range []string{":", "k", "i", "l", "l", "space", "{", "enter"} {
		key(k)
	}
	for _, k := range strings.Split("worker-3", "") {
		key(k)
	}
	if text := key("enter"); !strings.Contains(text, "kill worker-3: this cannot be taken back") {
		t.Errorf("no question about worker-3:\n%s", text)
	}
	m.over, m.readOnly = overlay{}, true
	for _, c := range m.choices(true) {
		if c.action.Operation != "" {
			t.Errorf("read only, and %s", c.action.ID)
		}
	}
}
