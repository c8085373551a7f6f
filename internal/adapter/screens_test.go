package adapter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Screens of the real programs, each under an empty home: testdata/screens has one file for each,
// named by the program, its version and the rule that must match it.
func TestRecordedScreens(t *testing.T) {
	t.Parallel()
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
				if idle := rule == "prompt"; idle != (got.Activity == team.Idle) || idle != got.Ready || idle && (!got.HasInput || got.Input != "") {
					t.Errorf("version %s: it is %s, ready %v, with %q in its input box", v, got.Activity, got.Ready, got.Input)
				}
				if (rule == "permission-dialog" && agent != Opencode) != (got.Dialog != "") { // opencode's server answers its dialogs
					t.Errorf("version %s: keys %q and %q, and the dialog %q", v, got.Allow, got.Deny, got.Dialog)
				}
			}
		})
	}
}

// TestQuestionAboutSeveralServers: the question of Claude Code 2.1.329 about several MCP servers
// of a repository is not an input box.
func TestQuestionAboutSeveralServers(t *testing.T) {
	t.Parallel()
	rules, _, err := BuiltinRules(Claude)
	if err != nil {
		t.Fatal(err)
	}
	screen := "────────────────\n  2 new MCP servers found in this project\n  Select any you wish to enable.\n\n" +
		"  MCP servers may execute code or access system resources. All tool calls require approval. Learn\n  more in the MCP documentation.\n\n" +
		"  ❯ [✔] proj\n    [✔] proj2\n       Enable selected\n Space to select · Esc to reject all\n"
	for _, v := range []Version{{2, 1, 329}, {}} {
		if got := rules.Look(screen, v, time.Now()); got.Rule != "mcp-approval" || got.For != team.WaitTrust || got.Ready {
			t.Errorf("version %s: by rule %q it is %s for %q, ready %v", v, got.Rule, got.Activity, got.For, got.Ready)
		}
	}
}

// The content of an older turn is the past, with or without an input box and whatever it holds.
// The test places the text of a dialog into that turn on the recorded screens.
func TestOlderTurnIsThePast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ agent, prompt, words string }{
		{Claude, "❯ %s", "Do you want to proceed?\n  ❯ 1. Yes\n    2. No\n  You've hit your limit · resets 3pm"},
		{Codex, "› %s", "Update available\n  1. Update now\n  Would you like to run the following command?\n  You've hit your usage limit. Try again at 3pm."},
		{Gemini, " > %s", "Allow execution of [Shell]?\n ● 1. Allow once\n   3. No, suggest changes\nusage limit reached, resets at 3pm\n⠏ Thinking (esc to cancel, 3s)"},
	} {
		rules, _, err := BuiltinRules(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range []string{"prompt", "busy", "permission-dialog"} {
			files, err := filepath.Glob("testdata/screens/" + c.agent + "-*.txt")
			files = slices.DeleteFunc(files, func(f string) bool {
				_, _, of, _ := ParseScreenName(filepath.Base(f))
				return of != rule
			})
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			// The text is directly above the prompt of the newest turn, within every number of lines;
			// without the lines that answered it, it is close to them.
			lines := strings.Split(string(data), "\n")
			at := -1
			box := rules.inputLine(trimBottom(slices.Clone(lines)))
			for i, l := range lines {
				if rules.turn.MatchString(l) && (i != box || c.agent == Gemini && rule == "permission-dialog") {
					at = i
				}
			}
			if at < 0 {
				t.Fatalf("%s %s: no turn begins in it", c.agent, rule)
			}
			screen := strings.Join(lines[:at], "\n") + "\n" + strings.ReplaceAll(c.prompt, "%s", "before") + "\n" + c.words + "\n" + strings.Join(lines[at:], "\n")
			if got := rules.Look(screen, Version{}, time.Now()); got.Rule != rule {
				t.Errorf("%s: %s is read as %s: %q", c.agent, rule, got.Rule, got.Lines)
			}
		}
	}
}

// The input box of Gemini CLI with a long text, of which it shows the last ten lines.
func TestLongTextInTheBox(t *testing.T) {
	t.Parallel()
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

// opencode's box shows its agent and model under the typed text, and each earlier message has a
// bar: only the typed text is input, and earlier messages are the past.
func TestFramedBox(t *testing.T) {
	t.Parallel()
	rules, _, err := BuiltinRules(Opencode)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/screens/opencode-1.18.33-prompt.txt")
	if err != nil {
		t.Fatal(err)
	}
	const empty = "\n  ┃\n  ┃\n  ┃\n  ┃  Build · fake fake\n  ╹▀▀▀"
	idle := string(data)
	if !strings.Contains(idle, empty) {
		t.Fatal("the recorded box is another one")
	}
	with := func(text string) string {
		return strings.Replace(idle, empty, "\n  ┃\n  ┃"+strings.ReplaceAll("  "+text, "\n", "\n  ┃  ")+"\n  ┃\n  ┃  Build · fake fake\n  ╹▀▀▀", 1)
	}
	past := "  ┃\n  ┃  △ Permission required\n  ┃   Allow once   Allow always   Reject\n  ┃\n\n  done\n\n"
	for _, c := range []struct {
		name, screen, input string
		activity            team.Activity
	}{
		{"empty", idle, "", team.Idle},
		{"half a line", with("half a line"), "half a line", team.Idle},
		{"a paste that it shows as a mark", with("[Pasted ~3 lines]"), "[Pasted ~3 lines]", team.Idle},
		{"several lines", with("one\n\ntwo"), "one\ntwo", team.Idle},
		{"it works", strings.Replace(idle, "   /directory ", "   ⬝⬝⬝⬝⬝⬝⬝■  esc interrupt ", 1), "", team.Working},
		{"it works in a narrow pane", strings.Replace(idle, "   /directory ", "   ⬝⬝⬝⬝⬝⬝⬝■  esc\n", 1), "", team.Working},
		{"a dialog of an older turn", past + idle, "", team.Idle},
		{"in a narrow pane", strings.ReplaceAll(idle, "ctrl+p commands", "ctrl+p\n   commands"), "", team.Idle},
	} {
		got := rules.Look(c.screen, Version{}, time.Now())
		if got.Activity != c.activity || !got.HasInput || got.Input != c.input {
			t.Errorf("%s: %s by %q, box %v with %q", c.name, got.Activity, got.Rule, got.HasInput, got.Input)
		}
	}
	first := "\n             ┃\n             ┃  Ask anything… \"Fix a TODO in the codebase\"\n             ┃\n             ┃  Build · fake fake\n             ╹▀▀▀▀▀▀▀▀\n     tab agents  ctrl+p commands\n"
	if got := rules.Look(first, Version{}, time.Now()); got.Activity != team.Idle || !got.HasInput || got.Input != "" {
		t.Errorf("at its start: %+v", got)
	}
	if _, err := ParseRules("x.yaml", []byte("agent: x\nframe: 'x'\n")); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a frame without turn and input: %v", err)
	}
}

// The input box of Codex grows with its text; one of few lines shows the end, with an arrow at its
// right edge.
func TestHighInput(t *testing.T) {
	t.Parallel()
	rules, _, err := BuiltinRules(Codex)
	if err != nil {
		t.Fatal(err)
	}
	const footer = "\n\n  fake-model default · /home/ann/projects/parser\n  ← for agents · ? for shortcuts"
	draft := "› The following is from a teammate"
	for range 40 {
		draft += "\n  one more line\n"
	}
	for _, c := range []struct {
		screen, rule, input string
	}{
		{"• hi\n\n\n" + draft + footer, "prompt", "The following is from a teammate\none more line"},
		{"› go on\n\n• Working (3s • esc to interrupt)\n\n" + draft + footer, "busy", "The following is from a teammate\none more line"},
		{"• hi\n\n\n› summary=\"@@call exec_command        ↑\n  {&quot;cmd" + footer, "prompt", "summary=\"@@call exec_command\n{&quot;cmd"},
		{"• Running touch asked\n\n  Would you like to run the following command?\n\n› 1. Yes, proceed (y)\n" + strings.Repeat("  more\n", 5) + "  3. No, and tell Codex what to do differently (esc)\n\n  Press enter to confirm or esc to cancel", "permission-dialog", "1. Yes, proceed (y)\nmore"},
		{draft + "\n─ Something that is not known\n  more", "", ""},
	} {
		if got := rules.Look(c.screen, Version{}, time.Now()); got.Rule != c.rule || got.Input != c.input {
			t.Errorf("by rule %q it is %s with %q in its input box, want rule %q with %q", got.Rule, got.Activity, got.Input, c.rule, c.input)
		}
	}
}
