package main

import "testing"

func TestFitted(t *testing.T) {
	t.Parallel()
	const text = "NAME  STATE\nbuilder  running and much more\nw  idle\nx  idle\n"
	for _, c := range []struct {
		cols, rows int
		want       string
	}{
		{80, 24, text},
		{12, 24, "NAME  STATE\nbuilder  ru…\nw  idle\nx  idle\n"},
		{80, 4, "NAME  STATE\nbuilder  running and much more\n… and 2 more lines\n"},
		{80, 2, text},
	} {
		if got := fitted(text, func() (int, int) { return c.cols, c.rows }); got != c.want {
			t.Errorf("%dx%d: %q, want %q", c.cols, c.rows, got, c.want)
		}
	}
}
