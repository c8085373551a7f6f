package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// planDesk is a team that asks for a plan, and keeps the drafts on it.
type planDesk struct {
	fuzzed
	written []view.Deed
}

func newPlanDesk(plan string) *planDesk {
	return &planDesk{fuzzed: fuzzed{request: view.Request{Kind: view.NeedPlan, State: "pending", Member: "worker-1", Plan: plan}}}
}

func (d *planDesk) Request(ctx context.Context, id int64) (view.Request, error) {
	r, err := d.fuzzed.Request(ctx, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Comments = append([]view.Comment(nil), r.Comments...)
	return r, err
}

func (d *planDesk) Do(ctx context.Context, x view.Deed) (view.Done, error) {
	if r, _ := d.Request(ctx, x.Approval); x.Action == "reject" && x.Seen != r.Seen() {
		return view.Done{}, team.Errorf(team.CodeConflict, "it has changed since it was shown: no answer was given")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.Action == "reject" {
		d.answered = append(d.answered, x)
		return view.Done{Said: "the answer is given"}, nil
	}
	d.written = append(d.written, x)
	list := &d.request.Comments
	if x.Comment == "" {
		c := view.Comment{Name: fmt.Sprint(len(*list) + 1), State: "draft", Text: x.Text}
		if n, _ := fmt.Sscanf(x.Lines, "%d-%d", &c.First, &c.Last); n == 1 {
			c.Last = c.First
		}
		*list = append(*list, c)
		return view.Done{Comment: c.Name}, nil
	}
	for i := range *list {
		if c := &(*list)[i]; c.Name == x.Comment {
			c.Text = x.Text
		}
	}
	return view.Done{Comment: x.Comment}, nil
}

func (d *planDesk) answers() []view.Deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]view.Deed(nil), d.answered...)
}

// onPlanDesk is a screen with a plan in full.
func onPlanDesk(t *testing.T, d *planDesk) *onPaper {
	t.Helper()
	s := newOnPaper(t, d, d)
	for i := range s.m.snap.Needs {
		if n := &s.m.snap.Needs[i]; n.Approval != 0 {
			n.Kind, n.Text = view.NeedPlan, "a plan"
		}
	}
	s.m.refresh()
	s.shows("# Plan")
	s.types("enter")
	s.shows("c comment")
	return s
}

// writes types a text, and waits until it is a draft.
func (s *onPaper) writes(text string) {
	s.Helper()
	for _, c := range text {
		s.now = s.now.Add(2 * burst)
		s.event(term.Event{Kind: term.Key, Key: string(c), At: s.now})
	}
	s.look(pauseInTyping)
	for w := s.writing; w.busy || w.text != w.saved; {
		(<-s.changes)(s.m)
	}
}

// TestPlanComments checks that lines of an open plan get comments, which are drafts from the first pause
// in typing, are shown at their lines, can be changed, and go with the rejection.
func TestPlanComments(t *testing.T) {
	t.Parallel()
	d := newPlanDesk("# Plan\n1. rename the flag\n2. delete the old one\n3. write a test\n")
	s := onPlanDesk(t, d)
	s.shows("›1 # Plan")
	s.types("j")
	s.types("j")
	s.shows("›3 2. delete the old one")
	s.types("c")
	s.shows("comment on line 3 of plan 1 of worker-1")
	s.shows("> 2. delete the old one")
	s.writes("keep")
	s.writes(" it")
	s.types("enter")
	s.shows("draft 1: keep it")
	s.shows("x reject with 1 comment")
	if got := s.m.over.line; got != 2 {
		t.Errorf("the cursor is on line %d after the comment", got+1)
	}
	s.types("k")
	s.types("v")
	s.types("G")
	s.types("c")
	s.shows("comment on lines 2 to 4 of plan 1 of worker-1")
	s.writes("one commit each")
	s.types("esc")
	s.shows("draft 2, lines 2 to 4: one commit each")
	s.types("k")
	s.types("e")
	s.shows("edit the comment 1 on plan 1")
	s.writes("!")
	s.types("enter")
	s.shows("draft 1: keep it!")
	for i, want := range []string{"3  keep", "3 1 keep it", "2-4  one commit each", "3 1 keep it!"} {
		if x := d.written[i]; fmt.Sprint(x.Lines, " ", x.Comment, " ", x.Text) != want || x.Approval != 1 {
			t.Errorf("%d: %+v, want %s", i, x, want)
		}
	}
	s.look(unread)
	s.types("x")
	s.shows("reason, or what to change; with 2 comments on the plan")
	s.look(unread)
	for _, c := range "not yet" {
		s.types(string(c))
	}
	s.types("enter")
	s.shows("the answer is given")
	if list := d.answers(); len(list) != 1 || list[0].Text != "not yet" || list[0].Comments != 2 {
		t.Errorf("%+v", list)
	}
}

// TestPlanCommentsChanged checks that a plan or a comment that has changed since it was shown refuses the
// rejection, and that none is given while a comment is being written down.
func TestPlanCommentsChanged(t *testing.T) {
	t.Parallel()
	d := newPlanDesk("# Plan\n1. rename the flag")
	s := onPlanDesk(t, d)
	s.types("c")
	s.writes("which?")
	s.types("enter")
	s.shows("draft 1: which?")
	s.look(unread)
	s.types("x")
	s.shows("with 1 comment on the plan")
	d.mu.Lock()
	d.request.Plan = "# Plan\n1. rename all flags"
	d.mu.Unlock()
	s.types("n")
	s.look(unread)
	s.types("enter")
	s.shows("it has changed since it was shown")
	if list := d.answers(); len(list) != 0 {
		t.Errorf("%+v", list)
	}

	s = onPlanDesk(t, newPlanDesk("# Plan\nx"))
	s.look(unread)
	s.writing = &writing{deed: view.Deed{Approval: 1}, text: "a", busy: true}
	s.types("x")
	s.shows("the comment is being written down")
}

// TestPlanInView checks that the line of an open plan and what is said about it are in view at every size,
// with what stands above its first and below its last line.
func TestPlanInView(t *testing.T) {
	t.Parallel()
	var plan strings.Builder
	plan.WriteString("# Plan")
	for i := 2; i <= 60; i++ {
		fmt.Fprintf(&plan, "\n- step %d %s", i, strings.Repeat("word ", i%9))
	}
	for _, size := range [][2]int{{100, 30}, {60, 12}, {30, 8}} {
		m := shownOf(crowd(8), size[0], size[1])
		r := &run{m: m}
		m.request[1] = view.Request{ID: 1, Kind: view.NeedPlan, State: "pending", Member: "worker-1", Plan: plan.String(), Fields: []view.Field{{Name: "path", Text: "below the plan"}},
			Comments: []view.Comment{{Name: "1", State: "draft", First: 30, Last: 30, Text: "why?"}}}
		m.over = overlay{kind: requestOverlay, approval: 1}
		for _, way := range []string{"down", "up"} {
			for range 60 {
				shown := text(m.draw())
				if want := fmt.Sprintf("›%2d ", m.over.line+1); !strings.Contains(shown, want) {
					t.Fatalf("%v: no %q in\n%s", size, want, shown)
				}
				if m.over.line == 29 && !strings.Contains(shown, "draft 1: why?") || m.over.line == 59 && !strings.Contains(shown, "below the plan") ||
					m.over.line == 0 && !strings.Contains(shown, "plan 1 of worker-1") {
					t.Fatalf("%v at line %d:\n%s", size, m.over.line+1, shown)
				}
				r.planKey(way, 1)
			}
		}
	}
}
