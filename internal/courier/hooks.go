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
	seenFile = "seen.json" // the last observation of a hook
	waitLock = "wait.lock" // held by the waiting hook
)

// SeenFile is the observation of a member's newest hook, for the next supervisor.
type SeenFile struct {
	Generation string           `json:"generation"`
	Seen       team.Observation `json:"seen"`
}

// WriteSeen replaces the SeenFile of the bundle.
func WriteSeen(b team.Bundle, s SeenFile) error { return WriteJSON(b, seenFile, s) }

// WaitLock returns the path of the lock that the waiting hook holds.
func WaitLock(b team.Bundle) string { return filepath.Join(string(b), waitLock) }

// wakeAgain is the minimum time between typed wake-ups.
const wakeAgain = 15 * time.Second

// hooks is the channel of agents whose hooks fetch the mail: at a tool boundary, at a prompt, or
// at the end of a turn. There is nothing to deliver; an idle agent without a waiting hook is woken
// by typing.
//
// If the hooks do not run, nothing would ever fetch the mail, and each wake-up would cost a turn.
// Then the mail itself is typed.
type hooks struct {
	typing
	deafness
	cancel context.CancelFunc
	done   sync.WaitGroup

	// Time of the last typed wake-up, and the mail that it was for. Used only by Deliver.
	woken    time.Time
	wokenFor map[string]bool
	// alone is since when no hook has waited for mail although one should; zero while one waits.
	alone time.Time
	// opened is when the channel was opened.
	opened time.Time
}

// waiterBack is how long a waiting hook may take to return after it has given mail: the next end
// of a turn starts it.
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

// Deliver wakes the agent if nothing else does, and looks for evidence about mail that hooks have
// given.
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
	case len(waiting) > 0: // the agent is woken for that mail
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

// bring makes the agent fetch waiting mail.
func (h *hooks) bring(ctx context.Context, mail []team.Mail) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i].ID = m.ID
	}
	if typed, err := h.typedMail(ctx, mail); err != nil || len(typed) > 0 {
		return h.typeMail(ctx, mail, typed, err)
	}
	if left := h.mayBeDeaf(); left > 0 { // a wake-up now may waste a turn
		h.later(left)
		return out
	}
	if h.waiterLives() { // it may be killed before it gives the mail, without a notice
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
		// The text in the box was typed earlier and could not be sent then.
		why = h.wake(ctx, mail)
	case why == "" && seen.Input != "":
		why = "somebody has begun to type there"
	case why == "": // a wake-up is pending
		h.later(max(0, wakeAgain-time.Since(h.woken)) + time.Second)
	case seen.Activity == team.Working: // the next hook takes the mail
		why = ""
	}
	if why != "" {
		for i := range out {
			out[i].State, out[i].Reason = team.Held, why
		}
	}
	return out
}

// wakes reports whether a wake-up is pending: the mail that it was typed for has not been fetched
// yet.
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

// waits reports whether the program has a hook that waits for mail, and runs its hooks.
func (h *hooks) waits() bool {
	return adapter.Waits(h.f.Link.Agent, h.f.version())
}

// waiterLives reports whether a hook is waiting for mail.
func (h *hooks) waiterLives() bool {
	on, err := filelock.IsHeld(WaitLock(h.f.Bundle))
	return err == nil && on
}

// answerWithin is how long a dialog may take to close after its key, drawWithin how long it may
// take to appear after its hook; until then the screen shows its former content.
const (
	answerWithin = 3 * time.Second
	drawWithin   = 30 * time.Second
)

// Answer presses the key that answers the dialog of the last hook if no other way exists: no hook
// has been called since, and the screen shows the tool call in question. An answer that needs no
// key has gone out with its hook.
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

// SetMode returns when the mode takes effect. Hooks that answer permission requests set the mode
// with their answer. The mode reported to a hook is the current one.
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

// Close stops the channel's goroutines.
func (h *hooks) Close() {
	h.cancel()
	if h.given != nil {
		h.given.Close()
	}
	h.typist.Close()
	h.done.Wait()
}

// session has the used fields of sessions/PID.json, in which Claude Code describes itself.
type session struct {
	PID        int    `json:"pid"`
	Session    string `json:"sessionId"`
	Status     string `json:"status"`
	WaitingFor string `json:"waitingFor"`
	UpdatedAt  int64  `json:"statusUpdatedAt"`
}

// endWithin is how long the hook at the end of a turn may take to report how the turn ended.
const endWithin = 5 * time.Second

// howItEnded waits until a hook has reported how a turn ended: the status comes first and does not
// say that the turn failed. No hook reports an interrupted turn. It returns false if the status
// has changed meanwhile.
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

// watchSession reports the status that Claude Code writes for an ordinary session; it shows
// interrupts, which no hook reports.
func watchSession(ctx context.Context, f Facts, file string, r Report) {
	written, leave, err := f.hub.listen(file)
	for err != nil { // no session has ever written one in this directory: try again after each hook
		hook, done, herr := f.hub.listen(filepath.Join(string(f.Bundle), seenFile))
		if herr != nil {
			return
		}
		if written, leave, err = f.hub.listen(file); err != nil { // the directory is still missing
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
