package tmux

import (
	"fmt"
	"strings"
)

// Minimum size of a pane that is created for a teammate by splitting.
const (
	minCols = 20
	minRows = 5
)

// box is a cell of a window, in characters, without the borders between boxes.
type box struct{ w, h, x, y int }

// grid lays out n panes in w x h, the first in the left half if main is set,
// the others tiled in the rest. The result is a layout for select-layout, which
// needs no change of window options; ok is false if a pane would be too small
// to be useful.
func grid(n, w, h int, main bool) (layout string, ok bool) {
	if n < 1 {
		return "", false
	}
	all := box{w, h, 0, 0}
	var body string
	switch {
	case n == 1:
		body, ok = leaf(all), true
	case main:
		left := (w - 1) / 2
		var right string
		right, ok = tile(n-1, box{w - 1 - left, h, left + 1, 0})
		ok = ok && left >= minCols
		body = fmt.Sprintf("%dx%d,0,0{%s,%s}", w, h, leaf(box{left, h, 0, 0}), right)
	default:
		body, ok = tile(n, all)
	}
	return fmt.Sprintf("%04x,%s", checksum(body), body), ok
}

// tile divides b into n boxes in rows, with the number of columns that makes
// the worst box most useful (80x24 is twice as good as 40x12).
func tile(n int, b box) (string, bool) {
	best, cols := -1.0, 1
	for c := 1; c <= n; c++ {
		r := (n + c - 1) / c
		w, h := (b.w-c+1)/c, (b.h-r+1)/r
		score := min(float64(w)/80, float64(h)/24)
		if w >= minCols && h >= minRows {
			score += 10 // a size that fits at all comes first
		}
		if score > best {
			best, cols = score, c
		}
	}
	rows := (n + cols - 1) / cols
	var parts []string
	ok := true
	y := b.y
	for r, left := 0, n; r < rows; r++ {
		in := (left + rows - r - 1) / (rows - r) // full rows first, all nearly alike
		left -= in
		h := share(b.h, rows, r)
		row, fits := split(in, box{b.w, h, b.x, y})
		ok = ok && fits
		parts = append(parts, row)
		y += h + 1
	}
	if len(parts) == 1 {
		return parts[0], ok
	}
	return fmt.Sprintf("%dx%d,%d,%d[%s]", b.w, b.h, b.x, b.y, strings.Join(parts, ",")), ok
}

// split returns one row of n boxes.
func split(n int, b box) (string, bool) {
	ok := b.h >= minRows
	x := b.x
	var parts []string
	for i := range n {
		w := share(b.w, n, i)
		ok = ok && w >= minCols
		parts = append(parts, leaf(box{w, b.h, x, b.y}))
		x += w + 1
	}
	if n == 1 {
		return parts[0], ok
	}
	return fmt.Sprintf("%dx%d,%d,%d{%s}", b.w, b.h, b.x, b.y, strings.Join(parts, ",")), ok
}

// share returns the i-th of n parts of total, with n-1 borders in between.
func share(total, n, i int) int {
	free := total - (n - 1)
	s := free / n
	if i < free%n {
		s++
	}
	return s
}

// leaf ends in a pane id, which tmux parses and ignores: panes are assigned in
// order.
func leaf(b box) string { return fmt.Sprintf("%dx%d,%d,%d,0", b.w, b.h, b.x, b.y) }

// checksum is tmux's own checksum of a layout.
func checksum(s string) uint16 {
	var c uint16
	for i := 0; i < len(s); i++ {
		c = c>>1 + c&1<<15
		c += uint16(s[i])
	}
	return c
}
