package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
)

func TestReadKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]key{
		"":                      {keyEnd}, // the end of the input
		"jk\x1b[B\x1b[A":        {keyDown, keyUp, keyDown, keyUp, keyEnd},
		"\x1bOBx\x1b[6~\x1b[5~": {keyDown, keyPageDown, keyPageUp, keyEnd},
		"\x1b[1;5Cj":            {keyDown, keyEnd},
		"gG\x1b[H\x1b[F":        {keyTop, keyBottom, keyTop, keyBottom, keyEnd},
		"\x1bj":                 {keyEnd},
		"jqk":                   {keyDown, keyQuit, keyUp, keyEnd},
		"\x03j":                 {keyQuit, keyDown, keyEnd},
	} {
		pressed := make(chan key)
		go func() {
			defer close(pressed)
			readKeys(context.Background(), strings.NewReader(in), pressed)
		}()
		var got []key
		for k := range pressed {
			got = append(got, k)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestScrolled(t *testing.T) {
	t.Parallel()
	top := 0
	for i, step := range []struct {
		k    key
		want int
	}{{keyUp, 0}, {keyDown, 1}, {keyPageDown, 11}, {keyBottom, 39}, {keyDown, 39}, {keyPageUp, 29}, {keyTop, 0}} {
		if top = step.k.scrolled(top, 10, 50); top != step.want {
			t.Errorf("step %d: %d, want %d", i, top, step.want)
		}
	}
	if got := keyDown.scrolled(0, 20, 10); got != 0 {
		t.Errorf("a short one scrolls to %d", got)
	}
}
