package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
)

// TestPreview checks that a notice is previewed as how the turn ended, and any other message by its
// summary.
func TestPreview(t *testing.T) {
	t.Parallel()
	frame := func(f inbox.Frame) string {
		t.Helper()
		text, err := inbox.Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const idle = "idle and ready for new work"
	for want, m := range map[string]ledger.Message{
		"This teammate failed: no quota":               {Summary: idle, Text: frame(inbox.IdleNotification{From: "a", FailureReason: "no quota"})},
		"This teammate is idle and ready for new work": {Summary: idle, Text: frame(inbox.IdleNotification{From: "a"})},
		"permission: Bash: make":                       {Summary: "permission: Bash: make", Text: frame(inbox.PermissionRequest{RequestID: "r", ToolName: "Bash"})},
		"look at task 1":                               {Summary: "look at task 1", Text: "look at task 1, and at 2"},
		"first line":                                   {Text: "first line"},
	} {
		if got := preview(m); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMessageLsNewest checks that a limit keeps the newest messages, in order.
func TestMessageLsNewest(t *testing.T) {
	r := newFaultRig(t)
	r.agent("ann", "never", "sleep", "10000")
	for i := range 8 {
		r.teamctl("send", "ann", fmt.Sprintf("text %d", i))
	}
	var got []string
	for line := range strings.Lines(r.teamctl("message", "ls", "--to", "ann", "--limit", "5")) {
		if _, text, ok := strings.Cut(line, "text "); ok {
			got = append(got, strings.TrimSpace(text))
		}
	}
	if strings.Join(got, " ") != "3 4 5 6 7" {
		t.Errorf("the newest five are %q", got)
	}
}
