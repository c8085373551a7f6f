package main

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The words that people bring along lead to verbs that there are, from where they
// are said, and are none themselves.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	o, _, _ := testOutput(false)
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	for path, words := range otherWords {
		verb, left, err := root.Find(strings.Fields(path))
		if err != nil || len(left) > 0 || verb == root {
			t.Errorf("%q is no verb: %v", path, err)
			continue
		}
		for _, w := range words {
			err := unknownVerb(verb.Parent(), []string{w})
			if want := "did you mean " + verb.CommandPath() + "?"; team.HintOf(err) != want {
				t.Errorf("%s %s: %q, want %q", verb.Parent().CommandPath(), w, team.HintOf(err), want)
			}
			for _, c := range verb.Parent().Commands() {
				if c.Name() == w || c.HasAlias(w) {
					t.Errorf("%s %s is a verb", verb.Parent().CommandPath(), w)
				}
			}
		}
	}
}
