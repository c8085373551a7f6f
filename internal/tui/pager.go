package tui

import (
	"context"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// paged is the output of the person's pager for the changes of a file.
type paged struct {
	path  string
	row   string // that was selected
	from  cursor // in the changes
	width int    // of the terminal that the program is told of
	have  bool
	lines []string
	stop  context.CancelFunc
}

// openPager shows the changes of the selected file as the person's pager prints them.
func (r *run) openPager() {
	m := r.m
	f, ok := m.file()
	patch := view.PatchOf(m.changes.Patch, m.files, f.Path)
	switch {
	case r.ui.Pager == nil:
		m.say("no pager is set: pager in "+ConfigName+" names a program, such as delta", true)
		return
	case !ok || patch == "":
		m.say("no changes of a file are selected", true)
		return
	}
	p := &paged{path: f.Path, row: m.cursor, from: m.diff, width: max(1, m.cols-2)}
	r.goTo(inPager)
	ctx, cancel := context.WithCancel(r.teamCtx)
	p.stop, m.paged = cancel, p
	r.async(ctx, func(ctx context.Context) func(*model) {
		lines, err := r.ui.Pager(ctx, patch, p.width)
		return func(m *model) {
			switch {
			case m.paged != p: // it was left
			case err != nil:
				r.leavePager()
				m.fail("the pager:", err, "")
			default:
				p.have, p.lines = true, lines
			}
		}
	})
}

// stopPager ends the program, whose output is not shown any more.
func (r *run) stopPager() {
	if p := r.m.paged; p != nil {
		p.stop()
		r.m.paged = nil
	}
}

// leavePager goes back to the changes.
func (r *run) leavePager() {
	m, p := r.m, r.m.paged
	r.goTo(inChanges)
	if p == nil {
		return
	}
	m.refresh()
	m.choose(p.row)
	if f, ok := m.file(); ok && f.Path == p.path {
		m.diff = p.from
	}
}

// inPager is a command in the output of the pager; false where it is the same as elsewhere.
func (r *run) inPager(id string) bool {
	m := r.m
	switch {
	case id == "back" && m.filter == "", id == "pager":
		r.leavePager()
	case id == "open":
	default:
		return false
	}
	return true
}

// pagerLines returns the output of the pager, of which only text and colours get through.
func (m *model) pagerLines() []string {
	if m.paged == nil {
		return nil
	}
	out := make([]string, len(m.paged.lines))
	for i, l := range m.paged.lines {
		if l = view.Colors(l); !m.style.On {
			l = strip(l)
		} else if strings.Contains(l, "\x1b") {
			l += "\x1b[0m"
		}
		out[i] = l
	}
	return out
}

func (m *model) drawPager(f *frame, room int) {
	p := m.paged
	if p == nil {
		return
	}
	head := m.style.Bold(plain.Visible(p.path)) + m.style.Dim("  of "+view.Clean(m.changes.Member))
	if !p.have {
		head += m.style.Dim(", the pager is running")
	}
	f.add(" " + view.Cut(head, m.cols-1))
	m.drawText(f, m.pagerLines(), room-1)
}

// pagerKeys are the keys of the output of the pager.
func (m *model) pagerKeys() []string {
	keys := []string{m.keys.hint("back", "back"), m.keys.hint("filter", "search")}
	if m.filter != "" {
		keys = append(keys, m.keys.hint("next-change", "next"))
	}
	return keys
}
