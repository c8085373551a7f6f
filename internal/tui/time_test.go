package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// pastOf is a history of the members of a crowd, with control sequences in its texts.
func pastOf(s view.Snapshot) past {
	p := past{have: true, whole: view.Timeline{Team: "demo", Run: 3, From: ago(24 * time.Minute), To: epoch}}
	for i, x := range s.Members {
		if x.Lead {
			continue
		}
		at := func(minute int) time.Time { return ago(time.Duration(24-minute) * time.Minute) }
		l := view.Lane{Member: x.Name, Spans: []view.Span{{State: view.LaneDown, From: at(0), To: at(1)}, {State: view.LaneWorking, From: at(1), To: at(10 + i%5)}}}
		switch i % 3 {
		case 0:
			l.Spans = append(l.Spans, view.Span{State: view.LaneWaiting, From: at(10 + i%5), To: at(24), Why: "permission \x1b[2J数据"})
		case 1:
			l.Spans = append(l.Spans, view.Span{State: view.LaneIdle, From: at(10 + i%5), To: at(24)})
			l.Tasks = append(l.Tasks, view.Stint{Task: "5", Attempt: 1, From: at(2), To: at(9), End: "failed"})
		case 2:
			l.Spans = append(l.Spans, view.Span{State: view.LaneLimited, From: at(10 + i%5), To: at(20)})
		}
		p.whole.Lanes = append(p.whole.Lanes, l)
	}
	for i := range 60 {
		p.log = append(p.log, view.Event{At: ago(time.Duration(60-i) * 20 * time.Second), Who: "worker-1", What: "task.completed", ID: "2", Text: fmt.Sprintf("worker-1 finished %d \x1b]0;x\x07", i)})
	}
	return p
}

func TestTimeFrames(t *testing.T) {
	t.Parallel()
	for _, members := range []int{0, 8, 50} {
		for _, size := range [][2]int{{200, 50}, {120, 36}, {80, 24}, {40, 10}, {20, 5}} {
			s := crowd(members)
			m := shownOf(s, size[0], size[1])
			m.at, m.past = inTime, pastOf(s)
			m.refresh()
			if members == 8 || size[0] == 120 {
				golden(t, fmt.Sprintf("time-%d-%dx%d.txt", members, size[0], size[1]), text(m.draw()))
			}
		}
	}
}

// TestTimeMoves checks that the view follows the present until the person moves it, and that no move or zoom
// leaves the history.
func TestTimeMoves(t *testing.T) {
	t.Parallel()
	s := crowd(8)
	m := shownOf(s, 120, 36)
	m.at, m.past = inTime, pastOf(s)
	m.refresh()
	_, keys, _ := inHand(t, m, &archive{})
	shows := func(from, to time.Duration) {
		t.Helper()
		if w := m.window(); !w.From.Equal(epoch.Add(from)) || !w.To.Equal(epoch.Add(to)) {
			t.Errorf("%v to %v are shown, want %v to %v", w.From.Sub(epoch), w.To.Sub(epoch), from, to)
		}
	}
	const minute = time.Minute
	shows(-24*minute, 0)
	keys("+")
	shows(-12*minute, 0)
	m.now = m.now.Add(2 * minute) // it follows
	shows(-10*minute, 2*minute)
	if l := m.window().Lanes[0]; !l.Spans[len(l.Spans)-1].To.Equal(m.now) {
		t.Error("what lasts does not last until now")
	}
	keys("h")
	shows(-13*minute, -1*minute)
	m.now = m.now.Add(minute)
	shows(-13*minute, -1*minute)
	keys("+")
	shows(-10*minute, -4*minute)
	keys("-")
	shows(-13*minute, -1*minute)
	keys("h", "h", "h", "h", "h", "h")
	shows(-24*minute, -12*minute)
	keys("l", "l", "l", "l", "l", "l", "l")
	if !m.past.until.IsZero() {
		t.Error("at the end it does not follow")
	}
	shows(-9*minute, 3*minute)
	keys("f")
	m.now = m.now.Add(minute)
	shows(-9*minute, 3*minute)
	keys("f")
	shows(-8*minute, 4*minute)
	keys("-", "-", "-")
	shows(-24*minute, 4*minute)
	for range 20 {
		keys("+")
	}
	shows(4*minute-shortest, 4*minute)
	if d := m.timeDue(); d < time.Second {
		t.Errorf("it is drawn again after %v", d)
	}
	m.problem, m.problemAt = "the ledger is locked", epoch
	shows(-shortest, 0)
}

func (a *archive) Timeline(context.Context) (view.Timeline, error) {
	return pastOf(crowd(1)).whole, nil
}

func (a *archive) Log(_ context.Context, kind string, all bool) ([]view.Event, error) {
	return []view.Event{{At: epoch, What: "task.completed", ID: "2", Text: fmt.Sprintf("asked for %q, %t", kind, all)}}, nil
}

// TestLogOfKinds checks that v changes the kind of log, that p adds events without a sentence, and that a row
// belongs to its task.
func TestLogOfKinds(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	_, keys, done := inHand(t, m, &archive{reads: make(chan int, 1)})
	keys("7")
	done()
	if got := text(m.draw()); !strings.Contains(got, `asked for "", false`) {
		t.Errorf("at first:\n%s", got)
	}
	keys("v")
	done()
	if got := text(m.draw()); !strings.Contains(got, `asked for "tasks", false`) || !strings.Contains(got, "LOG of tasks") {
		t.Errorf("after v:\n%s", got)
	}
	keys("p")
	done()
	keys("tab")
	if got := text(m.draw()); !strings.Contains(got, `asked for "tasks", true`) || !strings.Contains(got, "protocol too") || !strings.Contains(got, "L log") {
		t.Errorf("after p:\n%s", got)
	}
	if it, ok := m.row(); !ok || it.on.Task == nil || it.on.Task.ID != "2" {
		t.Errorf("the row of the log is about %+v", it.on)
	}
}
