package main

import (
	"fmt"
	"strings"
)

// Table lays entries out in two columns.
func Table(entries []Entry) string {
	var b strings.Builder
	width := columnWidth(entries)
	fmt.Fprintf(&b, "%s  count\n", pad("word", width))
	for _, e := range entries {
		fmt.Fprintf(&b, "%s  %5d\n", pad(e.Word, width), e.Count)
	}
	return b.String()
}

// columnWidth is the width of the widest word, in characters.
func columnWidth(entries []Entry) int {
	width := len("word")
	for _, e := range entries {
		if n := len(e.Word); n > width {
			width = n
		}
	}
	return width
}

// pad fills s with spaces up to width characters.
func pad(s string, width int) string {
	missing := width - len(s)
	if missing <= 0 {
		return s
	}
	return s + strings.Repeat(" ", missing)
}
