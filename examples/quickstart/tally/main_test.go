package main

import (
	"strings"
	"testing"
)

// tally runs the command on a text.
func tally(t *testing.T, text string, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := run(args, strings.NewReader(text), &out); err != nil {
		t.Fatalf("tally %q: %v", args, err)
	}
	return out.String()
}

func TestRun(t *testing.T) {
	got := tally(t, "fig, orange, fig; apple, orange, fig.\n", "-top", "2")
	want := "" +
		"word    count\n" +
		"fig         3\n" +
		"orange      2\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
