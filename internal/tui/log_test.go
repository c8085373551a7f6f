package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// failedLog is an attempt that failed, with control sequences in its texts.
func failedLog() view.TaskLog {
	l := view.TaskLog{
		Task: "2", Attempt: 2, Attempts: []int{1, 2}, Owner: "probe", From: ago(80 * time.Second), To: ago(20 * time.Second), End: "failed",
		Events: []view.Event{{At: ago(20 * time.Second), Text: "2 failed"}},
		Parts: []view.LogPart{
			{Title: "WHY IT FAILED", Lines: []string{"exit 1", "main.go:3:\tundefined: x\x1b[2J"}},
			{Title: "OUTPUT", Lines: []string{"── task 2: vet (attempt 2)", "$ go vet ./..."}, Cut: true},
			{Title: "VERIFICATION", Missing: "no more"},
		},
	}
	for i := range 30 {
		l.Parts[1].Lines = append(l.Parts[1].Lines, fmt.Sprintf("line %d 数据 of an output that is wider than a small terminal", i+1))
	}
	return l
}

// archive is a team with logs. It records each read.
type archive struct {
	view.Team
	reads chan int
}

func (a *archive) TaskLog(_ context.Context, _ string, attempt int) (view.TaskLog, error) {
	a.reads <- attempt
	l := failedLog()
	if attempt != 0 {
		l.Attempt = attempt
	}
	return l, nil
}

func (a *archive) Dependencies(context.Context) (map[string][]string, error) { return nil, nil }

// inHand is a screen that a test drives: keys presses keys, done applies the result of one read.
func inHand(t *testing.T, m *model, x view.Team) (r *run, keys func(...string), done func()) {
	ctx, cancel := context.WithCancel(t.Context())
	r = &run{ui: &UI{}, m: m, ctx: ctx, teamCtx: ctx, team: x, changes: make(chan func(*model), 16), running: map[string]bool{}, again: map[string]doing{}}
	t.Cleanup(func() {
		cancel()
		r.all.Wait()
	})
	keys = func(list ...string) {
		for _, k := range list {
			r.event(term.Event{Kind: term.Key, Key: k, At: m.now})
			m.refresh()
			m.draw()
		}
	}
	return r, keys, func() {
		change := <-r.changes
		change(m)
		m.refresh()
		m.draw()
	}
}

// TestLogOfAnAttempt checks that enter on a task shows the whole log of its last attempt, that the log can be
// searched, that earlier attempts can be reached, and that Esc returns to the row.
func TestLogOfAnAttempt(t *testing.T) {
	t.Parallel()
	a := &archive{reads: make(chan int, 16)}
	m := shownOf(crowd(8), 120, 24)
	m.at = inTasks
	m.refresh()
	m.choose("task:2")
	_, keys, done := inHand(t, m, a)
	if foot := m.foot(false); !strings.Contains(foot, "enter log") {
		t.Errorf("the footer names no key for the log: %s", foot)
	}
	keys("enter")
	if got := <-a.reads; got != 0 || m.at != inLog {
		t.Fatalf("attempt %d at %s", got, m.at)
	}
	done()
	golden(t, "log.txt", text(m.draw()))
	if it, ok := m.row(); !ok || it.id != "task:2" {
		t.Errorf("the actions are about %q", it.id)
	}

	keys("/", "2", "9", "enter")
	if lines := m.draw().lines; !strings.HasPrefix(strip(strings.Join(lines[2:], "\n")), " ") || !strings.Contains(text(m.draw()), "›line 29 ") {
		t.Errorf("the line that was searched for is not shown:\n%s", text(m.draw()))
	}
	keys("esc", "g", "/", "l", "i", "n", "e", "space", "1", "enter")
	first := m.scroll
	keys("n")
	second := m.scroll
	keys("N")
	if first >= second || m.scroll != first {
		t.Errorf("n goes from line %d to %d, N back to %d", first, second, m.scroll)
	}
	keys("esc", "h")
	if got := <-a.reads; got != 1 {
		t.Errorf("the attempt before is %d", got)
	}
	done()
	if !strings.Contains(text(m.draw()), "task 2, attempt 1 of 2 by probe: failed") {
		t.Errorf("the first attempt:\n%s", text(m.draw()))
	}
	keys("h") // there is no earlier attempt
	keys("esc")
	if m.at != inTasks || m.cursor != "task:2" {
		t.Errorf("back at %s on %s", m.at, m.cursor)
	}
	if len(a.reads) != 0 {
		t.Error("a log that cannot change is read again")
	}
}

// TestLogFrames checks the log at a small size.
func TestLogFrames(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 40, 10)
	m.at, m.logged.task = inLog, "2"
	m.setLog(failedLog(), nil)
	m.refresh()
	golden(t, "log-40x10.txt", text(m.draw()))
	got := strings.Join(plainLog(failedLog(), epoch), "\n")
	if !strings.HasPrefix(got, "task 2, attempt 2 of 2 by probe: failed, 1m00s from ") || !strings.Contains(got, "\nwhy it failed: exit 1\n") || !strings.Contains(got, "\nverification: no more") {
		t.Errorf("on the plain screen:\n%s", got)
	}
}

// TestSearchOnTheScreen checks that a search finds lines of a member's screen, which is scrolled from its end.
func TestSearchOnTheScreen(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 80, 13)
	m.at, m.screenOf = inScreen, "worker-1"
	for i := range 40 {
		m.screen.Lines = append(m.screen.Lines, fmt.Sprintf("line %d.", i))
	}
	_, keys, _ := inHand(t, m, nil)
	keys("/", "5", ".", "enter")
	for _, want := range []string{"line 35.", "line 5.", "line 15.", "line 25."} {
		if got := text(m.draw()); !strings.Contains(got, "›"+want) {
			t.Errorf("no %s:\n%s", want, got)
		}
		keys("n")
	}
	keys("g")
	if got := text(m.draw()); !strings.Contains(got, "line 0.") {
		t.Errorf("the first line is not at the top:\n%s", got)
	}
	keys("G")
	if got := text(m.draw()); !strings.Contains(got, "line 39.") {
		t.Errorf("the last line is not at the end:\n%s", got)
	}
}

// gates is a team with a merge whose gate is followed.
type gates struct {
	view.Team
	prints chan []string
	ended  chan struct{}
}

func (g *gates) GateLog(ctx context.Context, id int64, each func(view.Merge, view.LogPart)) error {
	x := view.Merge{ID: id, Branch: "cart", Target: "main", State: "gating"}
	for {
		select {
		case lines, ok := <-g.prints:
			if !ok {
				x.State, x.Ended = "red", epoch
				each(x, view.LogPart{Title: "GATE", Lines: []string{"exit 1"}})
				return nil
			}
			each(x, view.LogPart{Title: "GATE", Lines: lines})
		case <-ctx.Done():
			close(g.ended)
			return nil
		}
	}
}

func (g *gates) Merges(context.Context) ([]view.Merge, error) { return nil, nil }

// TestLogOfAGate checks that enter on a merge shows what its gate has printed, from its end, that it stays
// at the end while the gate prints, and where it is when it is read back, and that Esc ends that.
func TestLogOfAGate(t *testing.T) {
	t.Parallel()
	g := &gates{prints: make(chan []string), ended: make(chan struct{})}
	m := shownOf(crowd(8), 120, 24)
	m.at, m.merges = inChanges, []view.Merge{{ID: 3, Member: "worker-1", Branch: "cart", Target: "main", State: "gating", Asked: epoch}}
	m.refresh()
	m.choose("merge:3")
	if foot := m.foot(false); !strings.Contains(foot, "enter gate log") {
		t.Errorf("the footer names no key for the log: %s", foot)
	}
	_, keys, done := inHand(t, m, g)
	keys("enter")
	var lines []string
	prints := func(n int) {
		for range n {
			lines = append(lines, fmt.Sprintf("test %d.", len(lines)+1))
		}
		g.prints <- lines
		done()
	}
	has := func(line string, want bool) {
		t.Helper()
		if got := text(m.draw()); strings.Contains(got, line) != want {
			t.Errorf("%s is shown: %v\n%s", line, !want, got)
		}
	}
	prints(40)
	has("merge 3 of cart into main: gating", true)
	has(" test 40.", true)
	prints(1)
	has(" test 41.", true)
	has(" test 1.", false)
	keys("g")
	prints(1)
	has(" test 1.", true)
	has(" test 42.", false)
	keys("esc")
	<-g.ended
	if m.at != inChanges || m.cursor != "merge:3" {
		t.Errorf("back at %s on %s", m.at, m.cursor)
	}

	g.ended = make(chan struct{})
	m.merges = []view.Merge{{ID: 3, Member: "worker-1", Branch: "cart", Target: "main", State: "gating", Asked: epoch}}
	m.refresh()
	m.choose("merge:3")
	keys("enter")
	close(g.prints)
	for !strings.Contains(text(m.draw()), "exit 1") { // the reads of the changes come, too
		done()
	}
	has("merge 3 of cart into main: red", true)
}
