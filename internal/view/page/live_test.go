package page

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

func liveText(t *testing.T, d Doc) string {
	t.Helper()
	var b strings.Builder
	if err := Live(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestLiveTellsWhatItLacks checks that rows of members are marked as old while no supervisor maintains them,
// that the list, the board and the graph say how many tasks they leave out, that the list of teams has its
// time, and that the head of a hunk has no sign before it.
func TestLiveTellsWhatItLacks(t *testing.T) {
	t.Parallel()
	down := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := view.Snapshot{
		Team: "demo", Members: []view.Member{{Name: "ann", State: team.Running, Activity: team.Working}, {Name: "bob", State: team.Failed}},
		Tasks: []view.Task{{ID: "1", Subject: "x", Status: team.TaskPending}}, Whole: &view.Counts{Ready: 8, Total: 8},
	}
	d := Doc{Kind: "members", Team: "demo", Snapshot: s, Now: down.Add(time.Hour)}
	if text := liveText(t, d); strings.Contains(text, "? running") {
		t.Errorf("current facts are marked:\n%s", text)
	}
	d.Snapshot.Down = down
	if text := liveText(t, d); !strings.Contains(text, "? running, working as of 2026-03-01 12:00:00") || strings.Contains(text, "? failed") {
		t.Errorf("old facts:\n%s", text)
	}
	for kind, body := range map[string]any{"board": nil, "graph": map[string]any{"SVG": "", "Why": ""}} {
		if text := liveText(t, Doc{Kind: kind, Team: "demo", Snapshot: s, Body: body}); !strings.Contains(text, "7 more tasks are left out") {
			t.Errorf("%s leaves tasks out without a word:\n%s", kind, text)
		}
	}
	list := TaskList{Filter: "a&b", Next: "pending.0.300"}
	if text := liveText(t, Doc{Kind: "tasks", Team: "demo", Snapshot: s, Body: list}); !strings.Contains(text, "None here so far") || !strings.Contains(text, `href="/t/demo/tasks?filter=a%26b&amp;after=pending.0.300"`) {
		t.Errorf("the list does not lead on:\n%s", text)
	}
	if text := liveText(t, Doc{Kind: "tasks", Team: "demo", Snapshot: s, Body: TaskList{}}); !strings.Contains(text, "There is none") || strings.Contains(text, "after=") {
		t.Errorf("the end of the list leads on:\n%s", text)
	}
	if text := liveText(t, Doc{Kind: "teams", Now: down}); !strings.Contains(text, "as of 2026-03-01 12:00:00") {
		t.Errorf("the list of teams has no time:\n%s", text)
	}
	s.Needs = []view.Need{{Kind: view.NeedTask, Text: "9 more tasks have failed"}}
	if text := liveText(t, Doc{Kind: "needs", Team: "demo", Snapshot: s}); !strings.Contains(text, `href="/t/demo/tasks"><b>task</b>`) {
		t.Errorf("failed tasks that are not listed:\n%s", text)
	}
	diff := NewDiff(view.Changes{Member: "ann", Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"})
	if text := liveText(t, Doc{Kind: "changes", ID: "ann", Team: "demo", Body: diff}); strings.Contains(text, "@@@") || !strings.Contains(text, "@@ -0,0 &#43;1,2 @@") {
		t.Errorf("the head of a hunk:\n%s", text)
	}
}

// TestButtonsOfActions checks that every action of the page has its button there, or a line that takes it, and
// that no other action has one.
func TestButtonsOfActions(t *testing.T) {
	t.Parallel()
	lost := view.Message{ID: "m1", From: "worker-1", To: "worker-2", Receipts: []view.Receipt{{To: "worker-2", State: team.Unknown}}}
	question := view.Need{Kind: view.NeedPermission, Member: "worker-1", Approval: 1, Question: true}
	permission := view.Need{Kind: view.NeedPermission, Member: "worker-1", Approval: 2}
	plan := view.Need{Kind: view.NeedPlan, Member: "worker-1", Approval: 3}
	patch := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	shown := ""
	for _, d := range []Doc{
		{Kind: "needs"}, {Kind: "mail", Body: []view.Message{lost}}, {Kind: "changes", Body: []view.Merge{}},
		{Kind: "approval", Body: view.Request{ID: 1, State: "pending", Questions: []view.Question{{Text: "which?"}}}},
		{Kind: "approval", Body: view.Request{ID: 2, State: "pending", Command: "make", Rule: "allow: make"}},
		{Kind: "approval", Body: view.Request{ID: 3, State: "pending", Plan: "one\ntwo", Comments: []view.Comment{{Name: "1", State: "draft", First: 1, Last: 1, Text: "why?"}}}},
		{Kind: "member", Body: view.MemberDetail{Member: view.Member{Name: "worker-1", State: team.Running}}},
		{Kind: "member", Body: view.MemberDetail{Member: view.Member{Name: "worker-1", State: team.Running, Paused: true}}},
		{Kind: "member", Body: view.MemberDetail{Member: view.Member{Name: "worker-1", State: team.Completed}}},
		{Kind: "task", Body: view.TaskDetail{Task: view.Task{ID: "5", Status: team.TaskFailed}}},
		{Kind: "task", Body: view.TaskDetail{Task: view.Task{ID: "6", Status: team.TaskInProgress, Owner: "worker-1"}}},
		{Kind: "changes", ID: "worker-1", Body: NewDiff(view.Changes{Member: "worker-1", Patch: patch, Comments: []view.Comment{
			{Name: "1.1", State: "open", Path: "x", First: 1, Last: 1}, {Name: "2.1", State: "draft", Path: "x", First: 1, Last: 1},
		}})},
		{Kind: "changes", ID: "worker-1", Body: NewDiff(view.Changes{Member: "worker-1", Patch: patch, Reviewed: map[string]bool{"x": true}})},
	} {
		d.Team, d.Snapshot = "demo", view.Snapshot{Team: "demo", Needs: []view.Need{question, permission, plan}}
		shown += liveText(t, d)
	}
	byLine := map[string]bool{"comment": true, "comment-plan": true}
	for _, a := range view.Actions() {
		has := strings.Contains(shown, `data-action="`+a.ID+`"`)
		if byLine[a.ID] {
			has = strings.Contains(shown, "data-line=") && strings.Contains(string(Script()), "action: '"+a.ID+"'")
		}
		if has != a.Page {
			t.Errorf("%s: on the page %v, want %v", a.ID, has, a.Page)
		}
	}
}

// TestLiveUsage checks that the page shows what was used by member, agent, task and day, with its share, and
// that what is unknown is not zero.
func TestLiveUsage(t *testing.T) {
	t.Parallel()
	u := view.Usage{
		Team:    view.Spent{Known: true, Tokens: 1000, Cost: 4, CostKnown: true},
		Members: []view.Spent{{Name: "ann", Agent: "claude", Known: true, Tokens: 750, Cost: 3, CostKnown: true, Budget: "$4.00", Share: 0.75}, {Name: "bob", Agent: "other"}},
		Agents:  []view.Spent{{Agent: "claude", Known: true, Tokens: 750, Cost: 3, CostKnown: true}},
		Tasks:   []view.Spent{{Name: "3", Subject: "build it", Known: true, Tokens: 500, Cost: 2, CostKnown: true}},
		Rest:    view.Spent{Known: true, Tokens: 500},
		Days:    []view.Spent{{Name: "2026-03-01", Known: true, Tokens: 100, Cost: 1, CostKnown: true}},
	}
	text := liveText(t, Doc{Kind: "usage", Team: "demo", Body: u})
	const n = `<td class="n">`
	for _, want := range []string{
		"<td>ann<td>claude" + n + "750" + n + "75 % of all" + n + "$3.00<td>75 % of $4.00",
		"<td>bob<td>other" + n + "-" + n + n + "-<td>",
		"By agent", "<td>claude" + n + "750" + n + "75 % of all" + n + "$3.00</tr>",
		"</a> build it" + n + "500" + n + "50 % of all" + n + "$2.00",
		"without a task" + n + "500" + n + "50 % of all" + n + "-",
		"<td>2026-03-01" + n + "100" + n + "10 % of all" + n + "$1.00",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
