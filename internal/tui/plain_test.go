package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestPlainWords checks that every action is a word of the plain screen, and that no word has two meanings.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, w := range plainWords {
		names[w.name] = true
	}
	talk := &talk{p: &Plain{}, snap: crowd(8)}
	for _, a := range view.Actions() {
		if names[a.ID] {
			t.Errorf("%s is an action and a word", a.ID)
		}
		if a.On[0] == view.OnMessage { // it is looked up
			continue
		}
		text := map[view.Thing]string{view.OnApproval: "3", view.OnMember: "worker-1", view.OnTask: "5", view.OnMerge: "2", view.OnChange: "worker-1 3.2"}[a.On[0]]
		if a.On[0] == view.OnChange && a.ID == "send-review" || a.ID == "review-task" {
			text = "worker-1"
		}
		if a.Asks != "" {
			text += " and more"
		}
		d, err := talk.deed(a, text)
		if err != nil {
			t.Errorf("%s %s: %v", a.ID, text, err)
		}
		if a.Asks != "" && d.Text == "" {
			t.Errorf("%s %s: %+v has no text", a.ID, text, d)
		}
		if a.On[0] != view.OnTeam {
			if _, err := talk.deed(a, ""); err == nil {
				t.Errorf("%s alone is taken", a.ID)
			}
		}
	}
	for short, id := range aliases {
		if _, ok := view.ActionByID(id); !ok || names[short] {
			t.Errorf("%s is %s", short, id)
		}
	}
	d, err := talk.deed(must(view.ActionByID("comment")), "worker-1 cart.go:40-44 why two?")
	if err != nil || d.Path != "cart.go" || d.Lines != "40-44" || d.Text != "why two?" {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = talk.deed(must(view.ActionByID("comment-plan")), "1 12-14 in one commit")
	if err != nil || d.Approval != 1 || d.Member != "worker-1" || d.Lines != "12-14" || d.Text != "in one commit" {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = talk.deed(must(view.ActionByID("edit-plan-comment")), "1 2 in one commit")
	if err != nil || d.Approval != 1 || d.Comment != "2" || d.Lines != "" || d.Text != "in one commit" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestPlainTasksAndMerges checks that a filter finds tasks beyond those of the snapshot, and that merges are
// listed with what their gates have printed.
func TestPlainTasksAndMerges(t *testing.T) {
	t.Parallel()
	x := newLong()
	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), team: x, snap: x.snapshot(), have: true}
	lane := []view.Merge{
		{ID: 3, Member: "ann", Branch: "cart", Target: "main", State: "conflict", Files: []string{"go.mod"}},
		{ID: 4, Member: "bob", Branch: "docs", Target: "main", State: "red", Why: "exit 1"},
	}
	for _, c := range []struct {
		of         view.Team
		line, want string
	}{
		{x, "tasks needle", "task 1801, the needle, completed\n"},
		{x, "tasks state:failed", "task 8, job 8, failed, exit 1\ntask 508, job 508, failed, exit 1\ntask 1008, job 1008, failed, exit 1\ntask 1508, job 1508, failed, exit 1\n"},
		{x, "tasks nowhere", "no task has nowhere.\n"},
		{&merging{lane: lane}, "merges", "merge 4 of docs into main: red, of bob, exit 1\nmerge 3 of cart into main: conflict, of ann, in conflict: go.mod\n"},
		{&merging{}, "merges", "there are no merges.\n"},
		{&merging{lane: lane}, "log merge 4", "merge 4 of docs into main: red.\ngate: FAIL\n"},
		{&merging{lane: lane}, "log merge x", "\"x\" is no number of a merge: merges lists them.\n"},
		{&merging{lane: lane}, "log merge 9", "error: no merge 9\n"},
	} {
		out.Reset()
		talk.team = c.of
		talk.line(c.line, time.Now())
		if got := out.String(); got != c.want {
			t.Errorf("%s:\n%swant:\n%s", c.line, got, c.want)
		}
	}
	out.Reset()
	talk.team = x
	talk.line("tasks job", time.Now())
	if got := out.String(); strings.Count(got, "\n") != plainTasks+1 || !strings.HasSuffix(got, "and more: further words find less.\n") {
		t.Errorf("many are found:\n%s", got)
	}
}

// merging is a team with a merge lane.
type merging struct {
	fuzzed
	lane []view.Merge
}

func (x *merging) Merges(context.Context) ([]view.Merge, error) { return x.lane, nil }

func (x *merging) GateLog(_ context.Context, id int64, each func(view.Merge, view.LogPart)) error {
	for _, l := range x.lane {
		if l.ID == id {
			each(l, view.LogPart{Title: "GATE", Lines: []string{"FAIL", ""}})
			return nil
		}
	}
	return team.Errorf(team.CodeNotFound, "no merge %d", id)
}

func must(a view.Action, ok bool) view.Action {
	if !ok {
		panic("no such action")
	}
	return a
}

// TestPlainNumbers checks that a number leads to the same need until the needs are listed anew, and that a
// need that goes without an event is said to be gone.
func TestPlainNumbers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	told := func() string {
		s := out.String()
		out.Reset()
		return s
	}
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), name: "demo", team: &fuzzed{}, told: map[string]view.Need{}, events: map[string]bool{}, seen: map[int64]string{}}
	needs := []view.Need{
		{Kind: view.NeedPlan, Member: "ann", Approval: 2, Text: "a plan"}, {Kind: view.NeedDialog, Member: "bob", Text: "a question"},
		{Kind: view.NeedTask, Task: "3", Text: "exit 1"},
	}
	snap := view.Snapshot{Team: "demo", Needs: needs, Members: []view.Member{{Name: "ann"}, {Name: "bob"}}, Tasks: []view.Task{{ID: "3", Subject: "lint", Status: team.TaskFailed}}}
	by := view.By("", "screen")
	has := func(want ...string) {
		t.Helper()
		got := told()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("no %q in\n%s", w, got)
			}
		}
		if len(want) == 0 && got != "" {
			t.Errorf("told:\n%s", got)
		}
	}
	talk.snapshot(snap, nil, true)
	has("needs you 1 of 3: plan 2, ann", "needs you 2 of 3: dialog", "needs you 3 of 3: task 3")

	talk.own = []view.Deed{{Action: "approve", Approval: 2}}
	approved := view.Event{At: time.Unix(5, 0), Who: by, What: team.EventApprovalApproved, ID: "2", Text: by + ", approved 2"}
	snap.Needs, snap.Events = needs[1:], []view.Event{approved}
	talk.snapshot(snap, nil, false)
	has() // it was told when it was done
	talk.choices("3")
	has("what can be done with task 3 lint:\n1: ")
	talk.show("1")
	has("need 1 is gone: ")

	snap.Needs = append([]view.Need{{Kind: view.NeedPlan, Member: "ann", Approval: 4, Text: "another"}}, needs[2])
	approved.At, approved.Text = time.Unix(6, 0), by+", approved 2 again"
	snap.Events = append(snap.Events, approved)
	talk.snapshot(snap, nil, false)
	has("needs you 4: plan 4, ann", "gone: 2, dialog of bob.", "approved 2 again")
	if on, ok := talk.thing("4"); !ok || on.Need.Approval != 4 {
		t.Errorf("4 is %+v", on.Need)
	}
	talk.look("needs", "")
	has("2 need you.", "needs you 1 of 2: plan 4, ann", "needs you 2 of 2: task 3")
	if on, ok := talk.thing("2"); !ok || on.Need.Task != "3" {
		t.Errorf("2 is %+v", on.Need)
	}
	for d, e := range map[view.Deed]view.Event{
		{Action: "retry", Task: "3"}:                       {What: team.EventTaskRetried, ID: "3"},
		{Action: "assign", Task: "3", Text: "ann"}:         {What: team.EventTaskAssigned, ID: "3"},
		{Action: "send-review", Member: "ann"}:             {What: team.EventReviewSent, ID: "ann"},
		{Action: "add-task", Text: "write it\nwith tests"}: {What: team.EventTaskCreated, ID: "7", Text: by + ", added 7 write it"},
	} {
		e.Who = by
		if !did(d, e) {
			t.Errorf("%+v is told twice: %+v", d, e)
		}
		e.Who = "ann"
		if did(d, e) {
			t.Errorf("%+v of another is not told", e)
		}
	}
}

// TestPlainClockSetBack checks that an event is told once, also if the clock was set back since the one before it, and
// that one which appears among older events is not.
func TestPlainClockSetBack(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), name: "demo", team: &fuzzed{}, told: map[string]view.Need{}, events: map[string]bool{}, seen: map[int64]string{}}
	event := func(minute int, text string) view.Event {
		return view.Event{At: epoch.Add(time.Duration(minute) * time.Minute), What: team.EventTaskCreated, ID: text, Text: text}
	}
	snap := view.Snapshot{Team: "demo", Events: []view.Event{event(60, "one"), event(61, "two")}}
	for _, c := range []struct {
		events []view.Event
		want   string
	}{
		{[]view.Event{event(60, "one"), event(61, "two")}, ""},
		{[]view.Event{event(60, "one"), event(61, "two"), event(2, "three")}, "three"},
		{[]view.Event{event(60, "one"), event(61, "late"), event(61, "two"), event(2, "three")}, ""},
		{[]view.Event{event(61, "two"), event(2, "three"), event(3, "four"), event(4, "five")}, "four five"},
		{[]view.Event{event(5, "six"), event(6, "seven"), event(5, "six")}, "six seven"},
	} {
		talk.snapshot(snap, nil, false)
		out.Reset()
		snap.Events = c.events
		talk.snapshot(snap, nil, false)
		var got []string
		for line := range strings.Lines(out.String()) {
			_, what, _ := strings.Cut(strings.TrimSuffix(line, ".\n"), ": ")
			got = append(got, what)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("told %q, want %q", got, c.want)
		}
	}
}

// TestPlainUnread checks that while a team cannot be read the words that answer from the last facts say so and
// of when these are, and that it is told once when the team can be read again.
func TestPlainUnread(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), name: "demo", team: &fuzzed{}, told: map[string]view.Need{}, events: map[string]bool{}, seen: map[int64]string{}}
	talk.snapshot(crowd(8), nil, false)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	talk.unread(team.Errorf(team.CodeNotFound, "it was removed"), at)
	talk.unread(team.Errorf(team.CodeNotFound, "it does not exist"), at.Add(time.Hour))
	const of = "the team cannot be read, facts are of 05:06.\n"
	says := func(word string, want ...string) {
		t.Helper()
		out.Reset()
		talk.line(word, time.Now())
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", word, w, out.String())
			}
		}
	}
	says("needs", of, "4 need you.\n")
	says("members", of, "member worker-2, not known, as of 05:06 working")
	says("tasks", of)
	says("show worker-2", of, "member worker-2, not known, as of 05:06 working")
	says("menu 1", of)
	out.Reset()
	talk.snapshot(crowd(8), nil, false)
	talk.snapshot(crowd(8), nil, false)
	if got := out.String(); strings.Count(got, "the team can be read again.\n") != 1 {
		t.Errorf("told:\n%s", got)
	}
	says("members", "member worker-2, working")
	if strings.Contains(out.String(), "cannot be read") {
		t.Errorf("told:\n%s", out.String())
	}
}

// TestPlainAcross checks that the changes of a member name the others that change a file, and that the file is
// written as each of them has it, with the lines that more than one touches.
func TestPlainAcross(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), team: &overlapping{}, have: true}
	const two = "member worker-2, against main, 2 lines more, 2 fewer, same lines as worker-1, other base than worker-4\n" +
		"line 40 removed, touched by others: func (c *Cart) Total() Money {\nline 41 removed, touched by others:     return c.sum\n"
	for _, c := range []struct {
		line string
		want []string
		not  string
	}{
		{"changes worker-1", []string{"file cart.go, changed, ", ", also changed by worker-4 worker-2 worker-3\n"}, "touched"},
		{"across worker-1 cart.go", []string{"file cart.go of 4 members\n", two, "\nmember worker-3, against main, 1 line more, 0 fewer, other base than worker-4\nline 4 new: import"}, ""},
		{"across worker-1 price.go", []string{"no other member changes price.go.\n"}, "file"},
		{"across worker-1", []string{"which member and file: across MEMBER FILE.\n"}, "file "},
	} {
		out.Reset()
		talk.line(c.line, time.Now())
		got := out.String()
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", c.line, w, got)
			}
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s:\n%s", c.line, got)
		}
	}
}
