package adapter

import (
	"encoding/json"
	"testing"
)

// A person is asked about Claude Code's plan, also if the agent has written none. The approval
// contains the plan's input: a plain one leaves the dialog open.
func TestPlanOfAHook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, plan, granted string }{
		{`{"tool_name":"ExitPlanMode","tool_input":{"plan":"# do it","planFilePath":"/plans/a.md"}}`, "# do it", `{"plan":"# do it","planFilePath":"/plans/a.md"}`},
		{`{"tool_name":"ExitPlanMode","tool_input":{"planFilePath":"/plans/a.md"}}`, "The plan stands in /plans/a.md", `{"planFilePath":"/plans/a.md"}`},
		{`{"tool_name":"ExitPlanMode","tool_input":{}}`, noPlan, `{}`},
		{`{"tool_name":"ExitPlanMode"}`, noPlan, `{}`},
		{`{"tool_name":"Bash","tool_input":{"plan":"x"}}`, "", ""},
	} {
		var in HookIn
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		granted, ok := in.Granted(nil)
		if in.Plan() != c.plan || string(granted) != c.granted || !ok {
			t.Errorf("%s: plan %q, granted %s, %v", c.in, in.Plan(), granted, ok)
		}
	}
}
