package view

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Each event of the ledger has a sentence or is left out by name, and no sentence is
// about an event that does not exist.
func TestEveryEventHasASentence(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, w := range team.Events() {
		known[w.Name] = true
		if _, ok := sentences[w.Name]; !ok {
			t.Errorf("%s is neither told nor left out", w.Name)
		}
	}
	for name, text := range sentences {
		if !known[name] {
			t.Errorf("%s is no event", name)
		}
		told := Sentence(Happened{Who: "builder", What: name, ID: "5", Before: "pending", After: "pending", Subject: "tests"})
		if (text == "") != (told == "") || strings.ContainsAny(told, "{}") || strings.Contains(told, "->") {
			t.Errorf("%s: %q", name, told)
		}
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Happened{
		"lint finished 4 unit tests":    {Who: "lint", What: team.EventTaskCompleted, ID: "4", Subject: "unit tests"},
		"lint took 4":                   {Who: "lint", What: team.EventTaskClaimed, ID: "4"},
		"7 guide is ready now":          {Who: "lint", What: team.EventTaskUnblocked, ID: "7", Before: "pending", After: "pending", Subject: "guide"},
		"builder asks: Bash":            {Who: "builder", What: team.EventApprovalAsked, ID: "1", After: "pending", Subject: "Bash"},
		"w runs":                        {Who: "supervisor", What: team.EventMemberState, ID: "w", Before: "starting", After: "running"},
		"w failed: it does not stay up": {Who: "supervisor", What: team.EventMemberState, ID: "w", Before: "backoff", After: "failed"},
		"team-lead gave 5 to builder":   {Who: "team-lead", What: team.EventTaskAssigned, ID: "5", After: `{"owner":"builder"}`},
		"team-lead took 5 from builder": {Who: "team-lead", What: team.EventTaskAssigned, ID: "5", Before: `{"owner":"builder"}`, After: `{"owner":""}`},
		"w: task.painted 5":             {Who: "w", What: "task.painted", ID: "5"},
		"":                              {Who: "w", What: team.EventMessageMailed, ID: "6b74"},
		"builder is now called smith":   {Who: "team-lead", What: team.EventMemberRenamed, ID: "builder", Before: "builder", After: "smith"},
	} {
		if got := Sentence(e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

func TestSortNeeds(t *testing.T) {
	t.Parallel()
	list := []Need{{Kind: NeedMail}, {Kind: NeedTask, Task: "5"}, {Kind: NeedPlan, Approval: 2}, {Kind: NeedPermission, Approval: 3}, {Kind: NeedPermission, Approval: 1}, {Kind: NeedSupervisor}}
	SortNeeds(list)
	var names []string
	for _, n := range list {
		names = append(names, n.Name())
	}
	if got := strings.Join(names, ", "); got != "supervisor, permission 1, permission 3, plan 2, task 5, mail" {
		t.Error(got)
	}
}

// TestLogKinds: every event belongs to exactly one kind of the log beside everything.
func TestLogKinds(t *testing.T) {
	t.Parallel()
	for what := range sentences {
		var in []string
		for _, k := range LogKinds()[1:] {
			if InLog(k, what) {
				in = append(in, k)
			}
		}
		if len(in) != 1 || !InLog("", what) || !InLog(LogKinds()[0], what) {
			t.Errorf("%s is in %q", what, in)
		}
	}
	if got := Protocol(Happened{Who: "ann", What: "message.read", ID: "7", Before: "mailed", After: "read"}); got != "ann: message.read 7, mailed -> read" {
		t.Errorf("%q", got)
	}
}
