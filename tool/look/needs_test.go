package look

import (
	"fmt"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// TestLimitSince checks that the need of a provider at its limit has the time since when, and that there is none
// once the limit has ended.
func TestLimitSince(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	list := usage(tool.Usage{Limited: []tool.LimitedAgent{
		{Agent: "claude", ProviderLimit: team.ProviderLimit{Since: since.UnixMilli(), Until: since.Add(2 * time.Hour).UnixMilli()}},
		{Agent: "codex", ProviderLimit: team.ProviderLimit{Since: since.UnixMilli(), Ended: since.Add(time.Hour).UnixMilli()}},
	}}, since.Add(time.Minute))
	if len(list) != 1 || list[0].Kind != view.NeedLimit || !list[0].Since.Equal(since) || list[0].Text != "claude has reached its usage limit, until 14:00" {
		t.Errorf("%+v", list)
	}
}

// TestFailedTasks checks that every failed task needs a person: those that are not listed do together.
func TestFailedTasks(t *testing.T) {
	t.Parallel()
	for failed, more := range map[int]string{0: "", failedShown: "", failedShown + 1: "1 more task has failed", failedShown + 9: "9 more tasks have failed"} {
		s := view.Snapshot{Whole: &view.Counts{Failed: failed, Total: failed + 3}}
		for i := range min(failed, failedShown+2) { // a part of the board
			s.Tasks = append(s.Tasks, view.Task{ID: fmt.Sprint(i + 1), Status: team.TaskFailed, Ended: time.Unix(int64(i), 0)})
		}
		list := failedTasks(s)
		last := ""
		if n := len(list); n > 0 && list[n-1].Task == "" {
			last = list[n-1].Text
			list = list[:n-1]
		}
		if len(list) != min(failed, failedShown) || last != more {
			t.Errorf("%d failed: %d needs and %q, want %q", failed, len(list), last, more)
		}
		if n := len(s.Tasks); n > 0 && list[0].Task != s.Tasks[n-1].ID {
			t.Errorf("%d failed: the newest of those read is %s, and the first need of %s", failed, s.Tasks[n-1].ID, list[0].Task)
		}
	}
}
