package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

const cartPatch = `diff --git a/cart.go b/cart.go
--- a/cart.go
+++ b/cart.go
@@ -39,4 +39,5 @@ type Cart struct
 // Total is what it costs.
 func (c *Cart) Total() Money {
-	return c.sum
+	sum := c.sum
+	return sum.Round(2)
 }
diff --git a/price.go b/price.go
--- a/price.go
+++ b/price.go
@@ -7,1 +7,1 @@
-a
+b
`

// reviewed is a model that shows changes.
func reviewed(comments ...view.Comment) *model {
	m := shownOf(crowd(8), 120, 24)
	m.at = inChanges
	m.setChanges(view.Changes{Member: "worker-1", Against: "main", Comments: comments, Reviewed: map[string]bool{"price.go": true}}, view.ParseDiff(cartPatch))
	m.refresh()
	m.choose("file:cart.go")
	return m
}

// TestChangesFrame checks that comments are drawn at their lines, and above all lines if these are gone.
func TestChangesFrame(t *testing.T) {
	t.Parallel()
	m := reviewed(
		view.Comment{Name: "2.1", State: "handled", Path: "cart.go", First: 42, Last: 42, Text: "why two?", Answer: "by the currency now"},
		view.Comment{Name: "3.1", State: "draft", Path: "cart.go", First: 41, Last: 41, Old: true, Text: "keep it"},
		view.Comment{Name: "2.2", State: "open", Path: "cart.go", First: 12, Last: 12, Changed: true, Text: "a lost one"},
	)
	m.enterDiff()
	golden(t, "changes.txt", text(m.draw()))
}

// TestChangesHead checks that the head of the changes names what they are compared with, and that whole
// parts of it are left out where it is narrow, the counts last.
func TestChangesHead(t *testing.T) {
	t.Parallel()
	said := []view.Comment{{Name: "3.1", State: "open"}, {Name: "3.2", State: "handled"}, {Name: "4.1", State: "draft"}}
	for _, c := range []struct {
		of   view.Changes
		cols int
		want string
	}{
		{view.Changes{Member: "cart", Against: "main", Comments: said}, 109, "CHANGES of cart against main  2 files  +3 -2  round 3: 1 open, 1 handled  S send 1"},
		{view.Changes{Member: "cart", Against: "main", Comments: said}, 120, "CHANGES of cart against main  2 files  +3 -2"},
		{view.Changes{Member: "cart", Against: "main", Comments: said}, 80, "CHANGES of cart against main  2 files  +3 -2  round 3: 1 open, 1 handled"},
		{view.Changes{Member: "cart", Against: "main", Comments: said}, 40, "CHANGES of cart against main  +3 -2"},
		{view.Changes{Member: "cart", Base: "0123456789abcdef"}, 80, "CHANGES of cart against 0123456  2 files  +3 -2"},
		{view.Changes{Member: "cart", Base: "0123456789abcdef", Against: "main", Since: "task", Task: "12"}, 80, "CHANGES of cart since task 12  2 files  +3 -2"},
		{view.Changes{Member: "cart", Since: "review", Round: 3}, 80, "CHANGES of cart since round 3  2 files  +3 -2"},
		{view.Changes{Member: "cart", Base: "HEAD", Since: "commit"}, 40, "CHANGES of cart against its last commit"},
		{view.Changes{Member: "refactor-payments", Against: "release/2026.11"}, 40, "refactor-payments  2 files  +3 -2"},
	} {
		m := reviewed()
		m.cols = c.cols
		m.setChanges(c.of, m.files)
		m.sections = m.build()
		for _, l := range m.draw().lines {
			if l = strip(l); strings.Contains(l, c.of.Member) {
				if l, _, _ = strings.Cut(l, "│"); strings.TrimSpace(l) != c.want {
					t.Errorf("%d columns of %+v: %q, want %q", c.cols, c.of, strings.TrimSpace(l), c.want)
				}
				break
			}
		}
	}
}

// TestCommentTarget checks that a comment refers to the line of the cursor, to the marked lines or to the
// file, and to removed lines only if there are no others.
func TestCommentTarget(t *testing.T) {
	t.Parallel()
	m := reviewed(view.Comment{Name: "1.1", State: "draft", Path: "cart.go", First: 41, Last: 41, Text: "x"})
	for _, c := range []struct {
		in       bool
		at, mark int
		want     string
		old      bool
		comment  string
	}{
		{false, 0, 0, "", false, ""},
		{true, 1, 0, "39", false, ""},
		{true, 3, 0, "41", true, ""},
		{true, 4, 0, "41", false, "1.1"},
		{true, 5, 3, "40-42", false, ""},
		{true, 2, 6, "40-42", false, ""},
		{true, 0, 0, "", false, ""}, // the heading of a hunk
	} {
		m.diff = cursor{in: c.in, path: "cart.go", at: c.at, mark: c.mark}
		got := m.target().Change
		name := ""
		if got.Comment != nil {
			name = got.Comment.Name
		}
		if got.Path != "cart.go" || got.Lines != c.want || got.Old != c.old || name != c.comment {
			t.Errorf("at %+v: %+v, comment %q", c, got, name)
		}
	}
	m.diff = cursor{in: true, path: "cart.go", at: 5}
	m.setChanges(m.changes, view.ParseDiff(strings.Replace(cartPatch, "@@ -39,4 +39,5 @@ type Cart struct\n", "@@ -1,1 +1,1 @@\n-x\n+y\n@@ -39,4 +39,5 @@ type Cart struct\n", 1)))
	if m.diff.at != 8 {
		t.Errorf("the cursor is at line %d after others came before it", m.diff.at)
	}
}

// desk is a team that keeps drafts.
type desk struct {
	view.Team
	done  chan view.Deed
	fails error
}

func (d *desk) Do(_ context.Context, x view.Deed) (view.Done, error) {
	d.done <- x
	if d.fails != nil {
		return view.Done{}, d.fails
	}
	return view.Done{Comment: "1.1"}, nil
}

func (d *desk) Merges(context.Context) ([]view.Merge, error) { return nil, nil }

func (d *desk) Changes(_ context.Context, member, _ string) (view.Changes, error) {
	return view.Changes{Member: member, Patch: cartPatch}, nil
}

// TestCommentIsKept checks that a comment is saved as a draft at the first pause in typing, that later
// pauses change the same draft, and that it is saved again when the screen ends.
func TestCommentIsKept(t *testing.T) {
	t.Parallel()
	d := &desk{done: make(chan view.Deed, 8)}
	m := reviewed()
	m.enterDiff()
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{ui: &UI{}, m: m, ctx: ctx, teamCtx: ctx, team: d, changes: make(chan func(*model), 16), running: map[string]bool{}, again: map[string]doing{}}
	defer func() {
		cancel()
		r.all.Wait()
	}()
	at := epoch
	types := func(text string) {
		for _, c := range text {
			at = at.Add(100 * time.Millisecond)
			m.now = at
			r.event(term.Event{Kind: term.Key, Key: string(c), At: at})
			r.rested(at)
		}
	}
	applied := func() {
		for w := r.writing; w.busy; {
			change := <-r.changes
			r.apply(change)
		}
	}
	types("cwhy")
	if r.unwritten() == 0 || len(d.done) != 0 {
		t.Fatalf("written without a pause: %d", len(d.done))
	}
	at = at.Add(pauseInTyping)
	r.rested(at)
	got := <-d.done
	if got.Action != "comment" || got.Text != "why" || got.Path != "cart.go" || got.Lines != "41" || !got.Old || got.Comment != "" {
		t.Errorf("%+v", got)
	}
	applied()
	types("?")
	r.event(term.Event{Kind: term.Key, Key: "esc", At: at})
	if got = <-d.done; got.Text != "why?" || got.Comment != "1.1" {
		t.Errorf("%+v", got)
	}
	applied()
	if m.over.kind != noOverlay || len(m.drafts) != 0 {
		t.Errorf("over %d, drafts %v", m.over.kind, m.drafts)
	}
	types("Cx")
	r.finishWriting(writingEnds)
	if got = <-d.done; got.Text != "x" || got.Lines != "" || got.Comment != "" {
		t.Errorf("at the end: %+v", got)
	}

	d.fails = errors.New("disk full")
	types("y")
	r.flush()
	<-d.done
	applied()
	if fmt.Sprint(m.drafts) != "map[demo: comment on the file cart.go of worker-1:xy]" || !strings.Contains(m.toast, "disk full") {
		t.Errorf("what could not be kept: %v, %q", m.drafts, m.toast)
	}

	m.toast = ""
	r.event(term.Event{Kind: term.Key, Key: "enter", At: at})
	<-d.done
	applied()
	if m.over.kind != noOverlay || !strings.Contains(m.toast, "disk full") {
		t.Errorf("Enter is answered with %q", m.toast)
	}
	d.fails = nil
	types("C")
	if m.over.field.text != "xy" {
		t.Errorf("the field has %q", m.over.field.text)
	}
	r.flush()
	if got = <-d.done; got.Text != "xy" {
		t.Errorf("it is kept as %+v", got)
	}
	applied()
	if len(m.drafts) != 0 {
		t.Errorf("kept, and still unsent: %v", m.drafts)
	}
}

// TestCommentOfAnotherTeam checks that what became of a comment is told although its team was left before
// it was known.
func TestCommentOfAnotherTeam(t *testing.T) {
	t.Parallel()
	for range 10 {
		d := &desk{done: make(chan view.Deed), fails: errors.New("disk full")}
		m := reviewed()
		m.enterDiff()
		ctx, leave := context.WithCancel(t.Context())
		r := &run{ui: &UI{}, m: m, ctx: t.Context(), teamCtx: ctx, team: d, changes: make(chan func(*model), 16), running: map[string]bool{}, again: map[string]doing{}}
		for _, key := range []string{"C", "y"} {
			r.event(term.Event{Kind: term.Key, Key: key, At: epoch})
		}
		r.flush()
		leave()
		r.team, m.name = nil, "other"
		<-d.done
		r.all.Wait()
		for len(r.changes) > 0 {
			r.apply(<-r.changes)
		}
		if r.writing.busy || fmt.Sprint(m.drafts) != "map[demo: comment on the file cart.go of worker-1:y]" || m.trouble.words != "" || len(r.unkept) != 0 {
			t.Fatalf("busy %v, drafts %v, trouble %q, %v", r.writing.busy, m.drafts, m.trouble.words, r.unkept)
		}
	}
}
