package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// crowd is a team of n members, with needs, tasks, and texts with control sequences.
func crowd(n int) view.Snapshot {
	s := sample()
	s.Members = []view.Member{{Name: "team-lead", Lead: true, State: team.Running}}
	s.Needs, s.Tasks = []view.Need{}, []view.Task{}
	if n == 0 {
		return s
	}
	for i := range n {
		m := view.Member{Name: fmt.Sprintf("worker-%d", i+1), Color: "blue", Agent: "claude", State: team.Running, Activity: team.Idle, ActiveSince: ago(time.Hour)}
		switch i % 7 {
		case 0:
			m.Activity, m.WaitsFor = team.Waiting, fmt.Sprintf("permission %d", i+1)
			s.Needs = append(s.Needs, view.Need{Kind: view.NeedPermission, Member: m.Name, Approval: int64(i + 1), Text: "Bash: npm publish --tag next\x1b[2J", Since: ago(5 * time.Minute), Command: "teamctl show approval 1"})
		case 1, 2:
			m.Activity, m.Cost, m.CostKnown = team.Working, 1.9, true
			s.Tasks = append(s.Tasks, view.Task{ID: fmt.Sprint(i + 100), Subject: "release notes 数据 \x1b]0;x\x07", Status: team.TaskInProgress, Owner: m.Name, Attempt: 1, Began: ago(3 * time.Minute)})
		case 3:
			m.State, m.Note = team.Failed, "exit 127, 8 x"
			s.Needs = append(s.Needs, view.Need{Kind: view.NeedMember, Member: m.Name, Text: m.Note, Since: ago(4 * time.Minute), Command: "teamctl show member x"})
		}
		s.Members = append(s.Members, m)
	}
	s.Tasks = append(s.Tasks, sample().Tasks...)
	s.Needs = append(s.Needs, view.Need{Kind: view.NeedTask, Task: "2", Member: "probe", Text: "vet: exit 1", Since: ago(20 * time.Second)})
	return s
}

// shownOf is a model that shows a snapshot.
func shownOf(s view.Snapshot, cols, rows int) *model {
	m := newModel()
	m.cols, m.rows, m.now, m.name, m.snap, m.have = cols, rows, epoch, s.Team, s, true
	m.refresh()
	for _, n := range s.Needs {
		if n.Approval != 0 {
			m.request[n.Approval] = view.Request{
				ID: n.Approval, Kind: n.Kind, State: "pending", Member: n.Member, Agent: "claude", Mode: "default", Asked: n.Since, Tool: "Bash",
				Description: "publish the package", Command: "npm publish --tag next", Branch: "teamctl/demo/" + n.Member,
			}
		}
	}
	return m
}

func text(f frame) string { return strip(strings.Join(f.lines, "\n")) + "\n" }

func TestFrames(t *testing.T) {
	t.Parallel()
	for _, members := range []int{0, 1, 8, 50, 500} {
		for _, size := range [][2]int{{200, 50}, {120, 36}, {80, 24}, {40, 10}, {20, 5}} {
			m := shownOf(crowd(members), size[0], size[1])
			golden(t, fmt.Sprintf("frame-%d-%dx%d.txt", members, size[0], size[1]), text(m.draw()))
		}
	}
	m := shownOf(crowd(8), 80, 24)
	m.ascii = true
	got := text(m.draw())
	golden(t, "frame-ascii.txt", got)
	for _, r := range got {
		if r >= 0x80 {
			t.Errorf("%q is not ASCII", r)
		}
	}
	m = shownOf(crowd(8), 120, 36)
	m.snap.Down = ago(4 * time.Minute)
	m.refresh()
	golden(t, "frame-down.txt", text(m.draw()))
	m.snap.Silent = true
	golden(t, "frame-silent.txt", text(m.draw()))
	for cols, want := range map[int]string{80: ", facts are of then", 60: "has not answered since", 40: "? as of ", 20: "? "} {
		m.cols = cols
		if head := m.head(); !strings.Contains(head, want) || view.Width(head) > cols {
			t.Errorf("%d columns: %q, want %q", cols, head, want)
		}
	}
	m.cols = 120
	m.style = Style{On: true}
	if colored := m.draw(); text(colored) == strings.Join(colored.lines, "\n") {
		t.Error("a coloured frame has no colours")
	}
}

// TestEverySize checks that at every size every place and every overlay is drawn without a line too many
// or too wide, and that no control sequence of an agent's text reaches the terminal.
func TestEverySize(t *testing.T) {
	t.Parallel()
	sizes := [][2]int{{1, 1}, {1000, 300}, {1, 300}, {1000, 1}, {170, 30}}
	step := 1
	if testing.Short() {
		step = 6
	}
	for cols := 1; cols < 130; cols += 3 * step {
		for rows := 1; rows < 40; rows += 2 * step {
			sizes = append(sizes, [2]int{cols, rows})
		}
	}
	snap := crowd(30)
	long := view.Request{ID: 1, Kind: view.NeedPlan, State: "pending", Member: "worker-1", Plan: strings.Repeat("# a heading 数据数据\n- a point that is longer than most terminals are wide, so that it wraps\n```\ncode\tx\n```\n", 30)}
	overs := []overlay{{}, {kind: requestOverlay, approval: 1}, {kind: inputOverlay, title: "message worker-1: what to tell it", field: field{text: "数据\n" + strings.Repeat("x", 90), at: 9}, approval: 1},
		{kind: confirmOverlay, title: "kill"}, {kind: choiceOverlay, title: "do"}, {kind: filterOverlay}, {kind: leaveOverlay}}
	for _, size := range sizes {
		for _, at := range []place{inTeam, inTasks, inNeeds, inMail, inChanges, inUsage, inScreen, inTeams, inLog, inPager, inTime} {
			for _, over := range overs {
				if at != inTeam && over.kind != noOverlay {
					continue
				}
				m := shownOf(snap, size[0], size[1])
				m.at, m.over, m.request[1] = at, over, long
				m.tasksAs = drawings[(size[0]/3+size[1]/2)%len(drawings)]
				m.style = Style{On: true}
				m.screenOf, m.screen = "worker-1", view.Frame{Lines: []string{"\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07 数据", strings.Repeat("w", 300)}}
				m.mail = []view.Message{{ID: "1", Root: "1", From: "a", Text: "x\x1b[2J", Kind: team.KindMessage, At: epoch}, {ID: "2", Root: "1", Depth: 1, From: "b", To: "a", Text: `{"type":"x"}`, At: epoch}}
				m.changes = view.Changes{Member: "worker-1"}
				m.files = view.ParseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+\tb\n")
				m.changes.Comments = []view.Comment{{Name: "1.1", State: "draft", Path: "x", First: 1, Last: 1, Text: "a\x1b[2J\nb"}, {Name: "1.2", State: "open", Path: "x", Text: "数据"}}
				m.cursor, m.diff = "file:x", cursor{in: size[0]%2 == 0, path: "x", at: 1, mark: 2}
				m.drafts["message worker-1"] = "x"
				m.logged.task = "2"
				m.setLog(failedLog(), nil)
				m.past = pastOf(snap)
				m.over.choices = m.choices(true)
				m.lastKey = time.Time{}
				m.refresh()
				f := m.draw()
				if len(f.lines) != size[1] {
					t.Fatalf("%v %s %d: %d lines", size, at, over.kind, len(f.lines))
				}
				for _, l := range f.lines {
					if view.Width(l) > size[0] {
						t.Fatalf("%v %s %d: %d cells: %q", size, at, over.kind, view.Width(l), l)
					}
					if rest := view.Colors(l); rest != l {
						t.Fatalf("%v %s %d: %q is not only text and colours", size, at, over.kind, l)
					}
				}
				if f.cursor && (f.x < 0 || f.y < 0) {
					t.Fatalf("%v: the cursor is at %d,%d", size, f.x, f.y)
				}
			}
		}
	}
}

// TestHeld checks that rows do not move while the person types: rows that are gone stay, marked, and new
// ones come last, until no key was pressed for a while.
func TestHeld(t *testing.T) {
	t.Parallel()
	s := crowd(8)
	m := shownOf(s, 120, 36)
	m.lastKey = epoch
	m.refresh()
	first, second := m.sections[0].items[0].id, m.sections[0].items[1].id
	m.choose(second)
	s.Needs = append([]view.Need{{Kind: view.NeedPermission, Member: "new", Approval: 99, Text: "x", Since: ago(time.Hour)}}, s.Needs[1:]...)
	m.snap = s
	m.refresh()
	ids := func() (out []string) {
		for _, it := range m.sections[0].items {
			out = append(out, it.id)
		}
		return out
	}
	if got := ids(); got[0] != first || got[1] != second || !m.sections[0].items[0].gone || got[len(got)-1] != "need:permission:new::99" {
		t.Errorf("under a hand: %v", got)
	}
	if !strings.Contains(text(m.draw()), "gone: permission") {
		t.Errorf("what has gone is not marked:\n%s", text(m.draw()))
	}
	m.now = epoch.Add(settle)
	m.refresh()
	if got := ids(); got[0] != "need:permission:new::99" || m.cursor != second {
		t.Errorf("after a rest: %v, selected %s", got, m.cursor)
	}
}

// TestFilter checks that words and fields of the filter select rows.
func TestFilter(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	m.filter = "state:waiting agent:claude"
	m.refresh()
	if n := len(m.sections[1].items); n != 2 {
		t.Errorf("%d members wait, want 2", n)
	}
	if len(m.sections[2].items) != 0 {
		t.Error("a task is a waiting member of claude")
	}
}

// TestFilterOfPart checks that a filter says how many tasks it looks through, where those are not all.
func TestFilterOfPart(t *testing.T) {
	t.Parallel()
	s := sample()
	m := shownOf(s, 100, 24)
	m.at, m.filter = inTasks, "job 399"
	m.refresh()
	if got := m.foot(false); !strings.HasPrefix(strip(got), " /job 399  ") {
		t.Errorf("of all: %q", got)
	}
	c := s.Count()
	c.Total = 400
	m.snap.Whole = &c
	m.refresh()
	if got := m.foot(false); !strings.HasPrefix(strip(got), " /job 399 in 7 of 400 tasks  ") {
		t.Errorf("of some: %q", got)
	}
}
