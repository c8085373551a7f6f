package hook

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// waitLock returns the path of the lock that the waiting hook holds.
func waitLock(b team.Bundle) string { return filepath.Join(string(b), "wait.lock") }

// wakeAgain is the minimum time between typed wake-ups.
const wakeAgain = 15 * time.Second

// channel is the supervisor's side of hooks. They fetch the mail themselves: at a tool boundary, at
// a prompt, or at the end of a turn. There is nothing to deliver; an idle agent without a waiting hook is woken
// by typing.
//
// If the hooks do not run, nothing would ever fetch the mail, and each wake-up would cost a turn.
// Then the mail itself is typed.
type channel struct {
	*courier.Typing
	deafness
	f      courier.Facts
	s      courier.Screen
	report courier.Report
	cancel context.CancelFunc
	done   sync.WaitGroup

	// Time of the last typed wake-up, and the mail that it was for. Used only by Deliver.
	woken    time.Time
	wokenFor map[string]bool
	asked    map[string]bool // the mail of the conversation that a wake-up was typed for
	// alone is since when no hook has waited for mail although one should; zero while one waits.
	alone time.Time
	// opened is when the channel was opened.
	opened time.Time
}

// waiterBack is how long a waiting hook may take to return after it has given mail: the next end
// of a turn starts it.
const waiterBack = 20 * time.Second

// Open opens the channel of a generation whose hooks fetch its mail. It is a courier.Opener.
func Open(_ context.Context, f courier.Facts, s courier.Screen, r courier.Report) (courier.Channel, error) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &channel{
		Typing: courier.NewTyping(f, s, r), deafness: deafness{patience: heardWithin},
		f: f, s: s, report: r, cancel: cancel, opened: time.Now(),
	}
	if last, ever, err := courier.ReadSeen(f.Bundle, f.Generation); err == nil && ever {
		h.done.Go(func() { r(last) })
	}
	if adapter.KeepsSessions(f.Link.Agent) && f.Link.Config != "" {
		file := filepath.Join(f.Link.Config, "sessions", strconv.Itoa(f.PID)+".json")
		h.done.Go(func() { watchSession(ctx, f, file, r) })
	}
	return h, nil
}

// Deliver wakes the agent if nothing else does, and looks for evidence about mail that hooks have
// given.
func (h *channel) Deliver(ctx context.Context, mail []team.Mail) []team.Outcome {
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
	out, lost, noted := h.recorded(ctx, given)
	switch {
	case len(waiting) > 0: // the agent is woken for that mail
		out = append(out, h.bring(ctx, waiting)...)
	case len(lost) > 0:
		h.wakeForLost(ctx, lost)
	default:
		h.wakeForNoted(ctx, noted)
	}
	at := map[string]int{}
	for i, m := range mail {
		at[m.ID] = i
	}
	slices.SortFunc(out, func(a, b team.Outcome) int { return at[a.ID] - at[b.ID] })
	return out
}

// bring makes the agent fetch waiting mail.
func (h *channel) bring(ctx context.Context, mail []team.Mail) []team.Outcome {
	out := make([]team.Outcome, len(mail))
	for i, m := range mail {
		out[i].ID = m.ID
	}
	if typed, err := h.typedMail(ctx, mail); err != nil || len(typed) > 0 {
		return h.typeMail(ctx, mail, typed, err)
	}
	if left := h.mayBeDeaf(); left > 0 { // a wake-up now may waste a turn
		h.Later(left)
		return out
	}
	if h.notYet != "" { // at rest in another look: its turn has just ended, and its first hook may still come
		h.LookLater()
		return courier.Held(mail, h.notYet)
	}
	if h.waiterLives() { // it may be killed before it gives the mail, without a notice
		h.alone = time.Time{}
		h.Later(courier.LookAgain)
		return out
	}
	if h.waits() {
		if h.alone.IsZero() {
			h.alone = time.Now()
		}
		if left := waiterBack - time.Since(h.alone); left > 0 {
			h.Later(left)
			return out
		}
	}
	why, seen := h.Blocked(ctx)
	if why == "" && seen.Input == "" && !h.wakes(mail) && h.fruitless(mail) {
		typed, err := h.typedMail(ctx, mail)
		return h.typeMail(ctx, mail, typed, err)
	}
	switch {
	case why == "" && (seen.Input == "" && !h.wakes(mail) || h.Ours(seen.Input, adapter.WakeText)):
		// The text in the box was typed earlier and could not be sent then.
		why = h.wake(ctx, mail)
	case why == "" && seen.Input != "":
		why = "somebody has begun to type there"
	case why == "": // a wake-up is pending
		h.Later(max(0, wakeAgain-time.Since(h.woken)) + time.Second)
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
func (h *channel) wakes(mail []team.Mail) bool {
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
func (h *channel) waits() bool {
	return adapter.Waits(h.f.Link.Agent, h.f.Version())
}

// waiterLives reports whether a hook is waiting for mail.
func (h *channel) waiterLives() bool {
	on, err := filelock.IsHeld(waitLock(h.f.Bundle))
	return err == nil && on
}

// drawWithin is how long a dialog may take to appear after its hook; until then the screen shows
// its former content.
const drawWithin = 30 * time.Second

// Answer presses the key that answers the dialog of the last hook if no other way exists: no hook
// has been called since, and the screen shows the tool call in question. An answer that needs no
// key has gone out with its hook.
func (h *channel) Answer(ctx context.Context, r team.Reply) error {
	last, ever, err := courier.ReadSeen(h.f.Bundle, h.f.Generation)
	if err != nil {
		return err
	}
	ask := last.Ask
	if !ever || ask == nil || ask.ID != r.ID {
		if h.Pressed(r.ID) {
			return nil
		}
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", h.f.AgentID, r.ID)
	}
	_, ok := h.s.(courier.Keyer)
	var d adapter.Dialog
	if err := json.Unmarshal(ask.Input, &d); err != nil || !ok {
		return h.Typing.Answer(ctx, r)
	}
	seen, err := h.f.See(ctx)
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen cannot be read: %w", h.f.AgentID, err)
	}
	if seen.Activity == team.Idle && h.Pressed(r.ID) {
		return nil
	}
	if seen.Activity == team.Idle && time.Since(last.At) > drawWithin {
		return team.Errorf(team.CodeNotFound, "answer %s: the dialog of %s is over", h.f.AgentID, r.ID)
	}
	key := seen.Deny
	if r.Allow {
		key = seen.Allow
	}
	if seen.Activity != team.Waiting || seen.For != ask.For || key == "" || !seen.Shows(d.Shows) {
		h.Later(courier.LookAgain) // it may not be drawn yet
		return team.Errorf(team.CodeUnavailable, "answer %s: its screen does not show the dialog for %q", h.f.AgentID, d.Shows).
			WithReason(team.ReasonNoDialog).WithHint("teamctl attach " + h.f.Name)
	}
	if err := h.Choose(ctx, r, seen, func(s adapter.Seen) bool { return s.Activity != team.Waiting || !s.Shows(d.Shows) }); err != nil {
		return err
	}
	h.report(team.Observation{Tier: team.TierScreen, Activity: team.Working, At: time.Now(), Source: "dialog answered", Settled: r.ID})
	return nil
}

// SetMode returns when the mode takes effect. Hooks that answer permission requests set the mode
// with their answer. The mode reported to a hook is the current one.
func (h *channel) SetMode(mode team.Mode) string {
	is := h.f.Link.Mode
	if last, _, err := courier.ReadSeen(h.f.Bundle, h.f.Generation); err == nil && last.Mode != "" {
		is = last.Mode
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
func (h *channel) Close() {
	h.cancel()
	if h.given != nil {
		h.given.Close()
	}
	h.Typing.Close()
	h.done.Wait()
}
