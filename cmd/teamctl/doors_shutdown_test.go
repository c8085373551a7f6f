package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// TestShutdownRequest checks that a shutdown request by message does not wait for the member.
// When the member approves, it exits and leaves the roster, and the lead receives the answer.
func TestShutdownRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.viaCall()
	w.must(d, "TeamCreate", map[string]any{"team_name": "demo"}, nil)
	w.must(d, "TeammateSpawn", map[string]any{"name": "builder", "backend": "pty"}, nil)
	w.must(d, "Wait", map[string]any{"member": "builder"}, nil)
	var sent tool.Sent
	w.must(d, "SendMessage", map[string]any{"type": "shutdown_request", "recipient": "builder", "content": "done"}, &sent)
	if !regexp.MustCompile(`^shutdown-\d+@builder`).MatchString(sent.RequestID) || sent.Target != "builder" ||
		sent.Message != "Shutdown request sent to builder. Request ID: "+sent.RequestID {
		t.Errorf("%+v", sent)
	}
	var in tool.InboxOut
	for !slices.ContainsFunc(in.Entries, func(e tool.InboxEntry) bool { return e.Kind == "shutdown_approved" }) {
		w.must(d, "InboxRead", map[string]any{"wait_seconds": 60}, &in)
		if len(in.Entries) == 0 {
			t.Fatal("no answer")
		}
	}
	var st op.TeamStatusOut
	for len(st.Members) != 1 {
		st = op.TeamStatusOut{}
		w.must(d, "TeamStatus", nil, &st)
		w.tick()
	}
	w.must(d, "TeamDelete", nil, nil)
}
