package look

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	p := tool.Progress{
		Tasks: []ledger.Task{
			{ID: "1", Subject: "a", Status: team.TaskFailed, OwnerName: "w", Attempt: 1, ClaimedAt: 1000, StartedAt: 2000, CompletedAt: 5000,
				Result: &ledger.Result{Error: "exit 3\none\nboom\n"}},
			{ID: "2", Subject: "b", ActiveForm: "doing b", Status: team.TaskClaimed, OwnerName: "w", Attempt: 2, ClaimedAt: 1000},
			{ID: "3", Subject: "c", Status: team.TaskPending, BlockedBy: []string{"1"}},
			{ID: "4", Subject: "d", Status: team.TaskPending, BlockedBy: []string{"3"}},
			{ID: "5", Subject: "e", Status: team.TaskPending, BlockedBy: []string{"2"}},
		},
		Members: []ledger.Member{
			{Name: team.LeadName},
			{Name: "w", Color: "blue", Observed: team.Backoff, Activity: team.ActivityUnknown, StartedAt: 7000, Restarts: 2, Reason: "crashed", ExitText: "exit 3"},
		},
	}
	events := []ledger.Event{{At: 9000, Who: "w", What: "task.failed", ID: "1", After: "failed"}}
	want := view.Snapshot{
		Team: "demo", Needs: []view.Need{},
		Tasks: []view.Task{
			{ID: "1", Subject: "a", Status: team.TaskFailed, Owner: "w", Attempt: 1, Began: time.UnixMilli(2000), Ended: time.UnixMilli(5000), Note: "exit 3: boom"},
			{ID: "2", Subject: "doing b", Status: team.TaskClaimed, Owner: "w", Attempt: 2, Began: time.UnixMilli(1000)},
			{ID: "3", Subject: "c", Status: team.TaskPending, Waits: []string{"1"}, Stuck: true},
			{ID: "4", Subject: "d", Status: team.TaskPending, Waits: []string{"3"}, Stuck: true},
			{ID: "5", Subject: "e", Status: team.TaskPending, Waits: []string{"2"}},
		},
		Members: []view.Member{
			{Name: team.LeadName, Lead: true},
			{Name: "w", Color: "blue", State: team.Backoff, Activity: team.ActivityUnknown, Since: time.UnixMilli(7000), Restarts: 2, Note: "exit 3 (crashed)"},
		},
		Events: []view.Event{{At: time.UnixMilli(9000), Who: "w", What: "task.failed", ID: "1", Text: "1 a failed"}},
	}
	got := Progress("demo", p)
	got.Events = told(subjectsOf(got), events, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNumbersOfABoard(t *testing.T) {
	t.Parallel()
	got := numbers(ledger.Board{Free: 4, Counts: ledger.Counts{Pending: 9, Ready: 3, Claimed: 1, InProgress: 2, Completed: 20, Failed: 5, Stuck: 3}})
	if diff := cmp.Diff(&view.Counts{Done: 20, Failed: 5, Active: 3, Ready: 4, Waiting: 2, Stuck: 3, Total: 37}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhy checks that the reason for a member's state is given once.
func TestWhy(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]ledger.Member{
		"":                       {},
		"exit 0":                 {Reason: team.WhyExitZero, ExitText: "exit 0"},
		"exit 3":                 {ExitText: "exit 3"},
		"exit 3 (crashed)":       {Reason: "crashed", ExitText: "exit 3"},
		"crashed":                {Reason: "crashed"},
		"its turn failed: quota": {TurnError: "quota", Reason: "crashed", ExitText: "exit 3"},
	} {
		if got := Why(m); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
}
