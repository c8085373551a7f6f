package main

import (
	"errors"
	"strings"
	"testing"
)

// TestOtherWords checks that words of other programs lead to existing commands and are not
// commands themselves.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	o, _, _ := testOutput(false)
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	for path, words := range otherWords() {
		verb, left, err := root.Find(strings.Fields(path))
		if err != nil || len(left) > 0 || verb == root {
			t.Errorf("%q is not a verb: %v", path, err)
			continue
		}
		for _, w := range words {
			line := strings.Fields(w + " x")
			cmd, rest, _ := root.Find(line)
			if len(rest) == 1 {
				t.Errorf("%q is a command", w)
				continue
			}
			var s *slip
			if err := unknownVerb(cmd, rest); !errors.As(err, &s) || s.mended(line) != verb.CommandPath()+" x" {
				t.Errorf("%s: %v", w, err)
			}
		}
	}
}
