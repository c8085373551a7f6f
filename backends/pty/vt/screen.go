package vt

import (
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// cursor is a position and the attributes that are saved with it.
type cursor struct {
	x, y    int
	pen     style
	wrap    bool // the last column was written: the next character wraps
	origin  bool
	charset [2]byte // G0, G1
	shift   uint8
}

// buffer is one of the two screens.
type buffer struct {
	lines []line
	saved cursor
}

// Screen is a terminal's state. It is not safe for concurrent use.
type Screen struct {
	cols, rows int

	primary, alt buffer
	history      history
	onAlt        bool

	cur         cursor
	top, bottom int // margins, inclusive
	tabs        []bool
	modes       map[int]bool // DEC private modes that differ from their default
	insert      bool
	newline     bool // LNM
	keypad      bool
	shape       int // DECSCUSR
	title       string
	kitty       []int       // stack of keyboard flags
	xtkeys      map[int]int // modifyOtherKeys and its like
	last        rune        // last printed character, for REP
	edge        int         // row in which the cursor reached the last column without a pending wrap, or -1

	styles    []style
	styleOf   map[style]uint16
	lastStyle uint16
	clusters  []string
	spare     []line // lines of a scroll; kept for their capacity

	parser parser
}

// MaxSize limits columns and rows: a cell takes eight bytes.
const MaxSize = 1000

// New returns a blank screen that keeps history lines of history.
func New(cols, rows, history int) *Screen {
	s := &Screen{
		cols: clamp(cols, 1, MaxSize), rows: clamp(rows, 1, MaxSize),
		styles: []style{{}}, styleOf: map[style]uint16{{}: 0},
	}
	s.history.max = history
	s.reset()
	return s
}

func (s *Screen) reset() {
	s.primary = buffer{lines: blankLines(s.rows, s.cols)}
	s.alt = buffer{}
	s.onAlt = false
	s.cur, s.edge = cursor{}, -1
	s.top, s.bottom = 0, s.rows-1
	s.modes = map[int]bool{}
	s.insert, s.newline, s.keypad, s.shape = false, false, false, 0
	s.kitty, s.xtkeys = nil, nil
	s.tabs = defaultTabs(s.cols)
}

func defaultTabs(cols int) []bool {
	t := make([]bool, cols)
	for i := 8; i < cols; i += 8 {
		t[i] = true
	}
	return t
}

func blankLines(rows, cols int) []line {
	ls := make([]line, rows)
	for i := range ls {
		ls[i].cells = make([]cell, cols)
		fill(ls[i].cells, cell{width: 1})
	}
	return ls
}

func fill(cs []cell, c cell) {
	for i := range cs {
		cs[i] = c
	}
}

// Size returns the number of columns and rows.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Cursor returns the cursor's column and row, from 0.
func (s *Screen) Cursor() (x, y int) { return s.cur.x, s.cur.y }

// Alternate reports whether the alternate screen is shown.
func (s *Screen) Alternate() bool { return s.onAlt }

// BracketedPaste reports whether the program has enabled bracketed paste.
func (s *Screen) BracketedPaste() bool { return s.modes[modePaste] }

func (s *Screen) buf() *buffer {
	if s.onAlt {
		return &s.alt
	}
	return &s.primary
}

func (s *Screen) row(y int) []cell { return s.buf().lines[y].cells }

// blank returns an empty cell in the pen's background.
func (s *Screen) blank() cell {
	c := cell{width: 1}
	if s.cur.pen.bg != 0 {
		c.style = s.intern(style{bg: s.cur.pen.bg})
	}
	return c
}

// erase blanks columns [from, to) of a row; if one half of a wide character is
// erased, so is the other.
func (s *Screen) erase(y, from, to int) {
	row := s.row(y)
	from, to = clamp(from, 0, s.cols), clamp(to, 0, s.cols)
	if from >= to {
		return
	}
	s.split(row, from)
	s.split(row, to)
	fill(row[from:to], s.blank())
	if to == s.cols {
		s.buf().lines[y].wrapped = false
	}
}

// split makes column x the start of a character.
func (s *Screen) split(row []cell, x int) {
	if x > 0 && x < len(row) && row[x].width == 0 {
		row[x-1] = cell{width: 1, style: row[x-1].style}
		row[x] = cell{width: 1, style: row[x].style}
	}
}

// ascii writes a run of printable ASCII.
func (s *Screen) ascii(p []byte) {
	if s.insert || s.cur.charset[s.cur.shift] != 0 {
		for _, b := range p {
			s.put(rune(b))
		}
		return
	}
	st := s.intern(s.cur.pen)
	for len(p) > 0 {
		if s.cur.wrap {
			s.wrapLine()
		}
		row := s.row(s.cur.y)
		n := min(len(p), s.cols-s.cur.x)
		at := row[s.cur.x : s.cur.x+n]
		s.split(row, s.cur.x)
		s.split(row, s.cur.x+n)
		for i := range at {
			at[i] = cell{r: rune(p[i]), style: st, width: 1}
		}
		s.cur.x += n
		s.last, s.edge = rune(p[n-1]), -1
		p = p[n:]
		if s.cur.x == s.cols {
			s.cur.x--
			if s.modes[modeNoWrap] {
				s.edge = s.cur.y
				if len(p) > 0 { // everything else overwrites the last column
					p = p[len(p)-1:]
				}
				continue
			}
			s.cur.wrap = true
		}
	}
}

func (s *Screen) wrapLine() {
	s.buf().lines[s.cur.y].wrapped = true
	s.cur.x, s.cur.wrap = 0, false
	s.index()
}

// put writes one character.
func (s *Screen) put(r rune) {
	if r < utf8.RuneSelf && s.cur.charset[s.cur.shift] == '0' {
		r = graphic(r)
	}
	w := 1
	if r >= 0x300 {
		w = displaywidth.Rune(r)
	}
	if w == 0 {
		s.pile(r)
		return
	}
	if w > s.cols {
		return
	}
	if s.cur.wrap && !s.modes[modeNoWrap] {
		s.wrapLine()
	}
	if s.cur.x+w > s.cols {
		if s.modes[modeNoWrap] {
			s.cur.x = s.cols - w
		} else {
			s.erase(s.cur.y, s.cur.x, s.cols)
			s.wrapLine()
		}
	}
	row := s.row(s.cur.y)
	if s.insert {
		s.insertCells(w)
	}
	s.split(row, s.cur.x)
	s.split(row, s.cur.x+w)
	st := s.intern(s.cur.pen)
	row[s.cur.x] = cell{r: r, style: st, width: uint8(w)}
	if w == 2 {
		row[s.cur.x+1] = cell{style: st}
	}
	s.last, s.edge = r, -1
	s.cur.x += w
	if s.cur.x >= s.cols {
		s.cur.x = s.cols - 1
		s.cur.wrap = !s.modes[modeNoWrap]
		if !s.cur.wrap {
			s.edge = s.cur.y
		}
	}
}

// pile adds a character without width to the one before the cursor.
func (s *Screen) pile(r rune) {
	x := s.cur.x
	if !s.cur.wrap && (s.edge != s.cur.y || x != s.cols-1) {
		x--
	}
	if x < 0 {
		return
	}
	row := s.row(s.cur.y)
	if row[x].width == 0 && x > 0 {
		x--
	}
	s.combine(&row[x], r)
}

// index moves down, scrolling at the lower margin.
func (s *Screen) index() {
	switch {
	case s.cur.y == s.bottom:
		s.scrollUp(s.top, 1)
	case s.cur.y < s.rows-1:
		s.cur.y++
	}
}

// reverseIndex moves up, scrolling at the upper margin.
func (s *Screen) reverseIndex() {
	switch {
	case s.cur.y == s.top:
		s.scrollDown(s.top, 1)
	case s.cur.y > 0:
		s.cur.y--
	}
}

// scrollUp removes n lines at row from, within the lower margin. Lines that
// leave the primary screen at its top are added to the history.
func (s *Screen) scrollUp(from, n int) {
	region := s.buf().lines[from : s.bottom+1]
	n = min(n, len(region))
	if from == 0 && !s.onAlt {
		for _, l := range region[:n] {
			s.history.push(l)
		}
	}
	s.spare = append(s.spare[:0], region[:n]...)
	copy(region, region[n:])
	s.blankLines(region[len(region)-n:])
}

// scrollDown inserts n lines at row from.
func (s *Screen) scrollDown(from, n int) {
	region := s.buf().lines[from : s.bottom+1]
	n = min(n, len(region))
	s.spare = append(s.spare[:0], region[len(region)-n:]...)
	copy(region[n:], region)
	s.blankLines(region[:n])
}

// blankLines replaces a part of the screen by the spare lines.
func (s *Screen) blankLines(to []line) {
	blank := s.blank()
	for i := range to {
		fill(s.spare[i].cells, blank)
		to[i] = line{cells: s.spare[i].cells}
	}
}

func (s *Screen) insertCells(n int) {
	row, x := s.row(s.cur.y), s.cur.x
	n = min(n, s.cols-x)
	s.split(row, x)
	s.split(row, s.cols-n)
	copy(row[x+n:], row[x:s.cols-n])
	fill(row[x:x+n], s.blank())
}

func (s *Screen) deleteCells(n int) {
	row, x := s.row(s.cur.y), s.cur.x
	n = min(n, s.cols-x)
	s.split(row, x)
	s.split(row, x+n)
	copy(row[x:], row[x+n:])
	fill(row[s.cols-n:], s.blank())
}

// enterAlt shows a blank alternate screen.
func (s *Screen) enterAlt() {
	if s.onAlt {
		return
	}
	s.alt = buffer{lines: blankLines(s.rows, s.cols)}
	s.onAlt = true
}

func (s *Screen) leaveAlt() {
	if !s.onAlt {
		return
	}
	s.onAlt = false
	s.alt = buffer{}
}

// Resize changes the size like xterm: lines are truncated or padded, not
// reflowed. Lines that no longer fit above the cursor move into the history.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clamp(cols, 1, MaxSize), clamp(rows, 1, MaxSize)
	if cols == s.cols && rows == s.rows {
		return
	}
	over := max(0, s.cur.y-rows+1)
	s.cur.y -= over
	for _, b := range []*buffer{&s.primary, &s.alt} {
		if b.lines == nil {
			continue
		}
		cut := over
		if b == &s.primary && s.onAlt {
			cut = max(0, b.saved.y-rows+1) // where its cursor will be again
			b.saved.y -= cut
		}
		for _, l := range b.lines[:cut] {
			if b == &s.primary {
				s.history.push(l)
			}
		}
		b.lines = b.lines[cut:]
		if len(b.lines) > rows {
			b.lines = b.lines[:rows]
		}
		for i := range b.lines {
			b.lines[i].cells = s.fit(b.lines[i].cells, cols)
		}
		b.lines = append(b.lines, blankLines(rows-len(b.lines), cols)...)
		b.saved.x, b.saved.y, b.saved.wrap = min(b.saved.x, cols-1), min(b.saved.y, rows-1), false
	}
	for x := s.cols; x < cols; x++ {
		s.tabs = append(s.tabs, x%8 == 0)
	}
	s.tabs = s.tabs[:cols]
	s.cols, s.rows = cols, rows
	s.top, s.bottom = 0, rows-1
	s.cur.x, s.cur.y, s.cur.wrap = min(s.cur.x, cols-1), clamp(s.cur.y, 0, rows-1), false
}

func (s *Screen) fit(row []cell, cols int) []cell {
	if cols < len(row) {
		s.split(row, cols)
		return append([]cell(nil), row[:cols]...)
	}
	n := len(row)
	row = append(row, make([]cell, cols-n)...)
	fill(row[n:], cell{width: 1})
	return row
}

// Scrolled brings the screen into the state after rows empty lines: a shortcut
// if none of the lines will be seen. ok is false if that differs from
// interpreting the lines.
func (s *Screen) Scrolled() (ok bool) {
	if s.parser.state != ground || s.top != 0 || s.bottom != s.rows-1 {
		return false
	}
	for range s.rows {
		s.cur.x, s.cur.wrap = 0, false
		s.index()
	}
	s.cur.y = s.rows - 1
	return true
}

func clamp(n, lo, hi int) int { return max(lo, min(n, hi)) }
