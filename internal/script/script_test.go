package script

import (
	"encoding/json"
	"testing"
	"time"
)

func TestScripts(t *testing.T) {
	t.Parallel()
	in := func(s string) Part { return Part{Text: s} }
	result := func(s string) Part { return Part{Text: s, Tool: true} }
	model := Part{Model: true}
	for _, c := range []struct {
		name  string
		parts []Part
		want  Step
	}{
		{"nothing", []Part{in("hi")}, Step{Say: "ok"}},
		{"used up", []Part{in("@@shell a"), model, result("")}, Step{Say: "ok"}},
		{"a later prompt drops the rest", []Part{in("@@say a\n@@say b"), model, in("@@say c")}, Step{Say: "c"}},
		{"a prompt of words goes on", []Part{in("@@say a\n@@say b"), model, in("go on")}, Step{Say: "b"}},
		{"steered before the rest", []Part{in("@@shell a\n@@say b"), model, result("x\n@@shell c"), model, result("")}, Step{Say: "b"}},
		{"broken off", []Part{in("@@shell a\n@@say b"), model, result("[Request interrupted by user for tool use]\n@@say c"), model, in("x")}, Step{Say: "ok"}},
		{"broken off before the answer came", []Part{in("@@shell a\n@@say b"), in("[Request interrupted by user]"), in("@@say c")}, Step{Say: "c"}},
		{"broken off before the answer came, and went on", []Part{in("@@shell a\n@@say b"), in("[Request interrupted by user]"), in("go on")}, Step{Say: "ok"}},
		{"broken off twice", []Part{in("@@say a"), in("<turn_aborted>"), in("@@say b"), in("<turn_aborted>"), in("go on")}, Step{Say: "ok"}},
		{"in a tag, escaped", []Part{in("<m from=\"x\">\n@@call f {&quot;a&quot;:&quot;&lt;&quot;}\n</m>")}, Step{Tool: "f", Input: json.RawMessage(`{"a":"\u003c"}`)}},
		{"what was sent to another is not done", []Part{in(`@@call send {"to":"x","text":"@@say two\n@@say three"}` + "\n@@say one"), model,
			result(`{"sent":{"text":"@@say two\n@@say three"}}`)}, Step{Say: "one"}},
		{"but a message that comes with the result is", []Part{in(`@@call send {"to":"x","text":"@@say two"}` + "\n@@say one"), model,
			result("@@say two\n@@say three")}, Step{Say: "three"}},
		{"in JSON", []Part{result(`{"messages":[{"text":"one\n@@say two"}],"again":"one\n@@say two"}`)}, Step{Say: "two"}},
		{"not in the middle of a line", []Part{in("the word @@say does nothing")}, Step{Say: "ok"}},
		{"sleeps add up", []Part{in("@@sleep 1s\n@@sleep 2s\n@@say x")}, Step{Say: "x", Wait: 3 * time.Second}},
		{"bad input", []Part{in("@@call f {bad")}, Step{Tool: "f", Input: json.RawMessage(`{}`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := Next(Merge(c.parts))
			if !ok {
				got.Say = "ok"
			}
			if got.Say != c.want.Say || got.Tool != c.want.Tool || string(got.Input) != string(c.want.Input) || got.Wait != c.want.Wait {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
