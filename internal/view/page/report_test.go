package page

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

var update = flag.Bool("update", false, "write the golden files")

func sampleReport(t *testing.T, subject string) view.Report {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tasks := []view.Task{
		{ID: "1", Subject: subject, Status: team.TaskFailed, Attempt: 2, Began: at, Ended: at.Add(time.Minute), Note: "exit 3"},
		{ID: "2", Subject: "deploy", Status: team.TaskPending, Stuck: true},
	}
	g, err := view.NewGraph(tasks, map[string][]string{"2": {"1"}}, at)
	if err != nil {
		t.Fatal(err)
	}
	r := view.Report{
		Team: "demo", Run: 3, Open: true, Counts: view.Snapshot{Tasks: tasks}.Count(), Graph: &g,
		Timeline:  view.Timeline{Team: "demo", From: at, To: at.Add(time.Hour), History: at, Lanes: []view.Lane{{Member: "b", Spans: []view.Span{{State: view.LaneIdle, From: at, To: at.Add(time.Hour)}}}}},
		Needs:     []view.Need{{Kind: view.NeedTask, Task: "1", Text: subject, Command: "teamctl show task 1"}},
		Members:   []view.ReportMember{{Name: "b", Agent: "claude", Restarts: 1, Ends: []string{"exit 1"}}},
		Approvals: []view.ReportApproval{{ID: 4, Kind: "plan", State: "approved", Member: "b", Subject: subject, By: "person", Asked: at, Took: time.Minute}},
		Diffs:     []view.ReportDiff{{Member: "b", Text: "+" + subject + "\n-old\n"}},
		Queue:     []view.Depth{{At: at, Open: 1}, {At: at.Add(time.Minute), Done: 1}},
		Deeds:     []view.Event{{At: at, Text: subject}}, Messages: []view.Tally{{Name: "b", N: 2}},
		Durations: view.Durations{Ended: 1, Median: time.Minute, P90: time.Minute, Longest: time.Minute},
	}
	for i, x := range tasks {
		r.Tasks = append(r.Tasks, view.ReportTask{Task: x, Log: []string{subject + "\n```\nboom", ""}[i]})
	}
	return r
}

// Nothing of an agent's becomes markup, and the same report gives the same bytes.
func TestReport(t *testing.T) {
	t.Parallel()
	r := sampleReport(t, `<script>alert(1)</script> [x](javascript:1) **b** | "q" \x1b`)
	for _, md := range []bool{false, true} {
		var a, b strings.Builder
		if err := Report(&a, r, md); err != nil {
			t.Fatal(err)
		}
		if err := Report(&b, r, md); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() {
			t.Error("not the same twice")
		}
		for _, want := range []string{"0 of 2 tasks completed", "exit 3", "run 3", "Left out", "1m00s"} {
			if has := strings.Contains(a.String(), want); has == (want == "Left out") {
				t.Errorf("markdown %v: %q: %v in\n%s", md, want, has, a.String())
			}
		}
		if !md && strings.Contains(a.String(), "<script") {
			t.Errorf("a script in\n%s", a.String())
		}
		outside := false
		for l := range strings.SplitSeq(a.String(), "\n") {
			if strings.HasPrefix(l, "```") {
				outside = !outside
			}
			if md && !outside && (strings.Contains(l, "<script>") || strings.Contains(l, "[x](")) && !strings.HasPrefix(l, "+") {
				t.Errorf("markup in %q", l)
			}
		}
	}
}

// A report that would be too large is cut, and names what was cut.
func TestReportSize(t *testing.T) {
	t.Parallel()
	r := sampleReport(t, "lint")
	r.Diffs = []view.ReportDiff{{Member: "b", Text: strings.Repeat("+ a line\n", 800_000)}, {Member: "c", Text: "+ kept\n"}}
	var b strings.Builder
	if err := Report(&b, r, false); err != nil {
		t.Fatal(err)
	}
	if b.Len() > MaxReport || !strings.Contains(b.String(), "the changes of b, 7200000 bytes") || !strings.Contains(b.String(), "&#43; kept") {
		t.Errorf("%d bytes, cut is not named", b.Len())
	}
	r.Diffs = nil
	many, busy := r, r
	for i := range 2 * tasksKept {
		many.Tasks = append(many.Tasks, view.ReportTask{Task: view.Task{ID: fmt.Sprint(i), Subject: "x"}})
	}
	for range 300 { // in characters of four bytes, since a page costs by the character
		busy.Deeds = append(busy.Deeds, view.Event{Text: strings.Repeat("😀", 5_000)})
	}
	tasks := fmt.Sprintf("the newest %d tasks of the list", len(many.Tasks)-tasksKept)
	deeds := fmt.Sprintf("what happened: %d lines", len(busy.Deeds)-200)
	for _, x := range []struct {
		r   view.Report
		md  bool
		cut string
	}{
		{many, true, tasks}, // dropped before the form matters
		{busy, false, deeds},
		{busy, true, deeds},
	} {
		b.Reset()
		if err := Report(&b, x.r, x.md); err != nil {
			t.Fatal(err)
		}
		if b.Len() > MaxReport || !strings.Contains(b.String(), x.cut) {
			t.Errorf("%d bytes, %q is not named", b.Len(), x.cut)
		}
	}
}

// A browser shows it, though its policy allows neither scripts nor requests.
func TestReportInChromium(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		if browser, err = exec.LookPath("chromium"); err != nil {
			t.Skip("no chromium is installed")
		}
	}
	home := t.TempDir()
	file := filepath.Join(home, "report.html")
	var b strings.Builder
	if err := Report(&b, sampleReport(t, "<b>lint</b>"), false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+filepath.Join(home, "p"),
		"--dump-dom", "file://"+file)
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "XDG_RUNTIME_DIR="+home, "DBUS_SESSION_BUS_ADDRESS=/dev/null")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s := string(out); !strings.Contains(s, "&lt;b&gt;lint") || !strings.Contains(s, "<polyline") || strings.Contains(s, "<b>lint") {
		t.Errorf("as the browser has it:\n%s", s)
	}
}

// TestReportWithoutFailures checks that both forms say that nothing failed, and in which zone times are.
func TestReportWithoutFailures(t *testing.T) {
	t.Parallel()
	r := view.Report{Team: "demo", Timeline: view.Timeline{From: time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 7200))}}
	for _, md := range []bool{false, true} {
		var b strings.Builder
		if err := Report(&b, r, md); err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(b.String(), "Failures")
		failures, _, _ := strings.Cut(rest, "Merges")
		if !strings.Contains(failures, "None.") || !strings.Contains(b.String(), "Times are UTC") || !strings.Contains(b.String(), "02:00.") {
			t.Errorf("markdown %v:\n%s", md, b.String())
		}
	}
}

// TestReportGolden compares both forms of a report, as a whole, with those in testdata.
func TestReportGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"report.html", "report.md"} {
		var b strings.Builder
		if err := Report(&b, sampleReport(t, "lint <b>"), name == "report.md"); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}
