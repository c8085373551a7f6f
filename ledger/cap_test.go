package ledger

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// The lead is warned once that a run approaches its message limit, with the
// command that starts the next run; the refusal also names the command.
func TestTheLeadHearsOfTheCap(t *testing.T) {
	l := newTeam(t, "a")
	var last error
	for range team.MaxMessagesPerRun + 1 {
		_, _, last = l.Post(ctxFor(t), NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "x"})
	}
	if team.ReasonOf(last) != team.ReasonMessagesCap || team.HintOf(last) != "teamctl run start" {
		t.Errorf("beyond the cap: %v, hint %q", last, team.HintOf(last))
	}
	told, err := read(ctxFor(t), l.DB(), "notices", scanOne[string], "SELECT text FROM messages WHERE fromAgent = ? AND kind = ?", team.SystemName, string(team.KindInfo))
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "800 of at most 1000") || !strings.Contains(told[0], "teamctl run start") {
		t.Errorf("told %q", told)
	}
}

// The notice of a completed task names the tasks that became ready as a result.
func TestCompletedNamesWhatIsReady(t *testing.T) {
	l := newTeam(t, "a")
	a, err := l.Member(ctxFor(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	ts, err := l.CreateTasks(ctxFor(t), []NewTask{{Ref: "x", Subject: "x"}, {Subject: "y", DependsOn: []string{"x"}}}, team.LeadName)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Claim(ctxFor(t), ClaimIn{Owner: a.SessionKey, ID: ts[0].ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Complete(ctxFor(t), TaskRef{ID: got.ID, Owner: a.SessionKey, Attempt: got.Attempt}, Result{}); err != nil {
		t.Fatal(err)
	}
	told, err := read(ctxFor(t), l.DB(), "notices", scanOne[string], "SELECT summary || text FROM messages WHERE kind = ?", string(team.KindTaskCompleted))
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "ready now: "+ts[1].ID) || !strings.Contains(told[0], `"readyTasks":["`+ts[1].ID+`"]`) {
		t.Errorf("told %q, %v", told, err)
	}
}
