package courier

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// heardWithin is how long an agent may be at rest before the first of its hooks is heard,
// of those that run one when they start.
const heardWithin = 20 * time.Second

// Wake-ups without effect that show that no hook runs: of a generation none of whose hooks
// was ever heard, and of one whose hooks once were.
const (
	fruitlessNever = 1
	fruitlessSince = 2
)

// deafness is what a channel of hooks knows of a program that does not run them: a setting
// or a policy may turn them off, and some programs skip a settings file without a word. It
// is used by Deliver only.
type deafness struct {
	patience time.Duration // heardWithin
	atRest   time.Time     // since when it is seen at rest and no hook was heard; zero: it is not
	deaf     time.Time     // since when its hooks are known not to run; zero: they may
	called   time.Time     // when the last wake-up was typed
	wakeUps  int           // typed in a row without effect
	// given are the messages that are typed: hooks leave them alone, for they may be heard
	// while one is being typed. nil: none is.
	given *Journal
}

// heardAt is when a hook of this generation was heard last, and whether one ever was.
func (h *hooks) heardAt() (at time.Time, ever bool) {
	var last SeenFile
	err := ReadJSON(h.f.Bundle, seenFile, &last)
	return last.Seen.At, err == nil && last.Generation == h.f.Generation
}

// typedMail returns what of the mail is to be typed: all of it where no hook runs, what no
// hook of a version that is not known yet may take whole, and what was begun with.
func (h *hooks) typedMail(ctx context.Context, mail []team.Mail) (typed []team.Mail, err error) {
	if h.isDeaf(ctx) {
		return mail, h.keepFromHooks(mail)
	}
	begun, err := Typed(h.f.Bundle, h.f.Generation)
	if err != nil {
		return nil, err
	}
	typed = slices.DeleteFunc(slices.Clone(mail), func(m team.Mail) bool { return !begun[m.ID] && !h.tooLong(m) })
	return typed, h.keepFromHooks(typed)
}

// keepFromHooks notes that messages are typed.
func (h *hooks) keepFromHooks(mail []team.Mail) (err error) {
	if len(mail) > 0 && h.given == nil {
		if h.given, err = OpenJournal(string(h.f.Bundle), h.f.Generation); err != nil {
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

// tooLong reports that a message may be cut off by some version of a program that was late
// with its own.
func (h *hooks) tooLong(m team.Mail) bool {
	l := h.f.Link
	return l.Assumed != "" && !h.f.version().Known() && !adapter.FitsAtEnd(l.Agent, h.f.version(), m.Text+"\n\n")
}

// typeMail types some of the mail; the rest waits behind it.
func (h *hooks) typeMail(ctx context.Context, mail, typed []team.Mail, err error) []team.Outcome {
	if err != nil {
		h.later(lookAgain)
		return Held(mail, err.Error())
	}
	out := Held(mail, "what is typed before it is not sent yet")
	for _, o := range h.typing.Deliver(ctx, typed) {
		out[slices.IndexFunc(mail, func(m team.Mail) bool { return m.ID == o.ID })] = o
	}
	if len(typed) < len(mail) {
		h.later(lookAgain)
	}
	return out
}

// isDeaf reports whether no hook of the program runs, as far as that is known.
func (h *hooks) isDeaf(ctx context.Context) bool {
	at, ever := h.heardAt()
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
	if why, _ := h.blocked(ctx); why != "" {
		h.atRest = time.Time{}
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

// mayBeDeaf is how long it takes until it shows whether the first hook comes; 0 where that
// is not waited for.
func (h *hooks) mayBeDeaf() time.Duration {
	if h.atRest.IsZero() {
		return 0
	}
	return max(h.patience-time.Since(h.atRest), time.Millisecond)
}

// fruitless counts a wake-up that is over and reports whether it has shown that no hook
// runs: the mail that it was for is still there, and no hook was heard since.
func (h *hooks) fruitless(mail []team.Mail) bool {
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

func (h *hooks) goDeaf() {
	h.deaf = time.Now()
	h.f.Log.Warn("no hook is heard: its mail is typed", "member", h.f.Name, "generation", h.f.Generation)
	h.sayDeaf(true)
}

func (h *hooks) sayDeaf(deaf bool) {
	h.report(team.Observation{Tier: team.TierScreen, At: time.Now(), Source: "hooks", NoHooks: &deaf})
}
