package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// TestGroups checks that above 50 members those with similar names share one row with counts, that enter
// opens it, and that a filter or a requested name shows the members themselves.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := crowd(60)
	for i := range 10 {
		s.Members[len(s.Members)-1-i].Name = fmt.Sprintf("lint-%d", i)
	}
	s.Members[1].Name = "docs"
	m := shownOf(s, 120, 36)
	_, keys, _ := inHand(t, m, &archive{})
	ids := func() string {
		var out []string
		for _, it := range m.sections[1].items {
			out = append(out, strings.TrimPrefix(it.id, "member:"))
		}
		return strings.Join(out, " ")
	}
	if got := ids(); got != "docs members:worker-* members:lint-*" {
		t.Fatalf("the rows are %s", got)
	}
	m.choose("members:worker-*")
	if got := strip(m.sections[1].items[1].line(90)); got != "+ worker-* 49  ? 7 waiting  ✗ 7 failed  ▸ 14 working  · 21 idle" {
		t.Errorf("the row is %q", got)
	}
	if foot := m.foot(false); !strings.Contains(foot, "enter open") {
		t.Errorf("the footer names no key that opens it: %s", foot)
	}
	keys("enter")
	if got := ids(); !strings.HasPrefix(got, "docs members:worker-* worker-8 ") || !strings.HasSuffix(got, " members:lint-*") || m.cursor != "members:worker-*" {
		t.Errorf("open, with %s selected: %s", m.cursor, got)
	}
	keys("enter")
	if got := ids(); got != "docs members:worker-* members:lint-*" {
		t.Errorf("closed: %s", got)
	}
	r := &run{m: m, ui: &UI{Select: "lint-3"}}
	r.selectFirst()
	if m.cursor != "member:lint-3" {
		t.Errorf("%s is selected: %s", m.cursor, m.toast)
	}
	m.filter, m.lastKey = "lint-", time.Time{}
	m.refresh()
	if n := len(m.sections[1].items); n != 10 {
		t.Errorf("a filter shows %d rows", n)
	}
}

// TestIdleRowOpens checks that the row of idle members can be opened.
func TestIdleRowOpens(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(20), 120, 36)
	_, keys, _ := inHand(t, m, &archive{})
	before := len(m.sections[1].items)
	m.choose("members:idle")
	keys("enter")
	if after := len(m.sections[1].items); after <= before {
		t.Errorf("%d rows, and %d before", after, before)
	}
}

// TestOnlyDrawnRowsAreBuilt checks that with 500 members and as many lanes no more rows are built than the
// screen has lines.
func TestOnlyDrawnRowsAreBuilt(t *testing.T) {
	t.Parallel()
	s := crowd(500)
	for i := range s.Members {
		s.Members[i].Name += "x" // no groups
		s.Members[i].Activity = "working"
	}
	for _, at := range []place{inTeam, inTime} {
		m := shownOf(s, 200, 50)
		m.at, m.past = at, pastOf(s)
		m.refresh()
		made, rows := 0, 0
		for i := range m.sections {
			for j := range m.sections[i].items {
				rows++
				line := m.sections[i].items[j].line
				m.sections[i].items[j].line = func(w int) string { made++; return line(w) }
			}
		}
		m.draw()
		if made > m.rows || rows < 500 {
			t.Errorf("%s: %d of %d rows are made for %d lines", at, made, rows, m.rows)
		}
	}
}

func BenchmarkFrameOf500(b *testing.B) {
	s := crowd(500)
	m := shownOf(s, 200, 50)
	for b.Loop() {
		m.refresh()
		if f := m.draw(); view.Width(f.lines[0]) == 0 {
			b.Fatal("an empty frame")
		}
	}
}
