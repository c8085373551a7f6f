package messages

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/agent/model/wire"
)

// TestBlocks checks that blocks keep all their fields, known or not, and that a block cut off by
// the output limit is neither run nor sent back.
func TestBlocks(t *testing.T) {
	t.Parallel()
	type block struct {
		start  string
		deltas []string
	}
	call := block{`{"type":"tool_use","id":"a","name":"f","input":{}}`, []string{`{"type":"input_json_delta","partial_json":"{\"x\":"}`, `{"type":"input_json_delta","partial_json":"\"<\"}"}`}}
	half := block{call.start, call.deltas[:1]}
	text := block{`{"type":"text","text":""}`, []string{`{"type":"text_delta","text":"a\ud83d"}`, `{"type":"text_delta","text":"\ude00 <"}`}}
	const textRaw = `{"type":"text","text":"a\ud83d\ude00 <"}`
	const callRaw = `{"type":"tool_use","id":"a","name":"f","input":{"x":"<"}}`
	for _, c := range []struct {
		name   string
		blocks []block
		stop   string
		want   model.Stop
		parts  int
		raw    string
	}{
		{"text and a call", []block{text, call}, "tool_use", model.StopCalls, 2, "[" + textRaw + "," + callRaw + "]"},
		{"unknown block and fields", []block{{`{"type":"server_thing","x":1.0,"y":"a","z":null}`, []string{`{"type":"y_delta","y":"b"}`}}, text}, "end_turn", model.StopEnd, 1,
			`[{"type":"server_thing","x":1.0,"y":"ab","z":null},` + textRaw + `]`},
		{"citations", []block{{`{"type":"text","text":"","citations":[]}`, []string{`{"type":"text_delta","text":"so"}`, `{"type":"citations_delta","citation":{"u": "<"}}`}}}, "end_turn", model.StopEnd, 1,
			`[{"type":"text","text":"so","citations":[{"u": "<"}]}]`},
		{"signature", []block{{`{"type":"thinking","thinking":"","signature":""}`, []string{`{"type":"thinking_delta","thinking":"hm"}`, `{"type":"signature_delta","signature":"s/="}`}}, text}, "end_turn", model.StopEnd, 1,
			`[{"type":"thinking","thinking":"hm","signature":"s/="},` + textRaw + `]`},
		{"empty text", []block{{`{"type":"text","text":"\n"}`, nil}, call}, "tool_use", model.StopCalls, 1, "[" + callRaw + "]"},
		{"no input", []block{{call.start, nil}}, "tool_use", model.StopCalls, 1, `[{"type":"tool_use","id":"a","name":"f","input":{}}]`},
		{"input that is no JSON", []block{half}, "tool_use", model.StopCalls, 1, `[{"type":"tool_use","id":"a","name":"f","input":{}}]`},
		{"call cut at the limit", []block{text, half}, "max_tokens", model.StopLimit, 1, "[" + textRaw + "]"},
		{"call begun at the limit", []block{text, {call.start, nil}}, "max_tokens", model.StopLimit, 1, "[" + textRaw + "]"},
		{"whole call at the limit", []block{call}, "max_tokens", model.StopLimit, 1, "[" + callRaw + "]"},
		{"thought cut at the limit", []block{text, {`{"type":"thinking","thinking":"","signature":""}`, []string{`{"type":"thinking_delta","thinking":"hm"}`}}}, "max_tokens", model.StopLimit, 1, "[" + textRaw + "]"},
		{"refusal", []block{text}, "refusal", model.StopRefused, 1, "[" + textRaw + "]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decoder{p: New(wire.Endpoint{Name: "x"}), ids: wire.NewIDs(nil), on: func(model.Delta) {}}
			send := func(format string, args ...any) {
				t.Helper()
				if err := d.event(wire.Event{Data: fmt.Appendf(nil, format, args...)}); err != nil {
					t.Fatal(err)
				}
			}
			send(`{"type":"message_start","message":{"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3}}}`)
			for i, b := range c.blocks {
				send(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, b.start)
				for _, delta := range b.deltas {
					send(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta)
				}
				send(`{"type":"content_block_stop","index":%d}`, i)
			}
			send(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":4}}`, c.stop)
			send(`{"type":"message_stop"}`)
			a, err := d.answer(model.Ref{Provider: "x", Model: "m"})
			if err != nil || a.Stop != c.want || len(a.Message.Parts) != c.parts {
				t.Fatalf("%+v, %v", a, err)
			}
			if string(a.Message.Raw) != c.raw || !json.Valid(a.Message.Raw) {
				t.Errorf("kept %s\nwant %s", a.Message.Raw, c.raw)
			}
			if u := a.Usage; u.InputTokens != 6 || u.CachedTokens != 2 || u.CacheWriteTokens != 3 || u.OutputTokens != 4 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

// TestOrder checks that events out of order fail as Cut, which makes the caller retry.
func TestOrder(t *testing.T) {
	t.Parallel()
	const (
		begin = `{"type":"message_start","message":{"usage":{}}}`
		start = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		delta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		stop  = `{"type":"content_block_stop","index":0}`
		end   = `{"type":"message_stop"}`
	)
	for _, events := range [][]string{
		{begin, begin}, {end}, {begin, start, start}, {begin, start, stop, start}, {begin, delta}, {begin, stop}, {begin, start, stop, stop},
		{begin, start, stop, delta}, {begin, start, end}, {begin, `{`}, {begin, `[]`},
	} {
		d := decoder{p: New(wire.Endpoint{Name: "x"}), ids: wire.NewIDs(nil), on: func(model.Delta) {}}
		var err error
		for _, e := range events {
			if err = d.event(wire.Event{Data: []byte(e)}); err != nil {
				break
			}
		}
		if k, ok := model.KindOf(err); !ok || k != model.Cut {
			t.Errorf("%v: %v", events, err)
		}
	}
}
