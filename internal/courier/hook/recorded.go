package hook

import (
	"context"
	"slices"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/courier"
	"github.com/teamctl/teamctl/team"
)

// Settles returns true: the channel finds out what became of mail that a hook has given.
func (h *channel) Settles() bool { return true }

// recorded returns the outcomes of mail that a hook has given and that lacks evidence since. The
// next hook would find it in the transcript, but a long turn may call none, and an interrupt may
// end a turn without one. lost is the mail that neither the transcript nor the program's own queue
// has. If the program does not write hook output to its transcript, all given mail is lost once
// the agent is at rest. noted is the mail that the running process has in its conversation and its
// model has not answered.
func (h *channel) recorded(ctx context.Context, mail []team.Mail) (out []team.Outcome, lost, noted []team.Mail) {
	records := adapter.Records(h.f.Link.Agent, h.f.Version())
	var t adapter.Transcript
	c, err := courier.ReadConversation(h.f.Bundle, h.f.Session)
	if (records || adapter.RecordsAnswered(h.f.Link.Agent)) && err == nil && c.Transcript != "" {
		t = adapter.ReadTranscript(h.f.Link.Agent, courier.ReadTail(c.Transcript, courier.RecordTail, 0))
	}
	why := ""
	if !records {
		why, _ = h.Blocked(ctx)
	}
	was := readGiven(h.f.Bundle)
	// A process that is killed may lose what its model has not answered.
	has := func(id string, parts []string) bool {
		by := was.find(id)
		return by != nil && (by.Generation == h.f.Generation && t.Noted(parts...) || by.Conversation == c.ID && t.Kept(h.f.Version(), parts...))
	}
	for _, m := range mail {
		o := team.Outcome{ID: m.ID}
		switch parts := courier.Kernel(m); {
		case t.Holds(parts...):
			o.State, o.Evidence = team.Accepted, "the transcript of "+c.ID+" holds it"
		case has(m.ID, parts):
			o.Pending = true
			noted = append(noted, m)
		case why != "":
			o.Pending = true
		case t.Queued(parts...):
			o.Pending = true
		default:
			lost = append(lost, m)
		}
		out = append(out, o)
	}
	return out, lost, noted
}

// wakeForNoted wakes an agent at rest for mail that its conversation has and its model has not
// answered, as after an interrupt: once for each message, since a model that fails would be asked
// again and again.
func (h *channel) wakeForNoted(ctx context.Context, noted []team.Mail) {
	fresh := slices.DeleteFunc(slices.Clone(noted), func(m team.Mail) bool { return h.asked[m.ID] })
	if len(fresh) == 0 {
		return
	}
	before := h.woken
	h.wakeForLost(ctx, fresh)
	if h.woken.Equal(before) {
		return
	}
	if h.asked == nil {
		h.asked = map[string]bool{}
	}
	for _, m := range fresh {
		h.asked[m.ID] = true
	}
}

// wakeForLost types a wake-up for lost mail if the agent is at rest and no hook waits: the hook of
// that prompt gives the mail again. It types no further one until a hook has run.
func (h *channel) wakeForLost(ctx context.Context, lost []team.Mail) {
	alone := h.opened // mail given before that may still be in flight
	switch {
	case h.waiterLives(): // it gives the mail again itself
		h.alone = time.Time{}
		return
	case h.waits():
		if h.alone.IsZero() {
			h.alone = time.Now()
		}
		alone = h.alone
	}
	at, _ := h.heardAt()
	if time.Since(alone) < waiterBack || !h.deaf.IsZero() || h.wakes(lost) || !h.called.IsZero() && !at.After(h.called) {
		return
	}
	if why, seen := h.Blocked(ctx); why == "" && seen.Input == "" {
		h.wake(ctx, lost)
	}
}

// wake types a wake-up for mail, and returns why it cannot be typed.
func (h *channel) wake(ctx context.Context, mail []team.Mail) (why string) {
	began := time.Now()
	switch o := h.Send(ctx, adapter.WakeText); o.State {
	case team.Held:
		return o.Reason
	case team.Accepted:
		h.called, h.woken, h.wokenFor = began, time.Now(), map[string]bool{}
		for _, m := range mail {
			h.wokenFor[m.ID] = true
		}
		h.Later(wakeAgain) // it may have no effect
	default:
		h.Later(courier.LookAgain) // its Enter had no effect
	}
	return ""
}
