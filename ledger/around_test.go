package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// Of a long board the tasks near one are read, and the edges that lead to others are counted.
func TestAround(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	batch := make([]NewTask, 400)
	for i := range batch {
		batch[i].Subject = fmt.Sprintf("task %d", i+1)
	}
	batch[0].Ref = "first"
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	behind := func(ref string, on ...string) NewTask { return NewTask{Ref: ref, Subject: ref, DependsOn: on} }
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{behind("b", "1", "2"), behind("c", "b"), behind("d", "c"), behind("e", "1")}, "lead")) // 401 to 404
	many := make([]NewTask, 100)
	for i := range many {
		many[i] = behind(fmt.Sprint("m", i), "300", "299")
	}
	must[[]Task](t)(l.CreateTasks(ctx, many, "lead"))
	for _, tt := range []struct {
		id            string
		depth, atMost int
		want          string
	}{
		{"1", 2, 40, "1 +0+0, 401 +1+0, 402 +0+1, 404 +0+0"},
		{"402", 1, 40, "401 +2+0, 402 +0+0, 403 +0+0"},
		{"402", 2, 2, "401 +2+0, 402 +0+1"},
		{"7", 2, 40, "7 +0+0"},
		{"300", 2, 3, "300 +0+98, 405 +1+0, 406 +1+0"},
	} {
		a := must[Around](t)(l.Around(ctx, tt.id, tt.depth, tt.atMost))
		var got []string
		for _, x := range a.Tasks {
			got = append(got, fmt.Sprintf("%s +%d+%d", x.ID, a.Before[x.ID], a.After[x.ID]))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("around %s: %s, want %s", tt.id, strings.Join(got, ", "), tt.want)
		}
	}
	if _, err := l.Around(ctx, "9999", 2, 40); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("of a task that is not there: %v", err)
	}
	for _, q := range []string{sqlBefore, sqlAfter, sqlFolded} {
		if p := plan(t, l, strings.NewReplacer("?1", "'[]'", "?2", "1").Replace(q)); strings.Contains(p, "SCAN d") {
			t.Errorf("all dependencies are read:\n%s", p)
		}
	}
}
