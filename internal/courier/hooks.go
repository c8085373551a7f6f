package courier

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/team"
)

// Files of the hooks in the bundle.
const (
	seenFile = "seen.json" // the last thing that a hook saw
	waitLock = "wait.lock" // held by the hook that waits for mail
)

// SeenFile is what the newest hook of a member saw, for the next supervisor.
type SeenFile struct {
	Generation string           `json:"generation"`
	Seen       team.Observation `json:"seen"`
}

// WriteSeen replaces it.
func WriteSeen(b team.Bundle, s SeenFile) error { return WriteJSON(b, seenFile, s) }

// WaitLock is the lock of the hook that waits for mail.
func WaitLock(b team.Bundle) string { return filepath.Join(string(b), waitLock) }

// wakeAgain is how long one typed wake-up is given before the next.
const wakeAgain = 15 * time.Second

// hooks is the channel of agents whose hooks fetch the mail: at a tool boundary, at
// a prompt, at the end of a turn. There is nothing to hand over; an agent that is
// idle, and has no hook that waits, is woken by typing.
//
// Where its hooks do not run nothing would ever fetch the mail, and each wake-up would cost
// a turn: then the mail itself is typed.
type hooks struct {
	typing
	deafness
	cancel context.CancelFunc
	done   sync.WaitGroup

	// The last typed wake-up, and what waited then. Used by Deliver only.
	woken    time.Time
	wokenFor map[string]bool
	// alone is since when no hook has waited for mail, where one is to; zero while one does.
	alone time.Time
	// opened is when the channel was.
	opened time.Time
}

// waiterBack is how long a hook that waits may take to come back once it has given mail:
// the next end of a turn starts it.
const waiterBack = 20 * time.Second

func openHooks(_ context.Context, f Facts, s Screen, r Report) (Channel, error) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hooks{typing: typing{typist: typist{f: f, s: s, report: r}}, deafness: deafness{patience: heardWithin}, cancel: cancel, opened: time.Now()}
	var last SeenFile
	if err := ReadJSON(f.Bundle, seenFile, &last); err == nil && last.Generation == f.Generation {
		h.done.Go(func() { r(last.Seen) })
	}
	if adapter.KeepsSessions(f.Link.Agent) && f.Link.Config != "" {
		file := filepath.Join(f.Link.Config, "sessions", strconv.Itoa(f.PID)+".json")
		h.done.Go(func() { watchSession(ctx, f, file, r) })
	}
	return h, nil
}

// Deliver wakes the agent where nothing else does, and looks for the evidence of what a
// hook has given.
func (h *hooks) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
	var given, waiting []team.Mail
	for _, m := range mail {
		if m.Again {
			given = append(given, m)
		} else {
			waiting = append(waiting, m)
		}
	}
	if len(given) == 0 {
		return h.bring(ctx, mail)
	}
	out, lost := h.recorded(ctx, given)
	switch {
	case len(waiting) > 0: // the agent is woken for that
		out = append(out, h.bring(ctx, waiting)...)
	case len(lost) > 0:
		h.wakeForLost(ctx, lost)
	}
	at := map[string]int{}
	for i, m := range mail {
		at[m.ID] = i
	}
	slices.SortFunc(out, func(a, b team.Outcome) int { return at[a.ID] - at[b.ID] })
	return out
}

// bring has the agent fetch what waits.
func (h *hooks) bring(ctx context.Context, mail []team.Mail) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i].ID = m.ID
	}
	if typed, err := h.typedMail(ctx, mail); err != nil || len(typed) > 0 {
		return h.typeMail(ctx, mail, typed, err)
	}
	if left := h.mayBeDeaf(); left > 0 { // a wake-up now may cost a turn for nothing
		h.later(left)
		return out
	}
	if h.waiterLives() { // it may be killed before it gives this, and nobody would say so
		h.alone = time.Time{}
		h.later(lookAgain)
		return out
	}
	if h.waits() {
		if h.alone.IsZero() {
			h.alone = time.Now()
		}
		if left := waiterBack - time.Since(h.alone); left > 0 {
			h.later(left)
			return out
		}
	}
	why, seen := h.blocked(ctx)
	if why == "" && seen.Input == "" && !h.wakes(mail) && h.fruitless(mail) {
		typed, err := h.typedMail(ctx, mail)
		return h.typeMail(ctx, mail, typed, err)
	}
	switch {
	case why == "" && (seen.Input == "" && !h.wakes(mail) || h.ours(seen.Input, adapter.WakeText)):
		// What stands there already was typed earlier and could not be sent then.
		why = h.wake(ctx, mail)
	case why == "" && seen.Input != "":
		why = "somebody has begun to type there"
	case why == "": // a wake-up is under way
		h.later(max(0, wakeAgain-time.Since(h.woken)) + time.Second)
	case seen.Activity == team.Working: // the next hook takes it
		why = ""
	}
	if why != "" {
		for i := range out {
			out[i].State, out[i].Reason = team.Held, why
		}
	}
	return out
}

// wakes reports whether a wake-up is under way: what waited when it was typed has
// not been fetched yet.
func (h *hooks) wakes(mail []team.Mail) bool {
	if time.Since(h.woken) >= wakeAgain {
		return false
	}
	for _, m := range mail {
		if h.wokenFor[m.ID] {
			return true
		}
	}
	return false
}

// waits reports whether the program is one that has a hook that waits for mail, and runs
// its hooks.
func (h *hooks) waits() bool {
	return adapter.Waits(h.f.Link.Agent, h.f.version())
}

// waiterLives reports whether a hook waits for mail.
func (h *hooks) waiterLives() bool {
	on, err := filelock.IsHeld(WaitLock(h.f.Bundle))
	return err == nil && on
}

// answerWithin is how long a dialog may take to go away after its key, drawWithin how
// long it may take to come up after its hook: until then the screen shows what was
// before it.
const (
	answerWithin = 3 * time.Second
	drawWithin   = 30 * time.Second
)

// Answer presses the key that answers the dialog of the last hook, where nothing
// else can: no hook has been called since, and what it asks for is what the screen
// shows. An answer that needs no key has gone out with its hook.
func (h *hooks) Answer(ctx context.Context, r team.Reply) error {
	var last SeenFile
	if err := ReadJSON(h.f.Bundle, seenFile, &last); err != nil && !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	ask := last.Seen.Ask
	if last.Generation != h.f.Generation || ask == nil || ask.ID != r.ID {
		if h.pressed(r.ID) {
			return nil
		}
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", h.f.AgentID, r.ID)
	}
	_, ok := h.s.(Keyer)
	var d adapter.Dialog
	if err := json.Unmarshal(ask.Input, &d); err != nil || !ok {
		return h.typist.Answer(ctx, r)
	}
	seen, err := h.f.look.see(ctx)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen cannot be read: %w", h.f.AgentID, err)
	}
	if seen.Activity == team.Idle && h.pressed(r.ID) {
		return nil
	}
	if seen.Activity == team.Idle && time.Since(last.Seen.At) > drawWithin {
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", h.f.AgentID, r.ID)
	}
	key := seen.Deny
	if r.Allow {
		key = seen.Allow
	}
	if seen.Activity != team.Waiting || seen.For != ask.For || key == "" || !seen.Shows(d.Shows) {
		h.later(lookAgain) // it may not be drawn yet
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen does not show the dialog for %q", h.f.AgentID, d.Shows).
			WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + h.f.Name)
	}
	if err := h.choose(ctx, r, seen, func(s adapter.Seen) bool { return s.Activity != team.Waiting || !s.Shows(d.Shows) }); err != nil {
		return err
	}
	h.report(team.Observation{Tier: team.TierScreen, Activity: team.Working, At: time.Now(), Source: "dialog answered", Settled: r.ID})
	return nil
}

// SetMode tells when: where hooks answer requests for permission they bring the mode
// with the answer, and what a hook was told of the mode counts.
func (h *hooks) SetMode(mode team.Mode) string {
	var last SeenFile
	is := h.f.Link.Mode
	if err := ReadJSON(h.f.Bundle, seenFile, &last); err == nil && last.Generation == h.f.Generation && last.Seen.Mode != "" {
		is = last.Seen.Mode
	}
	switch {
	case adapter.SameMode(h.f.Link, is, mode):
		return ""
	case adapter.Decides(h.f.Link.Agent, h.f.Link.StartedAs()):
		return adapter.WithItsNextRequest
	}
	return adapter.AtItsNextStart
}

// Close ends what the channel runs.
func (h *hooks) Close() {
	h.cancel()
	if h.given != nil {
		h.given.Close()
	}
	h.typist.Close()
	h.done.Wait()
}

// session is what Claude Code says of itself in sessions/PID.json, as far as it
// matters.
type session struct {
	PID        int    `json:"pid"`
	Session    string `json:"sessionId"`
	Status     string `json:"status"`
	WaitingFor string `json:"waitingFor"`
	UpdatedAt  int64  `json:"statusUpdatedAt"`
}

// endWithin is how long the hook of a turn's end may take to say how it has ended.
const endWithin = 5 * time.Second

// howItEnded waits until a hook has said how a turn has ended: that it failed is no
// word of the status, which comes first. Where somebody has interrupted it no hook does.
// It is false where the status has changed meanwhile.
func howItEnded(ctx context.Context, f Facts, written <-chan struct{}) bool {
	hook, leave, err := f.hub.listen(filepath.Join(string(f.Bundle), seenFile))
	if err != nil {
		return true
	}
	defer leave()
	late := time.NewTimer(endWithin)
	defer late.Stop()
	for {
		var last SeenFile
		if err := ReadJSON(f.Bundle, seenFile, &last); err != nil || last.Generation != f.Generation || last.Seen.Activity != team.Working {
			return true
		}
		select {
		case <-hook:
		case <-written:
			return false
		case <-late.C:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// watchSession reports the status that Claude Code writes for a plain session; it
// tells of an interrupt, of which no hook does.
func watchSession(ctx context.Context, f Facts, file string, r Report) {
	written, leave, err := f.hub.listen(file)
	for err != nil { // no session has ever written one here: look again after each hook
		hook, done, herr := f.hub.listen(filepath.Join(string(f.Bundle), seenFile))
		if herr != nil {
			return
		}
		if written, leave, err = f.hub.listen(file); err != nil { // not made meanwhile
			select {
			case <-hook:
			case <-ctx.Done():
			}
		}
		done()
		if ctx.Err() != nil {
			if err == nil {
				leave()
			}
			return
		}
	}
	defer leave()
	var last session
	for {
		var s session
		data, err := regular.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		fresh := err == nil && s.PID == f.PID && s != last
		if fresh && s.Status == "idle" && !howItEnded(ctx, f, written) {
			continue
		}
		if fresh {
			last = s
			o := team.Observation{Tier: team.TierChannel, At: time.Now(), Source: "sessions/" + filepath.Base(file), Evidence: []string{"status " + s.Status}}
			if s.UpdatedAt > 0 {
				o.At = time.UnixMilli(s.UpdatedAt)
			}
			switch s.Status {
			case "idle":
				o.Activity = team.Idle
			case "busy":
				o.Activity = team.Working
			case "waiting":
				o.Activity, o.For = team.Waiting, team.WaitPermission
				o.Evidence[0] += ": " + s.WaitingFor
			}
			if o.Activity != "" {
				r(o)
			}
		}
		select {
		case <-written:
		case <-ctx.Done():
			return
		}
	}
}
