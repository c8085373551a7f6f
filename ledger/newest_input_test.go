package ledger

import (
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestNewestInput: calls that failed, were skipped or are open do not count.
func TestNewestInput(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	newest := func() string {
		in, ok, err := r.NewestInput(r.ctx, devKey, "todo")
		if err != nil || ok != (in.JSON != nil) {
			t.Fatal(in, ok, err)
		}
		return string(in.JSON) + in.File
	}
	asked := json.RawMessage(`{"inputs":{"file":"entry-1.txt"}}`)
	call := func(id, tool, meta string) {
		t.Helper()
		r.says(devKey, "do it")
		ref := r.mustClaim(devKey, "g").Job.Ref()
		if _, err := r.Answered(r.ctx, TurnAnswer{Ref: ref, Entry: NewEntry{Kind: EntryAssistant, Meta: asked}, Calls: []NewCall{{CallID: id, Name: tool, Input: `"` + id + `"`}}}); err != nil {
			t.Fatal(err)
		}
		if meta != "" {
			if _, err := r.BeginCall(r.ctx, ref, id); err != nil {
				t.Fatal(err)
			}
			if _, err := r.EndCalls(r.ctx, TurnResults{Ref: ref, Results: []CallResult{{CallID: id, Entry: NewEntry{Kind: EntryToolResult, Content: "x", Meta: json.RawMessage(meta)}}}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.EndTurn(r.ctx, TurnEnd{Ref: ref, State: team.TurnDone}); err != nil {
			t.Fatal(err)
		}
	}
	if got := newest(); got != "" {
		t.Errorf("%s before any call", got)
	}
	call("1", "todo", `{}`)
	call("2", "todo", `{"name":"todo"}`)
	call("3", "todo", `{"failed":true}`)
	call("4", "todo", "") // never began
	call("5", "other", `{}`)
	if got := newest(); got != `"2"` {
		t.Errorf("%s, want the second", got)
	}
	call("file", "todo", `{}`)
	if got := newest(); got != `"file"entry-1.txt` {
		t.Errorf("%s, want the file of the last", got)
	}
}
