package term

import (
	"bytes"
	"os"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/teamctl/teamctl/internal/plain"
)

// canvas makes of frames what a terminal must be sent: of a line that has changed only what differs.
// It writes the position of the cursor, attributes, text and the erasure of the rest of a line, which
// every terminal knows.
type canvas struct {
	lost    atomic.Bool // the terminal shows something else, or has another size
	profile colorprofile.Profile
	cols    int
	lines   []string // as in the frame
	rows    [][]cell
	spare   []cell // memory for a row
	out     bytes.Buffer
	pen     style
	cursor  bool // shown
	x, y    int  // of the cursor
}

// cell is a column of a row. A wide character has the text of the first one and leaves that of the
// others empty.
type cell struct {
	text   string
	style  style
	drifts bool // terminals do not agree on the width
}

var blank = cell{text: " "}

func newCanvas(color bool) *canvas {
	c := &canvas{profile: colorprofile.ASCII}
	if color {
		c.profile = colorprofile.Env(os.Environ())
	}
	c.lose()
	return c
}

// lose has the next frame written as a whole.
func (c *canvas) lose() { c.lost.Store(true) }

// painted returns what shows a frame; nothing for one that changes nothing. size is asked for the
// size of the terminal when it may have changed.
func (c *canvas) painted(f Frame, size func() (cols, rows int)) []byte {
	if c.lost.Swap(false) {
		cols, rows := size()
		c.cols = cols
		c.clear(rows)
	}
	for y, was := range c.lines {
		line := ""
		if y < len(f.Lines) {
			line = f.Lines[y]
		}
		if line != was {
			c.lines[y] = line
			row := cellsOf(c.spare[:0], line, c.cols, c.profile)
			c.put(c.rows[y], row, y)
			c.rows[y], c.spare = row, c.rows[y]
		}
	}
	return c.framed(f.Cursor, f.X, f.Y)
}

// redrawn returns what shows the last frame again on a terminal that shows anything.
func (c *canvas) redrawn() []byte {
	if c.lost.Load() { // the next frame is written as a whole
		return nil
	}
	f := Frame{Lines: c.lines, Cursor: c.cursor, X: c.x, Y: c.y}
	c.clear(len(c.lines))
	return c.painted(f, nil)
}

// clear erases the screen.
func (c *canvas) clear(rows int) {
	c.out.WriteString(ansi.ResetStyle + ansi.CursorHomePosition + ansi.EraseEntireScreen)
	c.lines, c.rows = make([]string, rows), make([][]cell, rows)
	for y := range c.rows {
		c.rows[y] = slices.Repeat([]cell{blank}, c.cols)
	}
}

// framed returns what was written as one frame, which ends with the cursor at a place, or hidden.
func (c *canvas) framed(cursor bool, x, y int) []byte {
	c.dip(style{})
	var b []byte
	if c.cursor && (!cursor || c.out.Len() > 0) {
		b = append(b, ansi.HideCursor...)
	}
	b = append(b, c.out.Bytes()...)
	c.out.Reset()
	if cursor && (len(b) > 0 || !c.cursor || x != c.x || y != c.y) {
		b = append(append(b, ansi.CursorPosition(x+1, y+1)...), ansi.ShowCursor...)
	}
	c.cursor, c.x, c.y = cursor, x, y
	if len(b) == 0 {
		return nil
	}
	return append(append([]byte(ansi.SetModeSynchronizedOutput), b...), ansi.ResetModeSynchronizedOutput...)
}

// dip changes the attributes of what is written.
func (c *canvas) dip(s style) {
	if s != c.pen {
		c.out.WriteString(s.sequence(c.pen))
		c.pen = s
	}
}

// move is the number of bytes, about, that a new position of the cursor takes.
const move = 8

// put writes what differs in a row from what was there. What is written of a row with a character on whose width
// terminals do not agree ends with it, since more than that character may have moved.
func (c *canvas) put(was, row []cell, y int) {
	odd := func(r []cell) bool { return slices.ContainsFunc(r, func(x cell) bool { return x.drifts }) }
	toEnd := odd(was) || odd(row)
	empty := len(row) // from there on
	for empty > 0 && row[empty-1] == blank {
		empty--
	}
	at := -1 // of the cursor, if it is in this row
	for x := 0; x < len(row); x++ {
		if row[x] == was[x] && (at < 0 || !toEnd) {
			continue
		}
		if x >= empty && (toEnd || len(row)-x > len(ansi.EraseLineRight)) {
			c.moveTo(x, y, at)
			c.dip(style{})
			c.out.WriteString(ansi.EraseLineRight)
			return
		}
		if at >= 0 && x > at && x-at <= move { // writing what is between is shorter
			x = at
		}
		c.moveTo(x, y, at)
		c.dip(row[x].style)
		c.out.WriteString(row[x].text)
		drifts := row[x].drifts
		for x+1 < len(row) && row[x+1].text == "" {
			x++
		}
		if at = x + 1; drifts {
			at = len(row)
		}
	}
}

// moveTo moves the cursor to a place, unless it is at that column.
func (c *canvas) moveTo(x, y, at int) {
	if x != at {
		c.out.WriteString(ansi.CursorPosition(x+1, y+1))
	}
}

// cellsOf adds the cells of a line of text with SGR sequences to an empty row, and returns it. It drops
// all other sequences.
func cellsOf(row []cell, line string, cols int, profile colorprofile.Profile) []cell {
	row = slices.Grow(row, cols)
	var (
		pen, shown style
		state      byte
	)
	for line != "" && len(row) < cols {
		if state == 0 && isASCII(line[0]) && (len(line) == 1 || line[1] < utf8.RuneSelf) { // no mark follows, which saves the library
			row = append(row, cell{text: line[:1], style: shown})
			line = line[1:]
			continue
		}
		seq, width, n, next := ansi.DecodeSequence(line, state, nil)
		state = next
		line = line[n:]
		switch {
		case width > 0:
			if len(row)+width > cols {
				line = ""
				break
			}
			text := seq
			if marks := line[:plain.Marks(line)]; marks != "" {
				line = line[len(marks):]
				if ansi.StringWidth(seq+marks) == width { // else the terminal may take them for something else
					text += marks
				}
			}
			row = append(row, cell{text, shown, len(text) > 1 && ansi.StringWidthWc(text) != width})
			for range width - 1 {
				row = append(row, cell{style: shown})
			}
		default:
			c, ok := parseControl(seq)
			if !ok || c.final != 'm' || c.prefix != 0 || c.intermediate != 0 {
				continue
			}
			pen.read(c.params)
			shown = pen.shown(profile)
		}
	}
	for len(row) < cols {
		row = append(row, blank)
	}
	return row
}

// isASCII reports whether a byte is a printable character alone.
func isASCII(b byte) bool { return b >= ' ' && b < 0x7f }
