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
	diff := NewDiff(view.Changes{Member: "ann", Patch: "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n"})
	if text := liveText(t, Doc{Kind: "changes", ID: "ann", Team: "demo", Body: diff}); strings.Contains(text, "@@@") || !strings.Contains(text, "@@ -0,0 &#43;1,2 @@") {
		t.Errorf("the head of a hunk:\n%s", text)
	}
}
