package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryLeafHasAShape checks that every command for people has a shape and every shape a
// command, so that a new verb has to declare its output.
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
				t.Errorf("%s has no shape: declare in formats.go what it writes", sub.CommandPath())
			}
		}
	}
	walk(root)
	if len(seen) < 80 {
		t.Errorf("only %d commands were checked", len(seen))
	}
	for key := range shapes {
		if !seen[key] {
			t.Errorf("the shape %q belongs to no command", key)
		}
	}
}
