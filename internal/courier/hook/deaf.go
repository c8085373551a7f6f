package hook

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// heardWithin is how long an agent may be at rest before its first hook is heard, for programs
// that run a hook at their start.
const heardWithin = 20 * time.Second

// Number of wake-ups without effect which show that no hook runs: in a generation whose hooks were
// never heard, and in one whose hooks were heard before.
const (
	fruitlessNever = 1
	fruitlessSince = 2
)

// deafness is what a channel of hooks knows about a program that does not run them: a setting or a
// policy may disable them, and some programs skip a settings file silently. Used only by Deliver.
type deafness struct {
	patience time.Duration // heardWithin
	atRest   time.Time     // since when it is at rest without a hook heard; zero: it is not
	notYet   string        // why it is not at rest, while its first hook is awaited; "" if it is, or none is awaited
	deaf     time.Time     // since when its hooks are known not to run; zero: they may run
	called   time.Time     // time of the last typed wake-up
	wakeUps  int           // consecutive wake-ups without effect
	// given records the typed messages. Hooks skip them, since a hook may be heard while a message
	// is being typed. nil: none is typed.
	given *courier.Journal
}

// heardAt returns when a hook of this generation was heard last, and whether one ever was.
func (h *channel) heardAt() (at time.Time, ever bool) {
	last, ever, err := courier.ReadSeen(h.f.Bundle, h.f.Generation)
	return last.At, err == nil && ever
}

// typedMail returns the part of the mail to type: all of it if no hook runs; otherwise messages
// that a hook of a still unknown version may not take whole, and messages that were partly typed.
func (h *channel) typedMail(ctx context.Context, mail []team.Mail) (typed []team.Mail, err error) {
	if h.isDeaf(ctx) {
		return mail, h.keepFromHooks(mail)
	}
	begun, err := courier.Typed(h.f.Bundle, h.f.Generation)
	if err != nil {
		return nil, err
	}
	typed = slices.DeleteFunc(slices.Clone(mail), func(m team.Mail) bool { return !begun[m.ID] && !h.tooLong(m) })
	return typed, h.keepFromHooks(typed)
}

// keepFromHooks records that messages are typed.
func (h *channel) keepFromHooks(mail []team.Mail) (err error) {
	if len(mail) > 0 && h.given == nil {
		if h.given, err = courier.OpenJournal(string(h.f.Bundle), h.f.Generation); err != nil {
			return err
		}
	}
	for _, m := range mail {
		if _, err := h.given.Note(h.f.Generation, m.ID); err != nil {
			return err
		}
	}
	return nil
}

// tooLong reports whether some version of a program whose version is still unknown may cut off the
// message.
func (h *channel) tooLong(m team.Mail) bool {
	l := h.f.Link
	return l.Assumed != "" && !h.f.Version().Known() && !adapter.FitsAtEnd(l.Agent, h.f.Version(), m.Text+"\n\n")
}

// typeMail types some of the mail; the rest waits behind it.
func (h *channel) typeMail(ctx context.Context, mail, typed []team.Mail, err error) []team.Outcome {
	if err != nil {
		h.Later(courier.LookAgain)
		return courier.Held(mail, err.Error())
	}
	out := courier.Held(mail, "what is typed before it is not sent yet")
	for _, o := range h.Typing.Deliver(ctx, typed) {
		out[slices.IndexFunc(mail, func(m team.Mail) bool { return m.ID == o.ID })] = o
	}
	if len(typed) < len(mail) {
		h.LookLater()
	}
	return out
}

// isDeaf reports whether no hook of the program runs, as far as known.
func (h *channel) isDeaf(ctx context.Context) bool {
	at, ever := h.heardAt()
	h.notYet = ""
	switch {
	case !h.deaf.IsZero() && ever && at.After(h.deaf):
		h.deaf, h.atRest, h.wakeUps = time.Time{}, time.Time{}, 0
		h.sayDeaf(false)
		return false
	case !h.deaf.IsZero():
		return true
	case ever || !adapter.HooksAtStart(h.f.Link.Agent) || h.waiterLives():
		h.atRest = time.Time{}
		return false
	}
	if why, _ := h.Blocked(ctx); why != "" {
		h.atRest, h.notYet = time.Time{}, why
		return false
	}
	if h.atRest.IsZero() {
		h.atRest = time.Now()
	}
	if time.Since(h.atRest) < h.patience {
		return false
	}
	h.goDeaf()
	return true
}

// mayBeDeaf returns the time until it is clear whether the first hook comes; 0 if none is awaited.
func (h *channel) mayBeDeaf() time.Duration {
	if h.atRest.IsZero() {
		return 0
	}
	return max(h.patience-time.Since(h.atRest), time.Millisecond)
}

// fruitless counts a finished wake-up and reports whether it shows that no hook runs: its mail is
// still there, and no hook was heard since.
func (h *channel) fruitless(mail []team.Mail) bool {
	if h.called.IsZero() || !slices.ContainsFunc(mail, func(m team.Mail) bool { return h.wokenFor[m.ID] }) {
		return false
	}
	at, ever := h.heardAt()
	if ever && at.After(h.called) {
		h.wakeUps = 0
		return false
	}
	h.wakeUps++
	if ever && h.wakeUps < fruitlessSince || h.wakeUps < fruitlessNever {
		return false
	}
	h.goDeaf()
	return true
}

func (h *channel) goDeaf() {
	h.deaf = time.Now()
	h.f.Log.Warn("no hook is heard: its mail is typed", "member", h.f.Name, "generation", h.f.Generation)
	h.sayDeaf(true)
}

func (h *channel) sayDeaf(deaf bool) {
	h.report(team.Observation{Tier: team.TierScreen, At: time.Now(), Source: "hooks", NoHooks: &deaf})
}
