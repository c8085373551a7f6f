package term

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"github.com/teamctl/teamctl/internal/plain"
)

func decode(s string) (r rune, size int) { return utf8.DecodeRuneInString(s) }

// putLine draws a line of text with SGR sequences on a row of the screen. It drops all other
// sequences.
func putLine(s tcell.Screen, y, cols int, line string) {
	style := tcell.StyleDefault
	var state byte
	x := 0
	for line != "" && x < cols {
		seq, width, n, next := ansi.DecodeSequence(line, state, nil)
		state = next
		line = line[n:]
		switch {
		case width > 0:
			if x+width > cols {
				line = ""
				break
			}
			marks := line[:plain.Marks(line)]
			line = line[len(marks):]
			if _, w := s.Put(x, y, seq+marks, style); w != width { // the library takes the marks for something else
				s.Put(x, y, seq, style)
			}
			x += width
		case strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m"):
			style = sgr(style, seq[2:len(seq)-1])
		}
	}
	for ; x < cols; x++ {
		s.Put(x, y, " ", tcell.StyleDefault)
	}
}

// sgr returns a style after applying the parameters of Select Graphic Rendition.
func sgr(style tcell.Style, params string) tcell.Style {
	var codes []int
	for p := range strings.FieldsFuncSeq(params, func(r rune) bool { return r == ';' || r == ':' }) {
		n, err := strconv.Atoi(p)
		if err != nil {
			return style
		}
		codes = append(codes, n)
	}
	if len(codes) == 0 {
		return tcell.StyleDefault
	}
	for i := 0; i < len(codes); i++ {
		switch c := codes[i]; {
		case c == 0:
			style = tcell.StyleDefault
		case c == 1:
			style = style.Bold(true)
		case c == 2:
			style = style.Dim(true)
		case c == 3:
			style = style.Italic(true)
		case c == 4:
			style = style.Underline(true)
		case c == 7:
			style = style.Reverse(true)
		case c == 9:
			style = style.StrikeThrough(true)
		case c == 22:
			style = style.Bold(false).Dim(false)
		case c == 23:
			style = style.Italic(false)
		case c == 24:
			style = style.Underline(false)
		case c == 27:
			style = style.Reverse(false)
		case c == 29:
			style = style.StrikeThrough(false)
		case c >= 30 && c <= 37:
			style = style.Foreground(color.PaletteColor(c - 30))
		case c >= 40 && c <= 47:
			style = style.Background(color.PaletteColor(c - 40))
		case c >= 90 && c <= 97:
			style = style.Foreground(color.PaletteColor(c - 90 + 8))
		case c >= 100 && c <= 107:
			style = style.Background(color.PaletteColor(c - 100 + 8))
		case c == 39:
			style = style.Foreground(color.Default)
		case c == 49:
			style = style.Background(color.Default)
		case c == 38 || c == 48 || c == 58: // 58 is the colour of an underline
			col, used := extended(codes[i+1:])
			i += used
			switch c {
			case 38:
				style = style.Foreground(col)
			case 48:
				style = style.Background(col)
			}
		}
	}
	return style
}

// extended parses a colour, "5;n" or "2;r;g;b", and returns the number of codes used.
func extended(codes []int) (color.Color, int) {
	switch {
	case len(codes) >= 2 && codes[0] == 5 && codes[1] >= 0 && codes[1] < 256:
		return color.PaletteColor(codes[1]), 2
	case len(codes) >= 4 && codes[0] == 2:
		return color.NewRGBColor(int32(codes[1]&255), int32(codes[2]&255), int32(codes[3]&255)), 4
	}
	return color.Default, len(codes)
}
