package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// TestChatPieces checks that calls are assembled however a server numbers them, and that all
// fields of an answer are sent back.
func TestChatPieces(t *testing.T) {
	t.Parallel()
	type call struct{ id, name, input string }
	for _, c := range []struct {
		name   string
		deltas []string
		finish string
		calls  []call
		raw    string
	}{
		{"in order", []string{
			`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}`,
			`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}`,
		}, "tool_calls", []call{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}}, ""},
		{"without indices", []string{
			`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}`, `{"tool_calls":[{"function":{"arguments":"1}"}}]}`,
			`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`,
		}, "tool_calls", []call{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}}, ""},
		{"without ids", []string{`{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"function":{"name":"f","arguments":"{}"}}]}`},
			"stop", []call{{"call_1", "f", `{}`}, {"call_2", "f", `{}`}}, ""},
		{"all of them 0", []string{
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`,
		}, "tool_calls", []call{{"a", "f", `{}`}, {"b", "g", `{}`}}, ""},
		{"one id twice", []string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}`},
			"tool_calls", []call{{"a", "f", `{}`}, {"call_2", "g", `{}`}}, ""},
		{"an object for input", []string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`}, "tool_calls", []call{{"a", "f", `{"x":1}`}}, ""},
		{"no JSON", []string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{bad"}}]}`}, "tool_calls", []call{{"a", "f", `"{bad"`}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{bad"}}]}`},
		{"cut at the limit", []string{
			`{"content":"so"}`, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`, `{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":"}}]}`,
		}, "length", []call{{"a", "f", `{}`}}, `{"role":"assistant","content":"so","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"fields of others", []string{
			`{"role":"assistant","content":"","reasoning_content":"thi","refusal":null,"reasoning_details":[{"type":"reasoning.text","index":0,"text":"th\ud83d","format":"x"}]}`,
			`{"reasoning_content":"nk <","reasoning_details":[{"type":"reasoning.text","index":0,"text":"\ude00 i","signature":"s/g="}]}`,
			`{"content":"a","reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"QQ=="}]}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x<y"}}}]}`,
		}, "tool_calls", []call{{"a", "f", `{}`}}, `{"role":"assistant","content":"a","reasoning_content":"think <","reasoning_details":[{"type":"reasoning.text","index":0,"text":"th\ud83d\ude00 i","format":"x","signature":"s/g="},{"type":"reasoning.encrypted","index":1,"data":"QQ=="}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x<y"}}}]}`},
		{"content as a list", []string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}`, `{"content":[{"type":"text","text":"so"}]}`}, "stop", nil,
			`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"text":"so","type":"text"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := chatDecoder{e: wire.Endpoint{Name: "x"}, ids: wire.NewIDs(nil), on: func(model.Delta) {}}
			for i, delta := range c.deltas {
				finish := ""
				if i == len(c.deltas)-1 {
					finish = c.finish
				}
				if err := d.event([]byte(`{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":"` + finish + `"}]}`)); err != nil {
					t.Fatal(err)
				}
			}
			a, err := d.answer(model.Ref{Provider: "x", Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			var got []call
			for _, p := range a.Message.Parts {
				if p.Call != nil {
					got = append(got, call{p.Call.ID, p.Call.Name, string(p.Call.Input)})
				}
			}
			if diff := cmp.Diff(c.calls, got, cmp.AllowUnexported(call{})); diff != "" {
				t.Error(diff)
			}
			if c.raw != "" && string(a.Message.Raw) != c.raw || !json.Valid(a.Message.Raw) {
				t.Errorf("kept %s\nwant %s", a.Message.Raw, c.raw)
			}
			if (a.Stop == model.StopLimit) != (c.finish == "length") || a.Stop == model.StopCalls && len(got) == 0 {
				t.Errorf("stop %s", a.Stop)
			}
		})
	}
}
