package main

import (
	"os"
	"strings"
	"testing"
)

// TestVerbsAlone checks that verbs lists each command under its own name, and that a command is
// the same whether it is created alone or with all others.
func TestVerbsAlone(t *testing.T) {
	t.Parallel()
	a := func() *app { return &app{out: newOutput(os.Stdout, os.Stderr, false), stdin: strings.NewReader("")} }
	full := a().root(nil)
	seen := map[string]bool{}
	for _, g := range verbs {
		for _, v := range g.all {
			c := v.make(a())
			if c.Name() != v.name || seen[v.name] {
				t.Errorf("%s is listed as %s in verbs", c.Name(), v.name)
			}
			seen[v.name] = true
			for _, alias := range c.Aliases {
				seen[alias] = true
			}
			words := []string{v.name}
			lone := a().root(words)
			among, _, err := full.Find(words)
			if err != nil {
				t.Fatal(err)
			}
			alone, _, err := lone.Find(words)
			if err != nil {
				t.Fatal(err)
			}
			if alone.CommandPath() != among.CommandPath() || alone.Short != among.Short || alone.GroupID != among.GroupID || alone.UsageString() != among.UsageString() {
				t.Errorf("%s alone:\n%s\namong all:\n%s", v.name, alone.UsageString(), among.UsageString())
			}
			if only(words) == v.name && len(lone.Commands()) != 1 {
				t.Errorf("%s makes %d commands", v.name, len(lone.Commands()))
			}
		}
	}
	for _, words := range [][]string{nil, {"help"}, {"--team", "x", "ps"}, {"ps", "-h"}, {"ps", "--help"}, {"__complete", "ps"}, {"nosuch"}, {"teams"}, {"message", "ls"}} {
		if got := a().root(words).Commands(); len(got) < len(verbs) {
			t.Errorf("%q makes %d commands only", words, len(got))
		}
	}
}
