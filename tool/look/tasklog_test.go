package look

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestAttempts: a history is divided by its claims; each attempt has its end and the last lines of
// its failure.
func TestAttempts(t *testing.T) {
	t.Parallel()
	event := func(at int64, what, data string) ledger.Event {
		return ledger.Event{At: at, Who: "w", What: what, ID: "5", Data: []byte(data)}
	}
	got := attempts("5", []ledger.Event{
		event(1000, team.EventTaskCreated, ""),
		event(2000, team.EventTaskClaimed, `{"attempt":1}`),
		event(3000, team.EventTaskRetrying, `{"attempt":1,"retry":1,"result":{"error":"exit 3\nboom"}}`),
		event(4000, team.EventTaskClaimed, `{"attempt":2}`),
		event(5000, team.EventTaskReleased, `{"attempt":2}`),
		event(6000, team.EventTaskClaimed, `{"attempt":3}`),
		event(7000, team.EventTaskFailed, `{"error":"exit 4"}`),
		event(8000, team.EventTaskClaimed, ``),
	})
	type short struct {
		n, events  int
		from, to   int64
		end, error string
	}
	var list []short
	for _, a := range got {
		s := short{n: a.Attempt, events: len(a.events), from: a.From.UnixMilli(), end: a.End, error: a.failed}
		if !a.To.IsZero() {
			s.to = a.To.UnixMilli()
		}
		list = append(list, s)
		if diff := cmp.Diff([]int{1, 2, 3, 4}, a.Attempts); diff != "" {
			t.Error(diff)
		}
	}
	want := []short{{1, 2, 2000, 3000, "failed", "exit 3\nboom"}, {2, 2, 4000, 5000, "released", ""}, {3, 2, 6000, 7000, "failed", "exit 4"}, {4, 1, 8000, 0, "", ""}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(short{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWorkerPart: the output of an attempt is what lies between the worker's own lines about it.
func TestWorkerPart(t *testing.T) {
	t.Parallel()
	log := strings.Split(`w: worker ready

── task 4: before
── task 4 completed in 1s: ok

── task 5: lint
$ lint
boom
── task 5 failed after 1s: exit 3

── task 6: after
── task 6 completed in 1s: ok

── task 5: lint (attempt 2)
$ lint
fine`, "\n")
	for attempt, want := range map[int][]string{
		1: {"── task 5: lint", "$ lint", "boom", "── task 5 failed after 1s: exit 3"},
		2: {"── task 5: lint (attempt 2)", "$ lint", "fine"},
		3: nil,
	} {
		if diff := cmp.Diff(want, workerPart(log, view.TaskLog{Task: "5", Attempt: attempt})); diff != "" {
			t.Errorf("attempt %d (-want +got):\n%s", attempt, diff)
		}
	}
}

// TestVerifyLines: verifications are found in both parts of their log, and no other's.
func TestVerifyLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "verify.log")
	for name, text := range map[string]string{
		path + ".1": "── task 5, attempt 1, 2026-03-01T12:00:00Z: verify $ test\n\x1b[31mred\x1b[0m\n── exit 1, 2s\n",
		path:        "── task 6, attempt 1, 2026-03-01T12:01:00Z: verify $ test\nother\n── exit 0, 1s\n── task 5, attempt 1, 2026-03-01T12:02:00Z: verify $ test\ngreen\n── exit 0, 1s\n── task 5, attempt 2, 2026-03-01T12:03:00Z: verify $ test\nlater\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := verifyLines(path, view.TaskLog{Task: "5", Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"── task 5, attempt 1, 2026-03-01T12:00:00Z: verify $ test", "red", "── exit 1, 2s",
		"── task 5, attempt 1, 2026-03-01T12:02:00Z: verify $ test", "green", "── exit 0, 1s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := verifyLines(path+".none", view.TaskLog{Task: "5", Attempt: 1, From: time.Now()}); err != nil || len(got) != 0 {
		t.Errorf("without a log: %q, %v", got, err)
	}
}

// TestLastPart: of a long text the last whole lines are shown, and it says so.
func TestLastPart(t *testing.T) {
	t.Parallel()
	lines, cut := lastPart(strings.Repeat("0123456789\n", logMost/10))
	if !cut || len(lines) == 0 || lines[0] != "0123456789" || len(lines)*11 > logMost {
		t.Errorf("%d lines, cut %t, the first is %q", len(lines), cut, lines[0])
	}
	if lines, cut := lastPart("a\nb\n\n"); cut || len(lines) != 2 {
		t.Errorf("%q, cut %t", lines, cut)
	}
}
