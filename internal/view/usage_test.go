package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUsageBy checks that the usage of tasks and days is that between two ends, that what no task is known
// for is the rest, and that an unknown cost is not zero.
func TestUsageBy(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	point := func(at time.Time, member, task string, tokens int64, cost float64, known bool) UsagePoint {
		return UsagePoint{At: at, Member: member, Task: task, Spent: Spent{Known: true, Tokens: tokens, Cost: cost, CostKnown: known}}
	}
	points := []UsagePoint{
		point(at(1, 8), "ann", "", 10, 1, true),
		point(at(1, 9), "ann", "5", 30, 2, true),
		point(at(1, 10), "bob", "5", 7, 0, false),
		point(at(2, 8), "ann", "6", 100, 6, true),
		point(at(2, 9), "ann", "", 150, 7, true),
	}
	tasks, days := UsageBy(points, func(at time.Time) string { return at.Format("2006-01-02") })
	if diff := cmp.Diff([]Spent{
		{Name: "6", Known: true, Tokens: 70, Cost: 4, CostKnown: true},
		{Name: "5", Known: true, Tokens: 27, Cost: 1},
	}, tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Spent{
		{Name: "2026-03-02", Known: true, Tokens: 120, Cost: 5, CostKnown: true},
		{Name: "2026-03-01", Known: true, Tokens: 37, Cost: 2},
	}, days); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	all := Spent{Known: true, Tokens: 170, Cost: 7.5, CostKnown: true}
	if diff := cmp.Diff(Spent{Known: true, Tokens: 73, Cost: 2.5}, all.Beyond(tasks)); diff != "" {
		t.Errorf("rest (-want +got):\n%s", diff)
	}
	if got := (Spent{Known: true, Tokens: 50}).Beyond(tasks); got.Known || got.Words() != "-" || got.Money() != "-" {
		t.Errorf("the parts are more than all: %+v", got)
	}
}

// TestUsageOfRenamed checks that a member that was renamed counts once: with points that name its session,
// and from the first one on that does.
func TestUsageOfRenamed(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	point := func(hour int, member, session string, tokens int64) UsagePoint {
		return UsagePoint{At: from.Add(time.Duration(hour) * time.Hour), Member: member, Session: session, Spent: Spent{Known: true, Tokens: tokens}}
	}
	points := []UsagePoint{point(0, "ann", "", 100), point(1, "ann", "s1", 150), point(2, "eve", "s1", 170), point(3, "ann", "s2", 120)}
	_, days := UsageBy(points, func(time.Time) string { return "day" })
	if diff := cmp.Diff([]Spent{{Name: "day", Known: true, Tokens: 290}}, days); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	members, _ := UsageIn(points, from, from.Add(4*time.Hour))
	if got := members["s1"].And(members["ann"]).Tokens; got != 170 {
		t.Errorf("the renamed member: %d tokens", got)
	}
	if got := members["s2"].Tokens; got != 120 {
		t.Errorf("its successor: %d tokens", got)
	}
}
