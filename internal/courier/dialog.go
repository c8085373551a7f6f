package courier

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// dialogFile is in the bundle what was asked for the dialog that stands there, so that
// the next supervisor goes on with the same question.
const dialogFile = "dialog.json"

// idScreen begins the ids of what is asked for a dialog that only the screen shows.
const idScreen = "screen-"

// dialogStands is how long a dialog has to stand before it is asked about: what the
// program or a policy of its own answers is gone by then.
const dialogStands = lookConfirm

// dialogAsked is a dialog, and the question that was put into the queue for it.
type dialogAsked struct {
	Generation string `json:"generation"`
	ID         string `json:"id"`
	Shows      string `json:"shows"` // Seen.Dialog
	Asked      bool   `json:"asked"`
}

// dialogs asks for permission in the name of a program that can ask on its screen only,
// where the keys of its dialog are known, and presses the one that answers it. It is
// pressed only while that very dialog stands there: all that is to be seen of the turn is
// compared, since one dialog looks like another.
type dialogs struct {
	keys typist

	mu    sync.Mutex
	now   dialogAsked // the zero value: none stands there
	since time.Time
	told  bool // this supervisor knows of it
	gone  bool // the last look did not show it, nor anything else
}

// newDialogs returns nil where the program asks by itself, or nobody can press its keys.
func newDialogs(f Facts, s Screen, r Report) *dialogs {
	if _, ok := s.(Keyer); !ok || f.Link.AsksItself() {
		return nil
	}
	d := &dialogs{keys: typist{f: f, s: s, report: r}}
	var last dialogAsked
	if err := ReadJSON(f.Bundle, dialogFile, &last); err == nil && last.Generation == f.Generation && last.Asked {
		d.now = last
	}
	return d
}

// saw takes what the screen shows and returns what is to be reported of it.
func (d *dialogs) saw(seen adapter.Seen, at time.Time) []team.Observation {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	shows := ""
	if seen.Activity == team.Waiting && seen.For == team.WaitPermission {
		shows = seen.Dialog
	}
	switch {
	case shows != "" && shows == d.now.Shows:
		d.gone = false
		if d.told || !d.now.Asked && at.Sub(d.since) < dialogStands {
			return nil
		}
		return d.ask(seen, at)
	case shows != "":
		out := d.over(at)
		d.now, d.since = dialogAsked{Generation: d.keys.f.Generation, ID: idScreen + team.NewUUID(), Shows: shows}, at
		return out
	case d.now.ID == "":
	case !d.gone && seen.Activity == team.ActivityUnknown: // it may be in the middle of drawing
		d.gone = true
	default:
		return d.over(at)
	}
	return nil
}

// ask reports the question of the dialog.
func (d *dialogs) ask(seen adapter.Seen, at time.Time) []team.Observation {
	if !d.now.Asked {
		d.now.Asked = true
		if err := WriteJSON(d.keys.f.Bundle, dialogFile, d.now); err != nil { // a kill would make it ask twice
			d.keys.f.Log.Warn("note a dialog", "member", d.keys.f.Name, "err", err)
		}
	}
	d.told = true
	what := d.now.Shows
	if len(seen.Lines) > 0 {
		what = strings.Trim(seen.Lines[0], " │┃|") + "\n" + what
	}
	return []team.Observation{{Tier: team.TierScreen, At: at, Source: "dialog on its screen", Ask: &team.Ask{
		ID: d.now.ID, For: team.WaitPermission, Tool: "dialog", Description: what, Keys: true, Screen: true,
	}}}
}

// over reports that the dialog that was asked about does not stand there any more: its
// question goes out of the queue, unless it was our key that it took.
func (d *dialogs) over(at time.Time) (out []team.Observation) {
	if d.now.Asked && !d.told { // by an earlier supervisor: this one has to know what is meant
		out = d.ask(adapter.Seen{}, at)
	}
	if d.now.Asked && !d.keys.pressed(d.now.ID) {
		out = append(out, team.Observation{Tier: team.TierScreen, At: at, Source: "dialog is gone", Settled: d.now.ID})
	}
	d.now, d.told, d.gone = dialogAsked{}, false, false
	return out
}

// answer presses the key that answers the dialog.
func (d *dialogs) answer(ctx context.Context, r team.Reply) error {
	f := d.keys.f
	d.mu.Lock()
	now := d.now
	d.mu.Unlock()
	switch {
	case now.ID != r.ID && d.keys.pressed(r.ID):
		return nil
	case now.ID != r.ID || !now.Asked:
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", f.AgentID, r.ID)
	}
	seen, err := f.look.see(ctx)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen cannot be read: %w", f.AgentID, err)
	}
	if seen.Dialog != now.Shows {
		d.keys.later(lookAgain)
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen does not show the dialog that asked", f.AgentID).
			WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + f.Name)
	}
	err = d.keys.choose(ctx, r, seen, func(s adapter.Seen) bool { return s.Dialog != now.Shows })
	if err != nil {
		return err
	}
	d.mu.Lock()
	if d.now.ID == r.ID {
		d.now, d.told, d.gone = dialogAsked{}, false, false
	}
	d.mu.Unlock()
	d.keys.report(team.Observation{Tier: team.TierScreen, Activity: team.Working, At: time.Now(), Source: "dialog answered", Settled: r.ID})
	return nil
}

func (d *dialogs) close() {
	if d != nil {
		d.keys.Close()
	}
}

// pressAgain is how long a program may take to show that it has taken a key: another one
// that comes too late for the dialog stands in its input box, where nothing can be typed
// any more.
const pressAgain = time.Minute

// choose presses the key that allows or denies what the request asks, and sees that the
// dialog takes it.
func (t *typist) choose(ctx context.Context, r team.Reply, seen adapter.Seen, gone func(adapter.Seen) bool) error {
	key := seen.Deny
	if r.Allow {
		key = seen.Allow
	}
	press, ok := t.s.(Keyer)
	if !ok || key == "" {
		return team.Errorf(team.CodeNotFound, "%s is answered at its own dialog", t.f.AgentID).WithHint("teamctl attach " + t.f.Name)
	}
	t.mu.Lock()
	left := pressAgain - time.Since(t.pressedAt)
	again := t.pressedFor == r.ID && left > 0
	if !again {
		t.pressedFor, t.pressedAt = r.ID, time.Now()
	}
	t.mu.Unlock()
	if !again {
		if err := press.Key(ctx, key); err != nil {
			return err
		}
		if t.until(ctx, answerWithin, gone) {
			return nil
		}
		left = pressAgain
	}
	t.later(left)
	return team.Errorf(team.CodeUnavailable, "answer %s: its dialog is not seen to have taken the key %s", t.f.AgentID, key).
		WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + t.f.Name)
}

// pressed reports whether a key was pressed for the request: when its dialog has gone,
// that was its answer.
func (t *typist) pressed(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pressedFor == id
}

// Answer brings an answer: by a key to a dialog that only the screen shows.
func (w *watched) Answer(ctx context.Context, r team.Reply) error {
	if strings.HasPrefix(r.ID, idScreen) && w.dialogs != nil {
		return w.dialogs.answer(ctx, r)
	}
	return w.Channel.Answer(ctx, r)
}
