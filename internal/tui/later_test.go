package tui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// TestPutOff checks that a need that is put off moves to the end, is skipped by the next-need key and is not
// counted, until its time has passed, it changes, or the same key takes it up again. Nothing in the team
// changes.
func TestPutOff(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	r := &run{m: m, ui: &UI{}}
	all := len(m.snap.Needs)
	first := m.sections[0].items[0].id
	m.choose(first)
	r.key(term.Event{Key: "Z", At: epoch}, "")
	look := func() (group, string) {
		m.lastKey = time.Time{}
		m.refresh()
		return m.sections[0], text(m.draw())
	}
	s, drawn := look()
	if s.items[all-1].id != first || m.cursor == first || !strings.Contains(drawn, "put off: Bash") || !strings.Contains(s.title, "1 put off") {
		t.Errorf("%s, at %s, the last is %s:\n%s", s.title, m.cursor, s.items[all-1].id, drawn)
	}
	for range 2 * all {
		r.key(term.Event{Key: ".", At: epoch}, "")
		if m.cursor == first {
			t.Fatal("the next need is the one that was put off")
		}
	}
	m.choose(first)
	r.key(term.Event{Key: "Z", At: epoch}, "")
	if s, _ := look(); s.items[0].id != first || strings.Contains(s.title, "put off") {
		t.Errorf("taken up again: %s", s.title)
	}

	m.choose(first)
	r.key(term.Event{Key: "Z", At: epoch}, "")
	m.snap.Needs[0].Text = "Bash: rm -rf /"
	if s, _ := look(); s.items[0].id != first {
		t.Error("a need that has changed stays put off")
	}
	m.choose(first)
	r.key(term.Event{Key: "Z", At: epoch}, "")
	if d := m.laterEnds(); d != putOff {
		t.Errorf("drawn again in %s", d)
	}
	m.now = m.now.Add(putOff)
	if s, _ := look(); s.items[0].id != first || m.laterEnds() != 0 {
		t.Error("a need stays put off beyond its time")
	}
	for range all {
		m.choose(m.sections[0].items[0].id)
		r.key(term.Event{Key: "Z", At: epoch}, "")
		look()
	}
	if s, drawn := look(); !strings.HasPrefix(s.title, "NOTHING NEEDS YOU, ") || strings.Contains(drawn, ". next need") {
		t.Errorf("all are put off: %s\n%s", s.title, drawn)
	}
}

// deeds is a team that records the actions that it carries out.
type deeds struct {
	view.Team
	did  []view.Deed
	done view.Done
	err  error
}

func (d *deeds) Do(_ context.Context, x view.Deed) (view.Done, error) {
	d.did = append(d.did, x)
	return d.done, d.err
}

// TestMergePreview checks that M shows what is ready to be merged, and that only a second M, after all of it
// was visible, merges it.
func TestMergePreview(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 100, 30)
	d := &deeds{done: view.Done{Said: "cart would be merged into main (merge)\x1b[2J\ndocs is in main already", Seen: "cart 1234"}}
	r := &run{m: m, ui: &UI{}, team: d, ctx: t.Context(), teamCtx: t.Context(), changes: make(chan func(*model), 1)}
	press := func(key, why string) {
		if m.over.kind != noOverlay {
			r.overKey(term.Event{Key: key, At: epoch}, why)
		} else {
			r.key(term.Event{Key: key, At: epoch}, why)
		}
		r.frame = m.draw()
	}
	opened := func() string {
		t.Helper()
		press("M", "")
		press("M", "") // typed before the preview has arrived
		if len(m.over.deed.Seen) > 0 || m.over.kind != previewOverlay {
			t.Error("it was done before it was shown")
		}
		(<-r.changes)(m)
		r.frame = m.draw()
		return text(r.frame)
	}
	if drawn := opened(); !strings.Contains(drawn, `cart would be merged into main (merge)\x1b[2J`) || !strings.Contains(drawn, "M does it, any other key leaves it") {
		t.Errorf("shown:\n%s", drawn)
	}
	press("M", "nothing was answered: these keys came faster than a hand types")
	if !strings.Contains(m.toast, "nothing was done: these keys came faster") {
		t.Errorf("a burst says %q", m.toast)
	}
	press("x", "")
	if m.over.kind != noOverlay || len(d.did) != 1 {
		t.Errorf("another key: %+v", d.did)
	}

	opened()
	m.rows = 4
	r.frame = m.draw()
	press("M", "")
	if len(d.did) != 2 {
		t.Error("it was done though a part of it was not visible")
	}
	m.rows = 30
	r.frame = m.draw()
	press("M", "")
	(<-r.changes)(m)
	if n := len(d.did); n != 3 || d.did[2].Preview || d.did[2].Seen != "cart 1234" || d.did[2].Action != "merge-ready" {
		t.Errorf("done: %+v", d.did)
	}
	r.all.Wait()

	d.err = team.Errorf(team.CodeConflict, "no branch")
	press("M", "")
	(<-r.changes)(m)
	if m.over.kind != noOverlay || !strings.Contains(m.toast, "no branch") {
		t.Errorf("an error: %q", m.toast)
	}
	m.readOnly = true
	press("M", "")
	if m.over.kind != noOverlay {
		t.Error("a screen that only reads merges")
	}
	r.all.Wait()
}
