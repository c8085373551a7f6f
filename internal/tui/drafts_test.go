package tui

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/tui/term"
	"github.com/teamctl/teamctl/internal/view"
)

// drawer is a team that keeps texts.
type drawer struct {
	fuzzed
	kept  map[string]string
	fails error
}

func (d *drawer) Drafts(context.Context) (map[string]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.kept), nil
}

func (d *drawer) Keep(_ context.Context, x view.Deed) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return d.fails
	}
	d.kept[x.Purpose()] = x.Text
	return nil
}

func (d *drawer) Do(context.Context, view.Deed) (view.Done, error) {
	return view.Done{Said: "done"}, nil
}

// TestTextIsKept checks that what is typed for an action is kept from the first pause on, is in the field
// again on another screen and behind no key that was faster, and that leaving asks only for what could not
// be kept.
func TestTextIsKept(t *testing.T) {
	t.Parallel()
	d := &drawer{kept: map[string]string{}}
	screen := func() (m *model, r *run, types func(string), done func()) {
		m = shownOf(crowd(8), 120, 36)
		m.refresh()
		m.choose("member:worker-2")
		var keys func(...string)
		r, keys, done = inHand(t, m, d)
		return m, r, func(text string) { keys(strings.Split(text, "")...) }, done
	}
	m, r, types, done := screen()
	types("m")
	done()
	types("half")
	if r.unwritten() == 0 || len(d.kept) != 0 {
		t.Fatalf("written without a pause: %v", d.kept)
	}
	r.rested(m.now.Add(pauseInTyping))
	done()
	if d.kept["message worker-2"] != "half" {
		t.Fatalf("kept: %v", d.kept)
	}

	m, r, types, done = screen()
	types("m")
	done()
	if m.over.field.text != "half" || r.unwritten() != 0 {
		t.Errorf("on the next screen: %q", m.over.field.text)
	}
	m, r, types, done = screen()
	types("m x")
	done()
	if m.over.field.text != "half x" || m.over.field.at != len("half x") {
		t.Errorf("behind what was typed: %q, %d", m.over.field.text, m.over.field.at)
	}
	r.inputKey(term.Event{Kind: term.Key, Key: "esc"}, "")
	done()
	if d.kept["message worker-2"] != "half x" || len(m.drafts) != 0 {
		t.Errorf("kept: %v, drafts %v", d.kept, m.drafts)
	}
	d.fails = errors.New("disk full")
	types("m!")
	r.inputKey(term.Event{Kind: term.Key, Key: "esc"}, "")
	done()
	if !strings.Contains(m.toast, "disk full") || m.drafts["demo: message worker-2"] != "half x!" {
		t.Errorf("drafts %v, %q", m.drafts, m.toast)
	}
	if r.quit(); m.over.kind != leaveOverlay {
		t.Error("it is left without a word")
	}
	m.over, d.fails = overlay{}, nil
	types("m")
	r.inputKey(term.Event{Kind: term.Key, Key: "enter"}, "")
	done()
	if len(m.drafts) != 0 || len(m.kept) != 0 {
		t.Errorf("after it was sent: %v, %v", m.drafts, m.kept)
	}
}
