package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

func TestUsageIn(t *testing.T) {
	t.Parallel()
	at := timelineAt
	spent := func(tokens int64, cost float64) Spent {
		return Spent{Known: true, Tokens: tokens, Cost: cost, CostKnown: true}
	}
	members, tasks := UsageIn([]UsagePoint{
		{At: at(-5), Member: "a", Spent: spent(100, 1)},
		{At: at(1), Member: "a", Task: "1", Spent: spent(150, 1.5)},
		{At: at(2), Member: "b", Spent: spent(7, 0)},
		{At: at(3), Member: "a", Spent: spent(170, 2)},
		{At: at(4), Member: "a", Task: "1", Spent: spent(20, 0.25)}, // begun anew
		{At: at(99), Member: "a", Task: "2", Spent: spent(1000, 10)},
	}, at(0), at(10))
	if diff := cmp.Diff(map[string]Spent{"a": {Name: "a", Known: true, Tokens: 90, Cost: 1.25, CostKnown: true}, "b": {Name: "b", Known: true, Tokens: 7, CostKnown: true}}, members); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]Spent{"1": {Name: "1", Known: true, Tokens: 70, Cost: 0.75, CostKnown: true}}, tasks); diff != "" {
		t.Error(diff)
	}
	for want, s := range map[string]Spent{"-": {}, "$0.00": {CostKnown: true}, ">$1.50": {Cost: 1.5}, "$2.00": {Cost: 2, CostKnown: true}} {
		if got := s.Money(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
	for want, s := range map[string]Spent{"-": {}, "0": {Known: true}, "1.2k": {Known: true, Tokens: 1200}, "3.4M": {Known: true, Tokens: 3_400_000}} {
		if got := s.Amount(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestDurationsAndDepths(t *testing.T) {
	t.Parallel()
	at := timelineAt
	tasks := []Task{
		{Status: team.TaskCompleted, Began: at(0), Ended: at(1)}, {Status: team.TaskCompleted, Began: at(0), Ended: at(3)},
		{Status: team.TaskFailed, Began: at(0), Ended: at(9)}, {Status: team.TaskCompleted, Began: at(0), Ended: at(100)}, {Status: team.TaskPending},
	}
	want := Durations{Ended: 3, Median: 3 * time.Minute, P90: 9 * time.Minute, Longest: 9 * time.Minute, PerHour: 2}
	if diff := cmp.Diff(want, DurationsOf(tasks, at(0), at(60))); diff != "" {
		t.Error(diff)
	}
	fact := func(minute float64, what, id string) Fact { return Fact{At: at(minute), What: what, ID: id} }
	list := DepthsOf([]Fact{
		fact(-1, team.EventTaskCreated, "1"), fact(0.5, team.EventTaskCreated, "2"), fact(10.5, team.EventTaskCompleted, "1"), fact(20.5, team.EventTaskFailed, "2"),
		fact(30.5, team.EventTaskRetried, "2"), fact(40.5, team.EventTaskDeleted, "1"),
	}, at(0), at(60))
	got := map[int][2]int{}
	for i, d := range list {
		got[i] = [2]int{d.Open, d.Done}
	}
	for i, want := range map[int][2]int{0: {1, 0}, 1: {2, 0}, 11: {1, 1}, 21: {0, 2}, 31: {1, 1}, 41: {1, 0}, 60: {1, 0}} {
		if got[i] != want {
			t.Errorf("minute %d: %v, want %v", i, got[i], want)
		}
	}
}
