package adapter

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// A question of Claude Code to its user is recognised by its text, and approved only together with
// answers: a plain approval leaves its dialog open.
func TestQuestionOfAHook(t *testing.T) {
	t.Parallel()
	const asked = `{"tool_name":"AskUserQuestion","tool_input":{"questions":[` +
		`{"question":"Which one?","header":"Pick","options":[{"label":"A"},{"label":"B"}],"multiSelect":false},{"question":"Why?","options":[],"multiSelect":true}]}}`
	in := ParseHook([]byte(asked))
	qs := in.Questions()
	if got := fmt.Sprintf("%+v", qs); len(qs) != 2 || qs[0].String() != "Which one? (A / B)" || !qs[1].Several || in.What() != "Which one? (A / B) Why?" {
		t.Errorf("%s, %q", got, in.What())
	}
	if o := HookSees(Claude, "PermissionRequest", in, false, time.Now()); o.For != team.WaitQuestion {
		t.Errorf("%+v", o)
	}
	for given, ok := range map[string]bool{"": false, `{}`: false, `{"answers":{}}`: false, `[]`: false, `{"answers":{"Which one?":"B","Why?":"so"}}`: true} {
		out, is := in.Granted(json.RawMessage(given))
		if is != ok {
			t.Errorf("%s counts: %v", given, is)
		}
		var got struct {
			Questions []any
			Answers   map[string]string
		}
		if ok && (json.Unmarshal(out, &got) != nil || len(got.Questions) != 2 || got.Answers["Which one?"] != "B") {
			t.Errorf("given %s: %s", given, out)
		}
	}
	other := ParseHook([]byte(`{"tool_name":"Bash","tool_input":{"command":"ls"}}`))
	if out, ok := other.Granted(json.RawMessage(`{"command":"ls -l"}`)); !ok || string(out) != `{"command":"ls -l"}` || other.Questions() != nil {
		t.Errorf("another tool: %s, %v", out, ok)
	}
}
