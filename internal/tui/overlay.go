package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// overlay is shown above a place until it is closed.
type overlay struct {
	kind   overlayKind
	title  string
	action view.Action
	deed   view.Deed
	draft  string // key of the typed text in drafts
	text   string // of a preview

	field    field
	approval int64    // of the request
	line     int      // of its plan, from 0: where the keys are
	mark     int      // the other end of the marked lines, from 1; 0: none are marked
	under    *overlay // what is shown again once a comment is typed
	choices  []choice
	at       int
	scroll   int
	opened   time.Time
}

type overlayKind int

const (
	noOverlay      overlayKind = iota
	requestOverlay             // a request in full
	inputOverlay               // a text for an action
	confirmOverlay             // the name of what is to be removed
	choiceOverlay              // the menu of a row
	paletteOverlay             // all available actions
	helpOverlay                // the keys of the place
	filterOverlay
	leaveOverlay   // there is unsent text
	previewOverlay // what an action would do
	startOverlay   // whether to run the first commands
)

// choice is a line of a menu or of the palette: a command of the screen, or an action.
type choice struct {
	title, key, line string
	command          string
	action           view.Action
	away             bool   // it does nothing on the selected row
	row              string // the row to select first
}

// overKeys returns the keys of what stands over a place. Those of text fields and lists are fixed. more
// is as in frame.
func (m *model) overKeys(more bool) []string {
	k, o := m.keys, m.over
	switch o.kind {
	case requestOverlay:
		keys := m.requestKeys()
		if m.planOpen() {
			keys = m.planKeys()
		}
		keys = append(keys, k.hint("back", "back"))
		if more {
			keys = append(keys, k.hint("scroll-down", "more"))
		}
		if m.request[o.approval].State == "pending" && m.onRequestRow() {
			keys = append(keys, k.hint("screen", "screen"), k.hint("help", "help"), k.hint("changes", "diff"))
		}
		return keys
	case inputOverlay:
		if o.comment() {
			return []string{"enter keep the draft", "ctrl-j new line"}
		}
		return []string{"enter send", "ctrl-j new line", "esc keep as a draft"}
	case confirmOverlay:
		return []string{"enter do it", "esc leave it"}
	case filterOverlay:
		return []string{"/" + o.field.text + "_" + m.searched(), "enter keep", "esc drop"}
	case startOverlay:
		return []string{"enter run", "any other key leaves it"}
	case previewOverlay:
		if o.text != "" && o.deed.Seen == "" {
			keys := []string{"any key leaves it"}
			if more {
				keys = append(keys, k.hint("scroll-down", "more"))
			}
			return keys
		}
		return []string{k.hint(o.action.ID, "do it"), "any other key leaves it"}
	case leaveOverlay:
		return []string{k.hint("quit", "leave"), "any other key stays"}
	case choiceOverlay, paletteOverlay, helpOverlay:
		return []string{"enter do", "esc back", "type to search"}
	case noOverlay:
	}
	return nil
}

// requestKeys are the keys of the actions on an open request: none once it is answered.
func (m *model) requestKeys() (keys []string) {
	if m.request[m.over.approval].State != "pending" || m.target().Thing != view.OnApproval {
		return nil
	}
	for _, a := range m.actions() {
		if a.Key != "" && slices.Contains(a.On, view.OnApproval) {
			keys = append(keys, a.Key+" "+a.Title)
		}
	}
	return keys
}

// onRequestRow reports whether the selected row is that of the open request: what acts on the row means
// another one otherwise.
func (m *model) onRequestRow() bool {
	it, ok := m.row()
	return ok && !it.gone && it.on.Need != nil && it.on.Need.Approval == m.over.approval
}

// comment reports the text of a comment, which is kept as a draft while it is typed.
func (o overlay) comment() bool { return o.kind == inputOverlay && o.action.Operation == "ReviewAdd" }

// field is an editable text. at is a byte offset.
type field struct {
	text string
	at   int
}

func (f *field) insert(s string) {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f {
			return r
		}
		return -1
	}, strings.ReplaceAll(s, "\r", "\n"))
	f.text = f.text[:f.at] + s + f.text[f.at:]
	f.at += len(s)
}

// key edits the text; false for a key without effect.
func (f *field) key(k string) bool {
	before, after := f.text[:f.at], f.text[f.at:]
	switch k {
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(before)
		f.text, f.at = before[:len(before)-n]+after, f.at-n
	case "delete":
		_, n := utf8.DecodeRuneInString(after)
		f.text = before + after[n:]
	case "left":
		_, n := utf8.DecodeLastRuneInString(before)
		f.at -= n
	case "right":
		_, n := utf8.DecodeRuneInString(after)
		f.at += n
	case "home", "ctrl-a":
		f.at = strings.LastIndexByte(before, '\n') + 1
	case "end", "ctrl-e":
		if i := strings.IndexByte(after, '\n'); i >= 0 {
			f.at += i
		} else {
			f.at = len(f.text)
		}
	case "up", "down":
		f.line(k == "up")
	case "ctrl-u":
		start := strings.LastIndexByte(before, '\n') + 1
		f.text, f.at = f.text[:start]+after, start
	case "ctrl-w":
		kept := strings.TrimRight(before, " ")
		kept = kept[:strings.LastIndexAny(kept, " \n")+1]
		f.text, f.at = kept+after, len(kept)
	case "ctrl-j":
		f.insert("\n")
	case "space":
		f.insert(" ")
	case "tab":
		f.insert("\t")
	default:
		if utf8.RuneCountInString(k) != 1 && (len(k) < 2 || k[0] < 0x80) {
			return false
		}
		f.insert(k)
	}
	return true
}

// line moves the cursor one line up or down, to the same column if possible.
func (f *field) line(up bool) {
	start := strings.LastIndexByte(f.text[:f.at], '\n') + 1
	column := utf8.RuneCountInString(f.text[start:f.at])
	to := 0
	if up {
		if start == 0 {
			return
		}
		to = strings.LastIndexByte(f.text[:start-1], '\n') + 1
	} else {
		i := strings.IndexByte(f.text[f.at:], '\n')
		if i < 0 {
			return
		}
		to = f.at + i + 1
	}
	for f.at = to; column > 0 && f.at < len(f.text) && f.text[f.at] != '\n'; column-- {
		_, n := utf8.DecodeRuneInString(f.text[f.at:])
		f.at += n
	}
}

// draw returns the text in a box, and the position of the cursor.
func (f field) draw(width, height int) (lines []string, x, y int) {
	width, height = max(1, width), max(1, height)
	for line := range strings.SplitSeq(f.text, "\n") {
		lines = append(lines, strings.Split(hardWrap(line, width), "\n")...)
	}
	before := strings.Split(f.text[:f.at], "\n")
	for i, line := range before {
		parts := strings.Split(hardWrap(line, width), "\n")
		if i < len(before)-1 {
			y += len(strings.Split(hardWrap(lineAt(f.text, i), width), "\n"))
			continue
		}
		y += len(parts) - 1
		x = view.Width(shown(parts[len(parts)-1]))
	}
	for i := range lines {
		lines[i] = shown(lines[i])
	}
	if x >= width {
		x = width - 1
	}
	if top := y - height + 1; top > 0 {
		lines, y = lines[min(top, len(lines)):], height-1
	}
	return lines[:min(len(lines), height)], x, y
}

func shown(s string) string { return plain.Visible(strings.ReplaceAll(s, "\t", "    ")) }

func lineAt(text string, i int) string { return strings.Split(text, "\n")[i] }

// hardWrap breaks a line after a number of cells.
func hardWrap(line string, width int) string {
	var b strings.Builder
	w := 0
	for _, r := range line {
		rw := view.Width(shown(string(r)))
		if w+rw > width && w > 0 {
			b.WriteByte('\n')
			w = 0
		}
		b.WriteRune(r)
		w += rw
	}
	return b.String()
}

// drawOverlay draws the overlay in the room below the header.
func (m *model) drawOverlay(f *frame, room int) {
	o := &m.over
	width := m.cols - 2
	switch o.kind {
	case requestOverlay:
		k := m.keys.first("scroll-down")
		lines, at, end, whole := m.requestDrawn(o.approval, width, true)
		if whole {
			if r := m.request[o.approval]; r.State == "pending" {
				f.seen[r.ID] = r.Seen()
			}
		}
		if m.planOpen() {
			m.planScroll(len(lines), at, end, room)
		}
		o.scroll = clamp(o.scroll, 0, max(0, len(lines)-room))
		f.more = len(lines) > room
		rest := lines[o.scroll:]
		if len(rest) > room {
			rest = append(slices.Clone(rest[:room-1]), m.style.Dim(fmt.Sprintf("%d more lines: %s", len(rest)-room+1, k)))
		}
		for _, l := range rest {
			f.add(" " + l)
		}
	case inputOverlay, confirmOverlay:
		head := wrapped(m.style.Bold(o.title), width)
		head = head[:min(len(head), max(1, room-1))]
		if o.kind == inputOverlay && o.approval != 0 && room > 6 {
			lines, _ := m.requestLines(o.approval, width)
			if o.comment() {
				lines = m.planQuote(o.deed, width)
			}
			head = append(slices.Clone(lines[:min(len(lines), room-4)]), head...)
		}
		for _, l := range head {
			f.add(" " + l)
		}
		top := len(f.lines)
		lines, x, y := o.field.draw(width-2, room-len(head))
		for _, l := range lines {
			f.add(" " + m.style.Dim("▏") + " " + l)
		}
		f.cursor, f.x, f.y = true, x+3, top+y
	case choiceOverlay, paletteOverlay, helpOverlay:
		list := m.matching()
		f.add(" " + m.style.Bold(o.title) + "  " + m.style.Dim("/") + plain.Visible(o.field.text))
		f.cursor, f.x, f.y = true, view.Width(o.title)+4+view.Width(plain.Visible(o.field.text)), len(f.lines)-1
		m.drawChoices(f, list, max(0, room-1))
	case previewOverlay:
		m.drawPreview(f, width, room)
	case startOverlay:
		var lines []string
		for _, l := range m.startLines() {
			lines = append(lines, wrapped(l, width)...)
		}
		if len(lines) <= room {
			f.preview = strings.Join(lines, "\n")
		}
		for _, l := range lines[:min(len(lines), room)] {
			f.add(" " + l)
		}
	case leaveOverlay:
		for _, l := range wrapped("There is text that was not sent:", width) {
			f.add(" " + l)
		}
		unsent := m.unsent()
		for _, name := range slices.Sorted(maps.Keys(unsent)) {
			f.add("   " + view.Cut(view.Clean(name)+": "+view.Clean(unsent[name]), width-2))
		}
	case filterOverlay:
		m.over.kind = noOverlay // the list stays visible
		g := m.draw()
		m.over.kind = filterOverlay
		f.lines = append(f.lines[:0], g.lines[:min(len(g.lines), room+1)]...)
		f.regions = g.regions
	case noOverlay:
	}
}

// matching returns the choices that have the typed key or contain the typed words.
func (m *model) matching() []choice {
	var out []choice
	typed := strings.TrimSpace(m.over.field.text)
	for _, c := range m.over.choices {
		if typed == "" || slices.Contains(strings.Fields(c.key), typed) || view.Matches(c.title+" "+c.line, typed) {
			out = append(out, c)
		}
	}
	return out
}

// asciiOnly replaces other characters by ASCII ones, cell for cell.
func asciiOnly(line string) string {
	var b strings.Builder
	for _, r := range line {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		if s, ok := asciiSigns[r]; ok {
			b.WriteString(s)
			continue
		}
		b.WriteString(strings.Repeat("?", view.Width(string(r))))
	}
	return b.String()
}

var asciiSigns = map[rune]string{
	'▸': "*", '·': ".", '✗': "x", '✓': "+", '◌': "o", '›': ">", '…': "~", '●': "*", '○': "o", '▏': "|", '↑': "^", '↓': "v",
	'│': "|", '─': "-", '┌': "+", '┐': "+", '└': "+", '┘': "+", '├': "+", '┤': "+", '┬': "+", '┴': "+", '┼': "+",
}
