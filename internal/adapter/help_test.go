package adapter

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// The file in the help text works: its box takes a text, and is idle with and without one.
func TestFileInTheHelp(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "    description: what it is\n")
	file, _, end := strings.Cut(rest, "\n```")
	if !ok || !end {
		t.Fatal("it is not in the help any more")
	}
	c, err := ParseCustom("mine.yaml", []byte("    description: what it is\n"+file+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.Enter.Plain || len(c.Launch) != 4 {
		t.Errorf("read as %+v", c)
	}
	for screen, want := range map[string]team.Activity{
		"done\n> ": team.Idle, "done\n> half a line": team.Idle, "thinking (esc to interrupt)\n> ": team.Working,
	} {
		seen := c.Rules().Look(screen, Version{}, time.Time{})
		if seen.Activity != want || !seen.HasInput || seen.Input != strings.TrimPrefix(strings.Split(screen, "\n")[1], "> ") {
			t.Errorf("%q is %+v", screen, seen)
		}
	}
}
