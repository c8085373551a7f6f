package courier

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// dialogFile is the bundle's record of the request made for the open dialog, so that the next
// supervisor continues with the same request.
const dialogFile = "dialog.json"

// idScreen is the prefix of request ids for dialogs that only the screen shows.
const idScreen = "screen-"

// dialogStands is how long a dialog must stay open before a request is made for it: dialogs
// answered by the program or by its own policy are gone by then.
const dialogStands = lookConfirm

// dialogAsked is a dialog and the request that was queued for it.
type dialogAsked struct {
	Generation string `json:"generation"`
	ID         string `json:"id"`
	Shows      string `json:"shows"` // Seen.Dialog
	Asked      bool   `json:"asked"`
}

// dialogs makes permission requests on behalf of a program that asks only on its screen, if the
// keys of its dialog are known, and presses the key for the answer. It presses only while the same
// dialog is open: it compares everything that the screen shows of the turn, since dialogs look
// alike.
type dialogs struct {
	keys Typist

	mu    sync.Mutex
	now   dialogAsked // the zero value: no dialog is open
	since time.Time
	told  bool // this supervisor knows of the request
	gone  bool // the last look showed neither the dialog nor anything else
}

// newDialogs returns nil if the program asks by itself, or if no keys can be pressed.
func newDialogs(f Facts, s Screen, r Report) *dialogs {
	if _, ok := s.(Keyer); !ok || f.Link.AsksItself() {
		return nil
	}
	d := &dialogs{keys: Typist{f: f, s: s, report: r}}
	var last dialogAsked
	if err := ReadJSON(f.Bundle, dialogFile, &last); err == nil && last.Generation == f.Generation && last.Asked {
		d.now = last
	}
	return d
}

// saw processes a screen and returns the observations to report.
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
	case !d.gone && seen.Activity == team.ActivityUnknown: // the program may be drawing
		d.gone = true
	default:
		return d.over(at)
	}
	return nil
}

// ask returns the observation that requests an answer to the dialog.
func (d *dialogs) ask(seen adapter.Seen, at time.Time) []team.Observation {
	if !d.now.Asked {
		d.now.Asked = true
		if err := WriteJSON(d.keys.f.Bundle, dialogFile, d.now); err != nil { // after a kill it would ask twice
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

// over returns the observations for a dialog that has closed: its request is withdrawn, unless our
// key closed it.
func (d *dialogs) over(at time.Time) (out []team.Observation) {
	if d.now.Asked && !d.told { // requested by an earlier supervisor: this one needs to know the request
		out = d.ask(adapter.Seen{}, at)
	}
	if d.now.Asked && !d.keys.Pressed(d.now.ID) {
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
	case now.ID != r.ID && d.keys.Pressed(r.ID):
		return nil
	case now.ID != r.ID || !now.Asked:
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", f.AgentID, r.ID)
	}
	seen, err := f.look.see(ctx)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen cannot be read: %w", f.AgentID, err)
	}
	if seen.Dialog != now.Shows {
		d.keys.Later(LookAgain)
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen does not show the dialog that asked", f.AgentID).
			WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + f.Name)
	}
	err = d.keys.Choose(ctx, r, seen, func(s adapter.Seen) bool { return s.Dialog != now.Shows })
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

// pressAgain is how long a program may take to show that it has processed a key. A second key that
// arrives after the dialog has closed would stay in the input box, and nothing could be typed
// there any more.
const pressAgain = time.Minute

// answerWithin is how long a dialog may take to close after its key.
const answerWithin = 3 * time.Second

// Choose presses the key that allows or denies the request, and waits until the dialog has closed.
func (t *Typist) Choose(ctx context.Context, r team.Reply, seen adapter.Seen, gone func(adapter.Seen) bool) error {
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
	t.Later(left)
	return team.Errorf(team.CodeUnavailable, "answer %s: its dialog is not seen to have taken the key %s", t.f.AgentID, key).
		WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + t.f.Name)
}

// Pressed reports whether a key was pressed for the request: if so, that key closed its dialog.
func (t *Typist) Pressed(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pressedFor == id
}

// Answer delivers an answer, by a key if only the screen shows the dialog.
func (w *watched) Answer(ctx context.Context, r team.Reply) error {
	if strings.HasPrefix(r.ID, idScreen) && w.dialogs != nil {
		return w.dialogs.answer(ctx, r)
	}
	return w.Channel.Answer(ctx, r)
}
