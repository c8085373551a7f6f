package tui

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// putter is a team that records what is put off, as long as it has no err.
type putter struct {
	fuzzed
	off map[string]time.Duration
	err error
}

func (p *putter) PutOff(_ context.Context, n view.Need, d time.Duration) error {
	if p.err == nil {
		p.off[needID(n)] = d
	}
	return p.err
}

func (p *putter) TakeUp(_ context.Context, n view.Need) error {
	delete(p.off, needID(n))
	return p.err
}

// snap returns a snapshot with the needs as the team has them.
func (p *putter) snap(s view.Snapshot) view.Snapshot {
	s.Needs = slices.Clone(s.Needs)
	for i, n := range s.Needs {
		d, ok := p.off[needID(n)]
		s.Needs[i].Later, s.Needs[i].Until = ok, time.Time{}
		if d > 0 {
			s.Needs[i].Until = epoch.Add(d)
		}
	}
	view.SortNeeds(s.Needs)
	return s
}

// TestPutOff checks that the key asks for how long to put a need off, that a need that is put off is the last
// of its list with the end of that, is skipped by the next-need key and is not counted, until its time has
// passed or the same key takes it up again.
func TestPutOff(t *testing.T) {
	t.Parallel()
	m := shownOf(crowd(8), 120, 36)
	p := &putter{off: map[string]time.Duration{}}
	r, keys, done := inHand(t, m, p)
	all := len(m.snap.Needs)
	first := m.sections[0].items[0].id
	look := func() (group, string) {
		m.snap, m.lastKey = p.snap(m.snap), time.Time{}
		m.refresh()
		return m.sections[0], text(m.draw())
	}
	for _, c := range []struct {
		keys []string
		time time.Duration
		want string
	}{
		{[]string{"Z", "enter"}, 15 * time.Minute, "put off until " + epoch.Add(15*time.Minute).Local().Format("15:04") + ": Bash"},
		{[]string{"Z", "down", "enter"}, time.Hour, "put off until " + epoch.Add(time.Hour).Local().Format("15:04") + ": Bash"},
		{[]string{"Z", "c", "h", "a", "enter"}, 0, "put off until it changes: Bash"},
	} {
		m.choose(first)
		keys(c.keys...)
		done()
		s, drawn := look()
		if d, ok := p.off[first]; !ok || d != c.time || s.items[all-1].id != first || m.cursor == first || !strings.Contains(drawn, c.want) || !strings.Contains(s.title, "1 put off") {
			t.Errorf("%v: %s, at %s, the last is %s:\n%s", c.keys, s.title, m.cursor, s.items[all-1].id, drawn)
		}
		if g := view.GlanceOf(m.snap); g.Needs != all-1 {
			t.Errorf("%v: %d are counted of %d", c.keys, g.Needs, all)
		}
		for range 2 * all {
			keys(".")
			if m.cursor == first {
				t.Fatal("the next need is the one that was put off")
			}
		}
		if c.time > 0 {
			if d := m.laterEnds(); d != c.time {
				t.Errorf("%v: drawn again in %s", c.keys, d)
			}
			now := m.now
			m.now = m.now.Add(c.time)
			if s, drawn := look(); m.laterEnds() != 0 || strings.Contains(s.title, "put off") || strings.Contains(drawn, "put off until") {
				t.Errorf("%v: a need stays put off beyond its time:\n%s", c.keys, drawn)
			}
			m.now = now
			look()
		}
		m.choose(first)
		keys("Z")
		done()
		if s, _ := look(); len(p.off) != 0 || s.items[0].id != first || strings.Contains(s.title, "put off") {
			t.Errorf("%v: taken up again: %s", c.keys, s.title)
		}
	}

	m.choose(first)
	p.err = team.Errorf(team.CodeConflict, "it has changed")
	keys("Z", "enter")
	done()
	if _, drawn := look(); !strings.Contains(drawn, "permission 1 of worker-1: it has changed") || len(p.off) > 0 {
		t.Errorf("a refusal:\n%s", drawn)
	}
	p.err, m.readOnly = nil, true
	keys("Z")
	if m.over.kind != noOverlay || !strings.Contains(m.toast, "read only") {
		t.Errorf("read only: %q", m.toast)
	}
	m.readOnly = false
	for _, n := range m.snap.Needs {
		p.off[needID(n)] = 0
	}
	if s, drawn := look(); !strings.HasPrefix(s.title, "NOTHING NEEDS YOU, ") || strings.Contains(drawn, ". next need") {
		t.Errorf("all are put off: %s\n%s", s.title, drawn)
	}
	r.all.Wait()
}

// TestPlainPutOff checks the words of the plain screen for it, and that a need which is put off elsewhere or
// comes back is told once.
func TestPlainPutOff(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &putter{off: map[string]time.Duration{}}
	talk := &talk{p: &Plain{Out: &out}, ctx: t.Context(), name: "demo", team: p, told: map[string]view.Need{}, events: map[string]bool{}, seen: map[int64]string{}}
	snap := view.Snapshot{Team: "demo", Needs: []view.Need{{Kind: view.NeedDialog, Member: "bob", Text: "a question"}, {Kind: view.NeedTask, Task: "3", Text: "exit 1"}}}
	has := func(want string) {
		t.Helper()
		got := out.String()
		out.Reset()
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Count(got, "\n") > strings.Count(want, "\n")+2 {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	look := func() { talk.snapshot(p.snap(snap), nil, false) }
	look()
	out.Reset()
	talk.line("put-off 1 change", epoch)
	has("dialog of bob is put off until it changes.")
	if d, ok := p.off[needID(snap.Needs[0])]; !ok || d != 0 {
		t.Errorf("recorded: %v", p.off)
	}
	look()
	has("")
	talk.line("needs", epoch)
	has("1 needs you, 1 put off.\nneeds you 1 of 1: task 3, exit 1\nput off until it changes 2: dialog, bob, a question\n")
	talk.line("take-up 2", epoch)
	has("dialog of bob is not put off any more.")
	look()
	has("")
	p.off[needID(snap.Needs[1])] = time.Hour
	look()
	has("1, task 3, is put off until " + epoch.Add(time.Hour).Local().Format("15:04") + ".")
	delete(p.off, needID(snap.Needs[1]))
	look()
	has("needs you 1 of 2: task 3")
	talk.line("put-off 9", epoch)
	has("there is no need 9")
	talk.line("put-off 1 2h", epoch)
	has("nothing was done: put-off NUMBER 15m, 1h or change")
	if len(p.off) != 0 {
		t.Errorf("recorded: %v", p.off)
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
