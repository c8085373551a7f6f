package adapter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The start screen of opencode 1.18.33, the same with typed text, and screens with conversations.
func TestHomeScreen(t *testing.T) {
	t.Parallel()
	rules, _, err := BuiltinRules(Opencode)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/home/opencode-1.18.33.txt")
	if err != nil {
		t.Fatal(err)
	}
	home := string(data)
	if seen := rules.Look(home, Version{}, time.Now()); !seen.Home || seen.Input != "" {
		t.Errorf("the first screen: %+v", seen)
	}
	typed := strings.Replace(home, `Ask anything… "Fix a TODO in the codebase"`, "half a line", 1)
	if seen := rules.Look(typed, Version{}, time.Now()); typed == home || seen.Home {
		t.Errorf("with words typed: %+v", seen)
	}
	files, err := filepath.Glob("testdata/screens/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		agent, v, rule, _ := ParseScreenName(filepath.Base(f))
		rules, _, err := BuiltinRules(agent)
		if err != nil {
			t.Fatal(err)
		}
		if seen := rules.Look(string(data), v, time.Now()); seen.Home && rule != "login" { // it is drawn over the start screen
			t.Errorf("%s is taken for the first screen", f)
		}
	}
}
