package tool

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestUpSetsModelAndAgents: a team file sets the team's model and its agents; a change is made by
// the next up, what the file leaves out stays, and what is refused changes nothing.
func TestUpSetsModelAndAgents(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	asked := ""
	r.Env.CheckModel = func(_ context.Context, ref string) (string, error) {
		if asked = ref; ref == "none/x" {
			return "", team.Errorf(team.CodeInvalid, "no provider none")
		}
		return "", nil
	}
	file := filepath.Join(t.TempDir(), "teamctl.yaml")
	up := func(c Caller, text string) (UpOut, error) {
		if err := os.WriteFile(file, []byte("team: demo\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.Env.Up(t.Context(), c, UpIn{File: file})
	}
	is := func(what, model, prompt string) {
		t.Helper()
		if got, err := r.Model(t.Context()); err != nil || got != model {
			t.Errorf("%s: the model is %q, %v, want %q", what, got, err, model)
		}
		spec, err := r.Spec(t.Context(), "careful")
		if prompt == "" && !team.IsCode(err, team.CodeNotFound) || prompt != "" && (err != nil || spec.Defaults.SystemPrompt != prompt) {
			t.Errorf("%s: the agent is %+v, %v, want %q", what, spec, err, prompt)
		}
	}
	careful := func(prompt string) string {
		return "agents:\n- agent_id: careful\n  name: Careful\n  defaults: {system_prompt: " + prompt + "}\n  policy: {tools: {deny: [shell]}}\n"
	}
	for _, step := range []struct {
		text, model, prompt string
		changes             []Change
	}{
		{"model: script/one\n", "script/one", "", []Change{{Op: ChangeAdd, What: whatSetting, Name: settingModel}}},
		{"model: script/one\n" + careful("look"), "script/one", "look", []Change{{Op: ChangeAdd, What: whatSetting, Name: settingAgents}}},
		{"model: script/one\n" + careful("look"), "script/one", "look", nil},
		{"model: script/two\n" + careful("think"), "script/two", "think", []Change{
			{Op: ChangeChange, What: whatSetting, Name: settingModel}, {Op: ChangeChange, What: whatSetting, Name: settingAgents},
		}},
		{"", "script/two", "think", nil},
	} {
		out, err := up(Person(), step.text)
		if err != nil {
			t.Fatal(err)
		}
		is(step.text, step.model, step.prompt)
		if same, err := sameJSON(append([]Change{}, out.Changes...), append([]Change{}, step.changes...)); err != nil || !same {
			t.Errorf("%q: %+v, %v", step.text, out.Changes, err)
		}
	}
	if asked != "script/two" {
		t.Errorf("%q was asked about", asked)
	}
	for _, bad := range []string{
		"model: two\n", "model: /two\n", "model: 2\n", "model: none/x\n", "agents: {}\n", "agents: [careful]\n", "agents: [{agent_id: careful}]\n",
		"agents: [{agent_id: careful, name: Careful, prompt: x}]\n", "agents: [{agent_id: a, name: x}, {agent_id: b, name: X}]\n",
	} {
		if _, err := up(Person(), bad); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
		is(bad, "script/two", "think")
	}
	lead, _ := r.member("boss", team.RoleLeader)
	for _, text := range []string{"model: script/one\n", careful("agree")} {
		if _, err := up(lead, text); team.ReasonOf(err) != team.ReasonRole {
			t.Errorf("a lead, %q: %v", text, err)
		}
		is(text, "script/two", "think")
	}
	if _, err := up(lead, "model: script/two\n"+careful("think")); err != nil {
		t.Errorf("a lead, without a change: %v", err)
	}
}
