package tui

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// epoch is the time of every snapshot in these tests.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return epoch.Add(-d) }

// sample has a task in every state, and texts with control sequences.
func sample() view.Snapshot {
	return view.Snapshot{
		Team: "demo", Repo: "/src/repo",
		Tasks: []view.Task{
			{ID: "1", Subject: "format", Status: team.TaskCompleted, Owner: "builder", Attempt: 1, Began: ago(90 * time.Second), Ended: ago(88800 * time.Millisecond)},
			{ID: "2", Subject: "vet\x1b[2J\nall", Status: team.TaskFailed, Owner: "probe", Attempt: 2, Began: ago(80 * time.Second), Ended: ago(20 * time.Second), Note: "exit 1: main.go:3:\tundefined\x07: x"},
			{ID: "3", Subject: "test ./ledger", Status: team.TaskInProgress, Owner: "builder", Attempt: 1, Began: ago(64 * time.Second)},
			{ID: "4", Subject: "test ./inbox with a subject that is far too long for any line of a terminal", Status: team.TaskClaimed, Owner: "worker-2", Attempt: 1, Began: ago(4 * time.Second)},
			{ID: "5", Subject: "coverage", Status: team.TaskPending, Waits: []string{"3", "4"}},
			{ID: "6", Subject: "deploy", Status: team.TaskPending, Waits: []string{"2"}, Stuck: true},
			{ID: "10", Subject: "übersicht 数据", Status: team.TaskPending},
		},
		Members: []view.Member{
			{Name: "team-lead", Lead: true},
			{Name: "builder", Color: "blue", State: team.Running, Activity: team.Working},
			{Name: "worker-2", Color: "green", State: team.Running, Activity: team.ActivityUnknown, Restarts: 2},
			{Name: "probe", Color: "yellow", State: team.Failed, Note: "gave up after 8 failures"},
		},
		Needs: []view.Need{
			{Kind: view.NeedPermission, Member: "worker-2", Approval: 3, Text: "Bash: npm publish --tag next", Since: ago(5 * time.Minute), Command: "teamctl show approval 3"},
			{Kind: view.NeedMember, Member: "probe", Text: "gave up after 8 failures", Since: ago(40 * time.Second), Command: "teamctl show member probe"},
		},
		Events: []view.Event{
			{At: ago(80 * time.Second), Who: "probe", What: "task.claimed", ID: "2", Text: "probe took 2"},
			{At: ago(20 * time.Second), Who: "probe", What: "task.failed", ID: "2", Text: "2 failed: exit 1"},
			{At: ago(4 * time.Second), Who: "worker-2", What: "task.claimed", ID: "4", Text: "worker-2 took 4"},
		},
	}
}
