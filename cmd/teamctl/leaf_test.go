package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that people can run has a shape, and every shape is of a command: a
// new verb says what it writes, or why it writes nothing, before it is let in.
func TestEveryLeafHasAShape(t *testing.T) {
	t.Parallel()
	o, _, _ := testOutput(false)
	root := (&app{out: o, stdin: strings.NewReader("")}).root(nil)
	noun := reflect.ValueOf(needsVerb).Pointer()
	seen := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
				continue
			}
			walk(sub)
			if sub.HasSubCommands() && reflect.ValueOf(sub.RunE).Pointer() == noun {
				continue
			}
			key := keyOf(sub)
			seen[key] = true
			if _, ok := shapes[key]; !ok {
				t.Errorf("%s has no shape: say in formats.go what it writes", sub.CommandPath())
			}
		}
	}
	walk(root)
	if len(seen) < 80 {
		t.Errorf("only %d commands were looked at", len(seen))
	}
	for key := range shapes {
		if !seen[key] {
			t.Errorf("the shape of %q is of no command", key)
		}
	}
}
