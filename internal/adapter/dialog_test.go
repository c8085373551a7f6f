package adapter

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// The dialogs of the real programs have keys for allowing once and for denying. They compare equal
// while the mark of the choice moves, and different for another command.
func TestDialogsOfThePrograms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ agent, version, allow, deny, mark string }{
		{Claude, "2.1.329", "1", "4", "❯"}, {Codex, "0.169.0", "1", "3", "›"}, {Gemini, "0.61.0", "1", "3", "●"},
	} {
		data, err := os.ReadFile("testdata/screens/" + c.agent + "-" + c.version + "-permission-dialog.txt")
		if err != nil {
			t.Fatal(err)
		}
		rules, _, err := BuiltinRules(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		look := func(from, to string) Seen {
			t.Helper()
			if !strings.Contains(string(data), from) {
				t.Fatalf("%s: there is no %q", c.agent, from)
			}
			return rules.Look(strings.ReplaceAll(string(data), from, to), Version{}, time.Now())
		}
		is := look("", "")
		if is.Allow != c.allow || is.Deny != c.deny || !strings.Contains(is.Dialog, "touch asked\n") {
			t.Errorf("%s: keys %q and %q of\n%s", c.agent, is.Allow, is.Deny, is.Dialog)
		}
		if moved := look(c.mark+" 1.", "  1."); moved.Dialog != is.Dialog {
			t.Errorf("%s: another one when the mark moves:\n%s", c.agent, moved.Dialog)
		}
		for _, other := range []string{"touch askeb", "touch asked *", "touch asked; rm x", "touch asked\n rm x"} {
			if got := look("touch asked", other); got.Dialog == is.Dialog || got.Dialog == "" {
				t.Errorf("%s: %q is not told from it: %q", c.agent, other, got.Dialog)
			}
		}
	}
}

// A message that was typed ahead looks like the beginning of a turn.
func TestTypedAhead(t *testing.T) {
	t.Parallel()
	rules, _, err := BuiltinRules(Claude)
	if err != nil {
		t.Fatal(err)
	}
	box := "───────\n❯ \n───────\n  ? for shortcuts"
	for screen, want := range map[string]string{
		"❯ first\n\n✻ Thinking… (3s · esc to interrupt)\n\n❯ second\n\n" + box:         "busy",
		"❯ first\n\n✻ Thinking… (3s · esc to interrupt)\n\n❯ second\n\n● ok\n\n" + box: "prompt",
	} {
		if got := rules.Look(screen, Version{}, time.Now()); got.Rule != want {
			t.Errorf("%q is read as %s, want %s", screen, got.Rule, want)
		}
	}
}

// A dialog of Gemini CLI may open at the end of a turn: its hook alone is not evidence that the
// agent is idle.
func TestEndOfTurnThatItsScreenConfirms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cli, event string
		want       bool
	}{{Gemini, "AfterAgent", true}, {Gemini, "BeforeAgent", false}, {Claude, "Stop", false}, {Codex, "Stop", false}} {
		if o := HookSees(c.cli, c.event, HookIn{}, false, time.Now()); o.Confirm != c.want {
			t.Errorf("%s %s: %+v", c.cli, c.event, o)
		}
	}
	if o := HookSees(Gemini, "AfterAgent", HookIn{}, true, time.Now()); o.Confirm || o.Activity != team.Working {
		t.Errorf("a turn that goes on with mail: %+v", o)
	}
}
