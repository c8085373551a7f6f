package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// TestLimitsPage checks that docs/limits.md has the current limits.
func TestLimitsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{
		"messages of a run":                     fmt.Sprint(team.MaxMessagesPerRun),
		"a message":                             fmt.Sprint(team.MaxMessageBytes, " bytes"),
		"the subject of a task":                 fmt.Sprint(team.MaxSubject, " characters"),
		"the description of a task":             fmt.Sprint(team.MaxDescription, " characters"),
		"the active form of a task":             fmt.Sprint(team.MaxActiveForm, " characters"),
		"hops of a forwarded message":           fmt.Sprint(team.MaxHops, ", or less"),
		"depth of sub-runs":                     fmt.Sprint(ledger.MaxRunDepth),
		"depth of a conversation that is shown": fmt.Sprint(ledger.MaxThreadDepth),
		"read messages in a mailbox file":       fmt.Sprint(mail.KeepRead),
	} {
		if !strings.Contains(string(page), "\n| "+row+" | "+want) {
			t.Errorf("docs/limits.md: %s: not %s", row, want)
		}
	}
}
