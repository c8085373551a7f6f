package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// cart is a team with a member that has changed files.
type cart struct{ fuzzed }

func (c *cart) Changes(context.Context, string, string) (view.Changes, error) {
	return view.Changes{Member: "worker-1", Patch: cartPatch}, nil
}

// TestPager checks that the changes of the selected file are piped through the person's pager, that only the
// colours of its output get through, that it can be scrolled and searched, and that leaving it ends the program
// and leads back to the line.
func TestPager(t *testing.T) {
	t.Parallel()
	s := newOnPaper(t, &cart{}, &cart{})
	m := s.m
	m.style = Style{On: true}
	m.at, m.cursor = inChanges, "file:price.go"
	m.setChanges(view.Changes{Member: "worker-1", Patch: cartPatch}, view.ParseDiff(cartPatch))
	m.refresh()
	m.choose("file:price.go")
	s.presses("enter", "j")
	line := m.diff
	if !line.in || line.path != "price.go" {
		t.Fatalf("the cursor is at %+v", line)
	}
	s.presses("|")
	if m.at != inChanges || !strings.Contains(m.toast, "no pager is set") {
		t.Fatalf("without a pager: %q at %s", m.toast, m.at)
	}

	asked := make(chan string, 1)
	answer := make(chan []string)
	ended := make(chan struct{}, 1)
	s.ui.Pager = func(ctx context.Context, patch string, cols int) ([]string, error) {
		if cols != m.cols-2 {
			t.Errorf("it is told of %d columns", cols)
		}
		asked <- patch
		select {
		case lines := <-answer:
			return lines, nil
		case <-ctx.Done():
			ended <- struct{}{}
			return nil, ctx.Err()
		}
	}
	s.presses("|")
	if got := <-asked; !strings.HasPrefix(got, "diff --git a/price.go b/price.go\n") || strings.Contains(got, "cart.go") {
		t.Errorf("it gets %q", got)
	}
	s.shows("price.go  of worker-1, the pager is running")
	out := []string{"\x1b[32mfirst\x1b[0m\x1b]0;title\x07\x1b[2J\x1b[5;5Hhere\u202e"}
	for range 60 {
		out = append(out, "more")
	}
	answer <- append(out, "\x1b[7mthe end")
	s.shows("firsthere")
	frame := strings.Join(s.frame.lines, "\n")
	if !strings.Contains(frame, "\x1b[32mfirst") || strings.ContainsAny(frame, "\a\u202e") || strings.Contains(frame, "\x1b[2J") || strings.Contains(frame, "\x1b]") || strings.Contains(frame, "5;5H") {
		t.Errorf("what gets through: %q", frame)
	}
	s.presses("G")
	s.shows(" the end")
	s.presses("g", "/", "e", "n", "d", "enter")
	s.shows("›the end")
	s.presses("esc", "esc")
	if m.at != inChanges || m.diff != line || m.paged != nil {
		t.Errorf("Esc leads to %+v in %s", m.diff, m.at)
	}

	for _, leave := range []string{"esc", "|", "2"} {
		m.at, m.diff = inChanges, line
		m.refresh()
		m.choose("file:price.go")
		s.presses("|")
		<-asked
		s.presses(leave)
		select {
		case <-ended:
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s leaves the program running", leave)
		}
		if m.paged != nil || m.at == inPager {
			t.Errorf("%s leads to %s", leave, m.at)
		}
	}

	s.ui.Pager = func(context.Context, string, int) ([]string, error) {
		return nil, team.Errorf(team.CodeUnavailable, "delta: exit 2: no such theme")
	}
	m.at, m.diff = inChanges, line
	m.refresh()
	m.choose("file:price.go")
	s.presses("|")
	s.shows("the pager: delta: exit 2: no such theme")
	if m.at != inChanges || m.diff != line {
		t.Errorf("after a failure: %+v in %s", m.diff, m.at)
	}
}

// TestPagerConfig checks the pager in ui.yaml.
func TestPagerConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "",
		"pager:":                             "",
		"pager: []":                          "",
		"pager: delta":                       "delta",
		"pager: [delta, --width, 80, 'x y']": "delta|--width|80|x y",
		"pager: delta --dark":                "ui.yaml:1:8: pager is one program: arguments need a list, [delta, --dark]",
		"pager: {a: b}":                      "ui.yaml:1:8: pager is a program, or a list of it and its arguments",
		"pager: ['']":                        "ui.yaml:1:9: pager is a program, or a list of it and its arguments",
		"pagr: delta":                        `ui.yaml:1:1: unknown key "pagr" (did you mean pager?)`,
	} {
		c, err := ParseConfig([]byte(text))
		got := strings.Join(c.Pager, "|")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestPatchOf checks that the parts of a patch are those of its files.
func TestPatchOf(t *testing.T) {
	t.Parallel()
	files := view.ParseDiff(cartPatch)
	var all string
	for _, f := range files {
		part := view.PatchOf(cartPatch, files, f.Path)
		again := view.ParseDiff(part)
		if len(again) != 1 || again[0].Path != f.Path || !slices.Equal(again[0].Lines, f.Lines) {
			t.Errorf("the part of %s: %q", f.Path, part)
		}
		all += part
	}
	if all != cartPatch || view.PatchOf(cartPatch, files, "no.go") != "" || view.PatchOf("", nil, "no.go") != "" {
		t.Errorf("all parts are %q", all)
	}
}
