package tui

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
)

// Style colours text; when it is off it changes nothing.
type Style struct {
	On bool

	key string // prefix of its sequences, see NewStyle
}

func (s Style) sgr(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + s.key + code + "m" + text + "\x1b[" + s.key + "0m"
}

// NewStyle returns a style whose sequences Show can distinguish from those in foreign text: they
// begin with a random parameter, which Show removes.
func NewStyle(on bool) Style {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return Style{On: on, key: strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10) + ";"}
}

// Show makes every character of a text visible, as Escape does, except line breaks and the
// sequences of this style.
func (s Style) Show(text string) string {
	if s.key == "" || !s.On || !strings.Contains(text, "\x1b["+s.key) {
		return escapeLines(text)
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "\x1b["+s.key) {
		if i > 0 {
			code, rest, ok := strings.Cut(part, "m")
			if !ok || strings.Trim(code, "0123456789;") != "" {
				continue // cut at the width of the terminal
			}
			b.WriteString("\x1b[" + code + "m")
			part = rest
		}
		b.WriteString(escapeLines(part))
	}
	return b.String()
}

func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = plain.Visible(l)
	}
	return strings.Join(lines, "\n")
}

// Bold makes text bold.
func (s Style) Bold(t string) string { return s.sgr("1", t) }

// wideGap is a number of spaces that takes more to write than a move of the cursor.
const wideGap = 8

// boldText is Bold for the words of a row. A row that is selected is drawn twice, so what looks much
// the same in bold is left out: wide gaps, signs of one cell that have a colour, and dim text.
func (s Style) boldText(row string) string {
	if !s.On {
		return row
	}
	bold, dim, reset := "\x1b["+s.key+"1m", "\x1b["+s.key+"2m", "\x1b["+s.key+"0m"
	var b strings.Builder
	for {
		at := strings.IndexByte(row, 0x1b)
		if at < 0 {
			words := strings.TrimRight(row, " ")
			return b.String() + s.boldWords(words) + row[len(words):]
		}
		b.WriteString(s.boldWords(row[:at]))
		colored, rest, _ := strings.Cut(row[at:], reset)
		if view.Width(colored) > 1 && !strings.HasPrefix(colored, dim) {
			b.WriteString(bold)
		}
		b.WriteString(colored + reset)
		row = rest
	}
}

// boldWords is boldText for text without colours.
func (s Style) boldWords(text string) string {
	var b strings.Builder
	for text != "" {
		words, rest := text, ""
		if at := strings.Index(text, strings.Repeat(" ", wideGap)); at >= 0 {
			words, rest = text[:at], text[at:]
		}
		text = strings.TrimLeft(rest, " ")
		if strings.Trim(words, " ") != "" {
			words = s.Bold(words)
		}
		b.WriteString(words + rest[:len(rest)-len(text)])
	}
	return b.String()
}

// Dim is for less important text.
func (s Style) Dim(t string) string { return s.sgr("2", t) }

// Red is for failures.
func (s Style) Red(t string) string { return s.sgr("31", t) }

// Green is for finished work.
func (s Style) Green(t string) string { return s.sgr("32", t) }

// Yellow is for what needs attention.
func (s Style) Yellow(t string) string { return s.sgr("33", t) }

// Cyan is for work in progress.
func (s Style) Cyan(t string) string { return s.sgr("36", t) }

// reverse swaps the colours of text, which is seen where there are no colours, too.
func (s Style) reverse(t string) string { return s.sgr("7", t) }

// marked draws a text and the sign before it in a colour, with these parts of the text in reverse.
func (s Style) marked(color func(string) string, sign, text string, parts []view.Part) string {
	var b strings.Builder
	at := 0
	for _, p := range parts {
		b.WriteString(color(sign+text[at:p.From]) + s.reverse(color(text[p.From:p.To])))
		sign, at = "", p.To
	}
	return b.String() + color(sign+text[at:])
}

// Lane is for the columns of a lane in a state.
func (s Style) Lane(state view.LaneState, t string) string {
	switch state {
	case view.LaneWorking:
		return s.Cyan(t)
	case view.LaneWaiting:
		return s.Yellow(t)
	case view.LaneDown:
		return s.Red(t)
	case view.LaneLimited, view.LaneIdle, view.LaneUnknown:
	}
	return s.Dim(t)
}

var memberColors = map[string]string{
	"blue": "34", "green": "32", "yellow": "33", "purple": "35",
	"orange": "38;5;208", "pink": "38;5;213", "cyan": "36", "red": "31",
}

// Member colours a member's name in its colour, one of team.Colors.
func (s Style) Member(color, name string) string {
	code, ok := memberColors[color]
	if !ok {
		return name
	}
	return s.sgr(code, name)
}
