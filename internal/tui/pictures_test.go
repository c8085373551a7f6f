package tui

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/viewtest"
)

// shop is a model that shows a day of the team of docs/screens.
func shop(day viewtest.Day, cols, rows int) *model {
	for _, s := range []view.Snapshot{day.Before, day.After} { // the recording has them apart
		for i, x := range s.Tasks {
			s.Tasks[i].DependsOn = day.Depends[x.ID]
		}
	}
	m := shownOf(day.Before, cols, rows)
	m.now, m.style = day.Now, Style{On: true}
	for _, r := range day.Requests {
		m.request[r.ID] = r
	}
	m.changes, m.files = day.Changes, view.ParseDiff(day.Changes.Patch)
	return m
}

// TestPictures checks that the pictures in docs/screens show the screens as they are drawn now;
// scripts/screens writes them.
func TestPictures(t *testing.T) {
	t.Parallel()
	day := viewtest.Read(t, filepath.Join("..", ".."))
	for _, p := range []struct {
		name       string
		cols, rows int
		with       func(*model)
	}{
		{"home", 108, 26, func(*model) {}},
		{"small", 40, 10, func(*model) {}},
		{"needs", 108, 20, func(m *model) { m.at = inNeeds }},
		{"tasks", 108, 20, func(m *model) { m.at = inTasks }},
		{"graph", 108, 14, func(m *model) { m.at, m.tasksAs, m.cursor = inTasks, "graph", "task:5" }},
		{"changes", 108, 20, func(m *model) {
			m.at, m.cursor, m.diff = inChanges, "file:price.go", cursor{in: true, path: "price.go", at: 5}
		}},
	} {
		m := shop(day, p.cols, p.rows)
		p.with(m)
		m.refresh()
		drawn(t, p.name+".svg", picture(m.draw().lines, p.cols))
	}
}

// TestRecording checks that the recording in docs/screens, a session of asciinema, shows the screens as
// they are drawn now: a person looks, approves a permission, and looks at the tasks and at the changes
// of a member.
func TestRecording(t *testing.T) {
	t.Parallel()
	const cols, rows = 108, 26
	day := viewtest.Read(t, filepath.Join("..", ".."))
	m := shop(day, cols, rows)
	var b strings.Builder
	write := func(line any) {
		t.Helper()
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(text, '\n'))
	}
	write(struct {
		Version int    `json:"version"`
		Width   int    `json:"width"`
		Height  int    `json:"height"`
		Title   string `json:"title"`
	}{2, cols, rows, "teamctl: who needs you, and the answer"})
	for _, step := range []struct {
		at   float64 // seconds
		does func()
	}{
		{0, func() {}},
		{2, func() { m.cursor = needID(day.Before.Needs[1]) }},
		{5, func() { m.cursor = needID(day.Before.Needs[0]) }},
		{7, func() { m.snap, m.toast = day.After, "request 1 of builder is approved" }},
		{10, func() { m.at, m.toast, m.cursor = inTasks, "", "task:4" }},
		{13, func() { m.tasksAs = "graph" }},
		{17, func() { m.at, m.cursor, m.diff = inChanges, "file:price.go", cursor{in: true, path: "price.go", at: 5} }},
		{22, func() { m.at = inTeam }},
	} {
		step.does()
		m.refresh()
		write([]any{step.at, "o", "\x1b[H\x1b[2J" + strings.Join(m.draw().lines, "\r\n")})
	}
	drawn(t, "day.cast", b.String())
}

// drawn compares a file of docs/screens with what it has to be.
func drawn(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "screens", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is stale, %v: scripts/screens writes it", path, err)
	}
}

// picture is a drawn screen as an SVG.
func picture(lines []string, cols int) string {
	const wide, high = 8.4, 18.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">`+"\n", int(float64(cols)*wide)+16, int(float64(len(lines))*high)+16)
	b.WriteString("<style>text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d4d4d4;white-space:pre}" +
		".b{font-weight:700;fill:#fff}.d{fill:#8a8a8a}.r{fill:#f48771}.g{fill:#89d185}.y{fill:#e2c08d}.c{fill:#75beff}</style>\n" +
		`<rect width="100%" height="100%" rx="6" fill="#1e1e1e"/>` + "\n")
	classes := map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "36": "c"}
	for i, line := range lines {
		at, class, reverse := 0, "", false
		for j, part := range strings.Split(line, "\x1b[") {
			if j > 0 {
				code, rest, _ := strings.Cut(part, "m")
				class, part = classes[code], rest
				reverse = code == "7" || reverse && code != "0"
			}
			w := view.Width(part)
			if reverse && part != "" {
				fmt.Fprintf(&b, `<rect class="%s" opacity="0.3" x="%.1f" y="%.0f" width="%.1f" height="%.0f"/>`+"\n", class, 8+float64(at)*wide, 8+float64(i)*high, float64(w)*wide, high)
			}
			if text := strings.TrimLeft(part, " "); strings.TrimSpace(text) != "" {
				indent := w - view.Width(text)
				text = strings.TrimRight(text, " ")
				attr := ""
				if class != "" {
					attr = ` class="` + class + `"`
				}
				fmt.Fprintf(&b, `<text%s x="%.1f" y="%.0f" textLength="%.1f">%s</text>`+"\n", attr, 8+float64(at+indent)*wide, 8+float64(i+1)*high-5, float64(view.Width(text))*wide, html.EscapeString(text))
			}
			at += w
		}
	}
	return b.String() + "</svg>\n"
}
