package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The pages of the parts have each task that nobody works on once, in the order of a board, however
// many are looked at for a page, and from any task on.
func TestTaskPages(t *testing.T) {
	t.Parallel()
	ctx := ctxFor(t)
	l := newTeam(t, "a")
	c := &clock{at: l.now()}
	step := time.Duration(0) // some tasks end at the same time
	l.now = func() time.Time { c.advance(step); return c.at }
	batch := make([]NewTask, 30)
	for i := range batch {
		batch[i].Subject = fmt.Sprintf("task %d", i+1)
	}
	must[[]Task](t)(l.CreateTasks(ctx, batch, "lead"))
	must[[]Task](t)(l.CreateTasks(ctx, []NewTask{
		{Ref: "x", Subject: "behind", DependsOn: []string{"5"}},            // 31
		{Subject: "behind that", DependsOn: []string{"x"}},                 // 32
		{Subject: "waits", DependsOn: []string{"29"}},                      // 33
		{Subject: "behind, too", DependsOn: []string{"6"}},                 // 34
		{Subject: "waits for both", DependsOn: []string{"29", "30"}},       // 35
		{Subject: "waits for a stuck one", DependsOn: []string{"x", "29"}}, // 36
	}, "lead"))
	end(t, l, false, 1, 2)
	step = time.Millisecond
	end(t, l, false, 4, 3)
	end(t, l, true, 6, 5, 7)
	must[*Task](t)(l.Claim(ctx, ClaimIn{Owner: "s-a", ID: "30"}))
	// Of a board from elsewhere.
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET completedAt = 5 WHERE id IN ('8', '9')"))
	ok(t, sqlExec(t, l.DB(), "UPDATE tasks SET completedAt = NULL WHERE id IN ('2', '6')"))

	want := map[BoardPart]string{
		PartFailed:    "7 5 6",
		PartPending:   "10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 33 35 8 9",
		PartStuck:     "31 32 34 36",
		PartCompleted: "3 4 1 2",
	}
	for _, part := range BoardParts() {
		for _, most := range []int{1, 2, 3, 100} {
			for _, scan := range []int{1, 2, 100} {
				var got []string
				looked := 0
				in := PageIn{Part: part, Most: most, Scan: scan}
				for {
					p := must[TaskPage](t)(l.Page(ctx, in))
					if len(p.Tasks) > most || p.Looked > scan {
						t.Fatalf("%s: %d tasks of %d, of at most %d of %d", part, len(p.Tasks), p.Looked, most, scan)
					}
					looked += p.Looked
					for _, x := range p.Tasks {
						got = append(got, x.ID)
					}
					if in.After = p.Next; p.Last {
						break
					}
				}
				if diff := cmp.Diff(want[part], strings.Join(got, " ")); diff != "" || looked != len(got) {
					t.Errorf("%s by %d of %d, %d looked at (-want +got):\n%s", part, most, scan, looked, diff)
				}
			}
		}
		p := must[TaskPage](t)(l.Page(ctx, PageIn{Part: part, Most: 1, Scan: 100, Keep: func(x TaskLine) bool {
			return strings.Fields(want[part])[2] == x.ID && x.Stuck == (part == PartStuck)
		}}))
		if len(p.Tasks) != 1 || p.Looked != 3 || p.Last {
			t.Errorf("one of %s: %+v", part, p)
		}
	}
	if _, err := l.Page(ctx, PageIn{Part: "others", Most: 1, Scan: 1}); err == nil {
		t.Error("there is such a part")
	}
	for _, part := range BoardParts() {
		for i, q := range part.pages() {
			p := plan(t, l, strings.NewReplacer("?1", "7", "?2", "8", "?3", "9").Replace(q))
			if strings.Contains(p, "SCAN t") || strings.Contains(p, "TEMP B-TREE FOR ORDER BY") && part != PartStuck {
				t.Errorf("%s %d:\n%s", part, i, p)
			}
		}
	}
}
