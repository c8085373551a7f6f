package adapter

import (
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The lines are those that Claude Code 2.1.329 writes, without what does not matter.
func TestCountTranscript(t *testing.T) {
	text := `{"type":"user","message":{"role":"user","content":"hello"}}
{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":1000,"output_tokens":1}}}
{"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use"}],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":1000,"output_tokens":10}}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"\"usage\" is a word"}]}}
not JSON, with "usage"
{"type":"assistant","message":{"id":"msg_2","usage":{"input_tokens":7,"output_tokens":5}}}
`
	want := team.Usage{InputTokens: 1127, OutputTokens: 15, CachedTokens: 1000}
	for cut := range len(text) { // read in two goes, cut anywhere
		var c Counted
		c.Count([]byte(text[:cut]))
		c.Count([]byte(text[c.Offset:]))
		if c.Total != want || c.Offset != int64(len(text)) {
			t.Fatalf("cut at %d: %+v", cut, c)
		}
	}
}
