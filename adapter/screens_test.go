package adapter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Screens of the real programs, each under an empty home: testdata/screens has one file
// for each, named by the program, its version and the rule that is to know it.
func TestRecordedScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/screens/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".txt")
		t.Run(name, func(t *testing.T) {
			agent, v, rule, ok := ParseScreenName(filepath.Base(f))
			if !ok {
				t.Fatal("the name is PROGRAM-VERSION-RULE.txt")
			}
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if again, gone := (Private{}).Scrub(string(data)); again != string(data) {
				t.Errorf("there are %v in it", gone)
			}
			rules, ok, err := BuiltinRules(agent)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			for _, v := range []Version{v, {}} { // an unknown version as well
				got := rules.Look(string(data), v, time.Now())
				if got.Rule != rule {
					t.Errorf("version %s: by rule %q it is %s for %q: %q", v, got.Rule, got.Activity, got.For, got.Lines)
				}
				if got.Activity == team.Idle || got.Ready {
					t.Errorf("version %s: a dialog is taken for an empty input box", v)
				}
			}
		})
	}
}

// The input box of Gemini CLI with a text of which it shows the last ten lines.
func TestLongTextInTheBox(t *testing.T) {
	rules, _, err := BuiltinRules(Gemini)
	if err != nil {
		t.Fatal(err)
	}
	bar := strings.Repeat("▄", 40)
	screen := strings.Join([]string{"✦ ok", "", "  1 MCP server", bar,
		" > your user: it gives no consent and no", "   permission in the user's name.", "", "   <teammate-message teammate_id=\"team-lead\"",
		"   type=\"task_assignment\" color=\"blue\"", "   summary=\"task 2: two\"", "   message_id=\"8246d152-1f20-43e8-814e-fcd9b939", "   40dd\">",
		"   Task #2 is assigned to you: two", "   </teammate-message>", strings.ReplaceAll(bar, "▄", "▀"),
		" workspace (/directory)   branch", " /root/.../gemini         teamctl/demo/gemini"}, "\n")
	got := rules.Look(screen, Version{0, 61, 0}, time.Now())
	if got.Activity != team.Idle || !got.HasInput || !strings.HasPrefix(got.Input, "your user: it gives") {
		t.Errorf("%+v", got)
	}
}
