package tui

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// buffer may be used by the view's goroutine and the test at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func at(s view.Snapshot, id string, change func(*view.Task)) view.Snapshot {
	s.Tasks = append([]view.Task(nil), s.Tasks...)
	for i := range s.Tasks {
		if s.Tasks[i].ID == id {
			change(&s.Tasks[i])
		}
	}
	return s
}

// story is one run in snapshots: claims, a release, a failure, the end.
func story() []view.Snapshot {
	s := view.Snapshot{Tasks: []view.Task{
		{ID: "1", Subject: "format", Status: team.TaskPending},
		{ID: "2", Subject: "vet", Status: team.TaskPending},
		{ID: "3", Subject: "report", Status: team.TaskPending, Waits: []string{"1", "2"}},
	}}
	steps := []view.Snapshot{s}
	step := func(id string, change func(*view.Task)) {
		s = at(s, id, change)
		steps = append(steps, s)
	}
	claim := func(who string, attempt int, began time.Duration) func(*view.Task) {
		return func(t *view.Task) {
			t.Status, t.Owner, t.Attempt, t.Began = team.TaskInProgress, who, attempt, ago(began)
		}
	}
	step("1", claim("builder", 1, 10*time.Second))
	step("2", claim("probe", 1, 9*time.Second))
	step("2", func(t *view.Task) { t.Status, t.Owner, t.Began = team.TaskPending, "", time.Time{} })
	step("1", func(t *view.Task) { t.Status, t.Ended = team.TaskCompleted, ago(8800*time.Millisecond) })
	step("2", claim("builder", 2, 8*time.Second))
	step("2", func(t *view.Task) {
		t.Status, t.Ended, t.Note = team.TaskFailed, ago(time.Second), "exit 1: boom\nsecond"
	})
	step("3", func(t *view.Task) { t.Stuck = true })
	return append(steps, s)
}

func TestProgressPlain(t *testing.T) {
	t.Parallel()
	var out buffer
	p := NewProgress(&out, Options{Now: func() time.Time { return epoch }})
	for _, s := range story() {
		p.Update(s)
	}
	p.Close()
	golden(t, "progress-plain.txt", out.String())
}

// In a bubble no second passes, after which a view on a terminal draws again.
func TestProgressTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := NewProgress(&out, Options{Terminal: true, Size: func() (int, int) { return 60, 10 }, Now: func() time.Time { return epoch }})
		for _, s := range story() {
			p.Update(s)
		}
		p.Close()
		golden(t, "progress-terminal.txt", strings.ReplaceAll(out.String(), "\x1b", "ESC"))
	})
}

// A view that after the first snapshot gets only the tasks in progress and those that have changed draws the
// same.
func TestProgressOfParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, opt := range map[string]Options{
			"progress-plain.txt":    {},
			"progress-terminal.txt": {Terminal: true, Size: func() (int, int) { return 60, 10 }},
		} {
			var out buffer
			opt.Now = func() time.Time { return epoch }
			p := NewProgress(&out, opt)
			before := map[string]view.Task{}
			for i, s := range story() {
				whole := s.Count()
				part := view.Snapshot{Tasks: []view.Task{}, Whole: &whole}
				for _, task := range s.Tasks {
					if task.Active() || !cmp.Equal(before[task.ID], task) {
						part.Tasks = append(part.Tasks, task)
					}
					before[task.ID] = task
				}
				if i > 0 && len(part.Tasks) == len(s.Tasks) {
					t.Errorf("snapshot %d is whole", i)
				}
				p.Update(part)
			}
			p.Close()
			golden(t, name, strings.ReplaceAll(out.String(), "\x1b", "ESC"))
		}
	})
}

// A view on a terminal draws once a second while a task is in progress, and not at all otherwise.
func TestProgressTicksOnlyWhileSomethingRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out buffer
		p := NewProgress(&out, Options{Terminal: true})
		steps := story()
		p.Update(steps[1]) // one in work
		synctest.Wait()
		before := out.String()
		<-time.After(3500 * time.Millisecond)
		synctest.Wait()
		if got := strings.Count(out.String()[len(before):], "\x1b[J"); got != 3 {
			t.Errorf("%d drawings in 3.5 s with a task in work, want 3", got)
		}
		p.Update(steps[len(steps)-1]) // none in work
		synctest.Wait()
		before = out.String()
		<-time.After(time.Hour)
		synctest.Wait()
		if rest := out.String()[len(before):]; rest != "" {
			t.Errorf("drawings at rest: %q", rest)
		}
		p.Close()
	})
}
