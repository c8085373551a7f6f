package vt

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text returns the screen as plain lines separated by newlines, preceded by at
// most history lines of history. It omits empty lines at the end. The alternate
// screen has no history.
func (s *Screen) Text(history int) string { return s.lines(history, s.appendText) }

// Colored is Text with sequences of SGR; each line has its own.
func (s *Screen) Colored(history int) string { return s.lines(history, s.appendRow) }

func (s *Screen) lines(history int, put func(b []byte, row []cell) []byte) string {
	var b []byte
	if !s.onAlt {
		n := len(s.history.lines)
		for i := max(0, n-history); i < n; i++ {
			b = append(put(b, s.history.at(i).cells), '\n')
		}
	}
	for _, l := range s.buf().lines {
		b = append(put(b, l.cells), '\n')
	}
	return strings.TrimRight(string(b), "\n")
}

func (s *Screen) appendText(b []byte, row []cell) []byte {
	start := len(b)
	for _, c := range row {
		b = s.appendChar(b, c)
	}
	for len(b) > start && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

func (s *Screen) appendChar(b []byte, c cell) []byte {
	switch {
	case c.width == 0:
		return b
	case c.r == 0:
		return append(b, ' ')
	case c.r < 0:
		return append(b, s.clusters[-c.r-1]...)
	}
	return utf8.AppendRune(b, c.r)
}

// Redraw returns a stream that brings a terminal of the same size into this
// state, with at most history lines of history above the screen. The previous
// contents of the terminal scroll into its own history. The terminal must be in
// its default modes.
func (s *Screen) Redraw(history int) []byte {
	b := make([]byte, 0, 4096)
	// Without automatic margins a smaller terminal truncates long lines.
	b = append(b, "\x1b[0m\x1b[?6l\x1b[r\x1b[4l\x1b[?7l\x1b[?25l\x1b(B\x0f"...)
	b = at(b, 0, s.rows-1)
	for range s.rows {
		b = append(b, '\n')
	}
	b = append(b, "\x1b[H\x1b[2J"...)
	n := len(s.history.lines)
	for i := max(0, n-history); i < n; i++ {
		b = append(s.appendRow(b, s.history.at(i).cells), "\r\n"...)
	}
	for y, l := range s.primary.lines {
		if y > 0 {
			b = append(b, "\r\n"...)
		}
		b = s.appendRow(b, l.cells)
	}
	if s.onAlt {
		b = s.appendSaved(b, s.primary)
		b = append(b, "\x1b[?1049h\x1b[0m\x1b[?6l\x1b[?7l\x1b(B\x0f\x1b[H\x1b[2J"...)
		for y, l := range s.alt.lines {
			b = s.appendRow(at(b, 0, y), l.cells)
		}
	}
	b = append(s.appendSaved(b, *s.buf()), "\x1b7\x1b[?6l"...)
	b = s.appendModes(b)
	return s.appendCursor(b)
}

// at appends a move to a column and row, both from 0.
func at(b []byte, x, y int) []byte {
	b = strconv.AppendInt(append(b, "\x1b["...), int64(y+1), 10)
	b = strconv.AppendInt(append(b, ';'), int64(x+1), 10)
	return append(b, 'H')
}

// appendRow writes one line from its first column, with a pen of its own.
func (s *Screen) appendRow(b []byte, row []cell) []byte {
	var pen uint16
	for _, c := range row[:length(row)] {
		if c.style != pen {
			b = appendSGR(b, s.styles[c.style])
			pen = c.style
		}
		b = s.appendChar(b, c)
	}
	if pen != 0 {
		b = append(b, "\x1b[0m"...)
	}
	return b
}

// appendSaved moves the cursor to a screen's saved cursor, so that it can be
// saved. There are no margins yet, so origin mode does not move it.
func (s *Screen) appendSaved(b []byte, on buffer) []byte {
	if on.saved.origin {
		b = append(b, "\x1b[?6h"...)
	}
	return s.appendPosition(b, on, on.saved, on.saved.y)
}

// appendPosition moves the cursor to c, in row y of its screen as the terminal
// counts, with the pen and the character sets of c.
func (s *Screen) appendPosition(b []byte, on buffer, c cursor, y int) []byte {
	if c.wrap { // only writing the last column again produces this state
		row := on.lines[c.y].cells
		x := c.x
		if row[x].width == 0 && x > 0 {
			x--
		}
		b = append(at(b, x, y), "\x1b(B\x0f\x1b[?7h"...)
		b = appendSGR(b, s.styles[row[x].style])
		b = s.appendChar(b, row[x])
	} else {
		b = at(b, c.x, y)
	}
	return appendSGR(appendCharset(b, c), c.pen)
}

func appendCharset(b []byte, c cursor) []byte {
	for i, lead := range []string{"\x1b(", "\x1b)"} {
		b = append(b, lead...)
		if c.charset[i] != 0 {
			b = append(b, c.charset[i])
		} else {
			b = append(b, 'B')
		}
	}
	return append(b, 0x0f-c.shift)
}

func (s *Screen) appendModes(b []byte) []byte {
	set := func(m int) {
		b = strconv.AppendInt(append(b, "\x1b[?"...), int64(m), 10)
		b = append(b, 'h')
	}
	if s.title != "" {
		b = append(append(append(b, "\x1b]2;"...), s.title...), "\x1b\\"...)
	}
	ms := make([]int, 0, len(s.modes))
	for m := range s.modes {
		if m > 0 {
			ms = append(ms, m)
		}
	}
	slices.Sort(ms)
	for _, m := range ms {
		set(m)
	}
	if s.keypad {
		b = append(b, "\x1b="...)
	}
	if s.insert {
		b = append(b, "\x1b[4h"...)
	}
	if s.newline {
		b = append(b, "\x1b[20h"...)
	}
	if s.shape != 0 {
		b = append(strconv.AppendInt(append(b, "\x1b["...), int64(s.shape), 10), " q"...)
	}
	for _, f := range s.kitty {
		b = append(strconv.AppendInt(append(b, "\x1b[>"...), int64(f), 10), 'u')
	}
	for k, v := range s.xtkeys {
		b = strconv.AppendInt(append(b, "\x1b[>"...), int64(k), 10)
		b = append(strconv.AppendInt(append(b, ';'), int64(v), 10), 'm')
	}
	if s.top != 0 || s.bottom != s.rows-1 {
		b = strconv.AppendInt(append(b, "\x1b["...), int64(s.top+1), 10)
		b = append(strconv.AppendInt(append(b, ';'), int64(s.bottom+1), 10), 'r')
	}
	return b
}

// appendCursor restores the cursor, with its pen and attributes.
func (s *Screen) appendCursor(b []byte) []byte {
	c := s.cur
	y := c.y
	if c.origin {
		b = append(b, "\x1b[?6h"...)
		y -= s.top
	}
	b = s.appendPosition(b, *s.buf(), c, y)
	if s.modes[modeNoWrap] {
		b = append(b, "\x1b[?7l"...)
	} else {
		b = append(b, "\x1b[?7h"...)
	}
	if !s.modes[modeHidden] {
		b = append(b, "\x1b[?25h"...)
	}
	return b
}

// Restore returns a stream that resets every mode that a program may have set
// in a terminal, and moves the cursor to the last line. alternate says whether
// the terminal shows the alternate screen.
func Restore(alternate bool) []byte {
	b := []byte("\x1b\\\x1b[0m")
	if alternate {
		b = append(b, "\x1b[?1049l"...)
	}
	b = append(b, "\x1b[!p\x1b[?6l\x1b[r\x1b[4l\x1b[20l\x1b(B\x1b)B\x0f\x1b>\x1b[0 q"...)
	for _, m := range restorable {
		if m == 1007 || m == 1035 || m == 1036 || m == 1039 || m == 1042 {
			continue // the defaults of terminals differ, so keep the terminal's
		}
		b = strconv.AppendInt(append(b, "\x1b[?"...), int64(m), 10)
		b = append(b, 'l')
	}
	return append(b, "\x1b[?2026l\x1b[<16u\x1b[>4m\x1b[?7h\x1b[?25h\x1b[999;1H"...)
}
