package adapter

import (
	"os"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The lines are those that Claude Code 2.1.329 writes, without irrelevant fields.
func TestCountTranscript(t *testing.T) {
	t.Parallel()
	text := `{"type":"user","message":{"role":"user","content":"hello"}}
{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":1000,"output_tokens":1}}}
{"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":1000,"output_tokens":10}}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"\"usage\" is a word"}]}}
not JSON, with "usage"
{"type":"assistant","message":{"id":"msg_2","usage":{"input_tokens":7,"output_tokens":5}}}
`
	want := team.Usage{InputTokens: 1127, OutputTokens: 15, CachedTokens: 1000}
	for cut := range len(text) { // read in two parts, cut anywhere
		var c Counted
		c.Count(Claude, []byte(text[:cut]))
		c.Count(Claude, []byte(text[c.Offset:]))
		if c.Total != want || c.Offset != int64(len(text)) {
			t.Fatalf("cut at %d: %+v", cut, c)
		}
	}
}

// The file was written by Gemini CLI 0.61.0: a turn of two answers, of which it wrote the first
// again after its tool had run.
func TestCountGeminiChat(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/gemini-0.61.0-chat.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	more := []byte(`{"id":"x","type":"gemini","content":"","tokens":{"input":1000,"output":5,"cached":900,"thoughts":40,"tool":7,"total":1052}}
{"id":"y","type":"gemini","content":"no tokens yet","tokens":null}
{"id":"z","type":"user","content":"\"tokens\""}
`)
	text := append(data, more...)
	want := team.Usage{InputTokens: 1207, OutputTokens: 65, CachedTokens: 900}
	for cut := range len(text) {
		var c Counted
		c.Count(Gemini, text[:cut])
		c.Count(Gemini, text[c.Offset:])
		if c.Total != want || c.Offset != int64(len(text)) {
			t.Fatalf("cut at %d: %+v", cut, c)
		}
	}
}
