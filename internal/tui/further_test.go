package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// long is a team with 2000 tasks, of which a page looks at 150.
type long struct {
	fuzzed
	gate  chan struct{} // a page waits for it, if it is set
	mu    sync.Mutex
	tasks []view.Task
	pages int
	event int64
	news  []string // ids of what has changed
}

const longTasks = 2000

func newLong() *long {
	x := &long{event: 1}
	for i := range longTasks {
		t := view.Task{ID: strconv.Itoa(i + 1), Subject: fmt.Sprintf("job %d", i+1), Status: team.TaskPending}
		switch {
		case i%500 == 7:
			t.Status, t.Ended, t.Note = team.TaskFailed, ago(time.Duration(i)*time.Second), "exit 1"
		case i > 1500:
			t.Status, t.Ended = team.TaskCompleted, ago(time.Duration(longTasks-i)*time.Minute)
		}
		x.tasks = append(x.tasks, t)
	}
	x.tasks[1800].Subject = "the needle"
	return x
}

// snapshot has the first tasks of the board.
func (x *long) snapshot() view.Snapshot {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := crowd(8)
	s.Tasks = slices.Clone(x.tasks[:40])
	c := view.Snapshot{Tasks: x.tasks}.Count()
	s.Whole = &c
	return s
}

func (x *long) TaskPage(ctx context.Context, q view.TaskQuery) (p view.TaskPage, err error) {
	if x.gate != nil {
		select {
		case <-x.gate:
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pages++
	p.Event = x.event
	_, _, after := view.Place(q.After)
	for _, t := range x.tasks {
		n, _ := strconv.ParseInt(t.ID, 10, 64)
		if n <= after || t.Part() != q.Part {
			continue
		}
		if p.Looked == 150 || len(p.Tasks) == q.Most {
			return p, nil
		}
		p.Looked, p.Next = p.Looked+1, view.PlaceIn(q.Part, 0, n)
		if view.Matches(t.Words(""), q.Filter) {
			p.Tasks = append(p.Tasks, t)
		}
	}
	p.Next = ""
	return p, nil
}

func (x *long) TaskNews(_ context.Context, ids []string, since int64) (n view.TaskNews, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n.Event = x.event
	if since < x.event {
		ids = append(slices.Clone(ids), x.news...)
	}
	for _, t := range x.tasks {
		if slices.Contains(ids, t.ID) {
			n.Tasks = append(n.Tasks, t)
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == t.ID })
		}
	}
	n.Gone = ids
	return n, nil
}

// change changes a task and tells the screen.
func (x *long) change(s *onPaper, id string, f func(*view.Task)) {
	x.mu.Lock()
	i := slices.IndexFunc(x.tasks, func(t view.Task) bool { return t.ID == id })
	if f == nil {
		x.tasks = slices.Delete(x.tasks, i, i+1)
	} else {
		f(&x.tasks[i])
	}
	x.event, x.news = x.event+1, []string{id}
	x.mu.Unlock()
	s.apply(func(*model) { s.snapshot(x.snapshot()) })
}

func (x *long) read() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pages
}

// until takes in changes until something is so.
func (s *onPaper) until(so func() bool) {
	s.Helper()
	for s.look(settle); !so(); s.look(settle) {
		select {
		case change := <-s.changes:
			s.apply(change)
		case <-time.After(5 * time.Minute):
			s.Fatalf("not yet:\n%s", s.look(0))
		}
	}
}

func newOnLong(t *testing.T) (*onPaper, *long) {
	x := newLong()
	s := newOnPaper(t, x, x)
	s.m.cols, s.m.rows = 120, 30
	s.goTo(inTasks)
	s.apply(func(*model) { s.snapshot(x.snapshot()) })
	s.shows("TASKS 2000, the 40 that matter now")
	s.look(settle)
	return s, x
}

// TestFilterOfAllTasks checks that a filter finds tasks beyond those of the snapshot, blocks no key
// meanwhile, and says that there is none only when it has looked through all of them.
func TestFilterOfAllTasks(t *testing.T) {
	t.Parallel()
	s, x := newOnLong(t)
	x.gate = make(chan struct{})
	for _, k := range strings.Split("/needle", "") {
		s.event(term.Event{Kind: term.Key, Key: k, At: s.now})
		s.look(time.Second)
	}
	s.shows("none in 40 of 2000 tasks so far")
	x.gate <- struct{}{} // it was asked for "n"
	s.until(func() bool { return s.m.further.filter == "needle" })
	s.shows("none in 40 of 2000 tasks so far")
	x.gate <- struct{}{}
	s.until(func() bool { return s.m.further.looked > 0 })
	s.shows("tasks so far")
	close(x.gate)
	s.shows("the needle")
	s.shows("TASKS 2000, 1 of 2000 shown")
	if text := s.look(0); strings.Contains(text, " in ") && strings.Contains(text, "of 2000 tasks") {
		t.Errorf("all were looked through:\n%s", text)
	}
	s.types("enter")
	if s.m.cursor != "task:1801" {
		t.Errorf("selected %q", s.m.cursor)
	}

	s.m.filter = "no such task"
	s.look(settle)
	s.shows("TASKS 2000, 0 of 2000 shown")
	read := x.read()
	x.change(s, "1700", func(t *view.Task) { t.Subject = "no such task before" })
	s.shows("no such task before")
	x.change(s, "1700", nil)
	s.look(settle)
	s.shows("TASKS 1999, 0 of 1999 shown")
	if n := x.read(); n != read {
		t.Errorf("%d pages were read again", n-read)
	}
	s.m.filter = "state:failed"
	s.look(settle)
	s.shows("TASKS 1999, 4 of 1999 shown")
}

// TestSelectTask checks that the screen can begin with any task, and that others are told to be missing.
func TestSelectTask(t *testing.T) {
	t.Parallel()
	for want, said := range map[string]string{"task:1801": "the needle", "task:7": "job 7", "task:9999": "task:9999 is not here"} {
		for _, at := range []place{inTeam, inTasks} {
			x := newLong()
			s := newOnPaper(t, x, x)
			s.m.cols, s.m.rows = 120, 30
			s.ui.Select = want
			s.goTo(at)
			s.apply(func(*model) { s.snapshot(x.snapshot()) })
			s.look(settle)
			s.selectFirst()
			s.shows(said)
			s.look(settle)
			if found := s.m.cursor == want; found == (want == "task:9999") {
				t.Errorf("%s in %s: selected %s", want, at, s.m.cursor)
			}
		}
	}
}

// TestScrollsOn checks that the list of tasks goes on past those of the snapshot as far as somebody
// goes, and that nothing is read at rest.
func TestScrollsOn(t *testing.T) {
	t.Parallel()
	s, x := newOnLong(t)
	if n := x.read(); n != 0 {
		t.Errorf("%d pages were read of a list at whose end nobody is", n)
	}
	seen := map[string]bool{}
	for range 100 {
		for _, it := range s.m.sections[0].items {
			seen[it.id] = true
		}
		if len(seen) == longTasks {
			break
		}
		read := x.read()
		s.presses("G")
		if len(s.m.tasks()) == longTasks {
			continue
		}
		want := len(s.m.sections[0].items)
		s.until(func() bool { return len(s.m.sections[0].items) > want && !s.running["tasks"] })
		if x.read() == read {
			t.Fatal("nothing was read")
		}
	}
	if len(seen) != longTasks {
		t.Errorf("%d of %d tasks were in the list", len(seen), longTasks)
	}
	s.shows("TASKS 2000, 2000 read")
	if last := s.m.sections[0].items[longTasks-1]; last.on.Task.Status != team.TaskCompleted || !strings.Contains(s.look(0), "exit 1") && s.m.cursor == "" {
		t.Errorf("last %+v", last.on.Task)
	}
	x.change(s, "1200", func(t *view.Task) { t.Subject = "what it is by now" })
	s.until(func() bool { return s.m.taskOf("1200").Subject == "what it is by now" })

	board, y := newOnLong(t)
	board.m.cols, board.m.tasksAs = 160, "board"
	board.look(settle)
	column := func() int {
		i := slices.IndexFunc(board.m.sections, func(s group) bool { return s.id == "COMPLETED" })
		if i < 0 {
			return 0
		}
		return len(board.m.sections[i].items)
	}
	if column() > 0 {
		t.Fatal("the snapshot has completed tasks")
	}
	y.mu.Lock()
	y.tasks[3].Status, y.tasks[3].Ended = team.TaskCompleted, ago(time.Second)
	y.mu.Unlock()
	board.apply(func(*model) { board.snapshot(y.snapshot()) })
	board.m.cursor = "task:4"
	board.look(settle)
	board.presses("j")
	board.until(func() bool { return column() > 1 })
	if n := y.read(); n != 1 {
		t.Errorf("%d pages were read for a column", n)
	}
}
