package vt

import "slices"

// cell is one column of a line.
type cell struct {
	r     rune   // 0: blank; negative: minus one minus the index into Screen.clusters
	style uint16 // index into Screen.styles
	width uint8  // 0 for the second half of a wide character
}

// empty reports whether c can be omitted at the end of a line.
func (c cell) empty() bool { return c.style == 0 && c.width == 1 && (c.r == 0 || c.r == ' ') }

// line is as long as the screen is wide, or in the history as long as its text.
type line struct {
	cells   []cell
	wrapped bool // continues on the next line
}

// colours: 0 is the default, palette|n one of 256, direct|rgb.
const (
	palette uint32 = 1 << 24
	direct  uint32 = 2 << 24
)

// attributes of a style.
const (
	bold = 1 << iota
	faint
	italic
	blink
	reverse
	conceal
	strike
	overline
)

type style struct {
	fg, bg, under uint32 // under: colour of the underline
	attr          uint16
	line          uint8 // style of the underline, 0 to 5
}

// styleMax limits the table of styles; if a program uses more at one time (a
// picture in direct colours), the rest gets the plain style.
const styleMax = 1 << 15

// intern returns the index of a style. It discards unused styles when the table
// is full.
func (s *Screen) intern(st style) uint16 {
	if st == s.styles[s.lastStyle] {
		return s.lastStyle
	}
	i, ok := s.styleOf[st]
	if !ok {
		if len(s.styles) >= styleMax {
			s.collect()
		}
		if len(s.styles) >= styleMax {
			return 0
		}
		i = uint16(len(s.styles))
		s.styles = append(s.styles, st)
		s.styleOf[st] = i
	}
	s.lastStyle = i
	return i
}

// collect renumbers the styles and clusters in use on the screens and in the
// history.
func (s *Screen) collect() {
	styles, clusters := s.styles, s.clusters
	s.styles, s.clusters, s.lastStyle = []style{{}}, nil, 0
	s.styleOf = map[style]uint16{{}: 0}
	moved := map[uint16]uint16{0: 0}
	s.each(func(c *cell) {
		to, ok := moved[c.style]
		if !ok {
			to = uint16(len(s.styles))
			s.styles = append(s.styles, styles[c.style])
			s.styleOf[styles[c.style]] = to
			moved[c.style] = to
		}
		c.style = to
		if c.r < 0 {
			s.clusters = append(s.clusters, clusters[-c.r-1])
			c.r = rune(-len(s.clusters))
		}
	})
}

func (s *Screen) each(f func(c *cell)) {
	for _, ls := range [][]line{s.primary.lines, s.alt.lines, s.history.lines} {
		for i := range ls {
			for j := range ls[i].cells {
				f(&ls[i].cells[j])
			}
		}
	}
}

// clusterMax limits the combining characters of one cell.
const (
	clusterMax  = 32
	clustersMax = 1 << 15
)

// combine adds a combining character to a cell.
func (s *Screen) combine(c *cell, r rune) {
	old := string(c.r)
	switch {
	case c.r < 0:
		old = s.clusters[-c.r-1]
	case c.r == 0:
		old = " "
	}
	if len(old) > clusterMax {
		return
	}
	if len(s.clusters) >= clustersMax {
		s.collect()
	}
	if len(s.clusters) >= clustersMax {
		return
	}
	s.clusters = append(s.clusters, old+string(r))
	c.r = rune(-len(s.clusters))
}

// history is a ring buffer of the lines that have scrolled off the top of the
// primary screen.
type history struct {
	lines []line
	first int
	max   int
}

// push appends a copy of a line, without its blank end.
func (h *history) push(l line) {
	if h.max == 0 {
		return
	}
	n := length(l.cells)
	if len(h.lines) < h.max {
		h.lines = append(h.lines, line{slices.Clone(l.cells[:n]), l.wrapped})
		return
	}
	to := &h.lines[h.first]
	to.cells = append(to.cells[:0], l.cells[:n]...)
	if cap(to.cells) > 2*n+64 { // release the memory of a long line
		to.cells = slices.Clone(to.cells)
	}
	to.wrapped = l.wrapped
	h.first = (h.first + 1) % h.max
}

// length returns the length of a row without its empty end.
func length(row []cell) int {
	n := len(row)
	for n > 0 && row[n-1].empty() {
		n--
	}
	return n
}

// at returns a line, counted from the oldest.
func (h *history) at(i int) line { return h.lines[(h.first+i)%len(h.lines)] }

func (h *history) clear() { h.lines, h.first = nil, 0 }
