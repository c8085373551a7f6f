package agent

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Counter is a Conversation that knows its usage since it began.
type Counter interface {
	Usage() team.Usage
}

// Quota is access to the team's budgets, usage and limits.
type Quota interface {
	// Blocked returns why a session of the member gets no prompt now, and when it may get one
	// without a change of the ledger, zero if that is not known; nil: it gets one.
	Blocked(ctx context.Context, session string) (why error, until time.Time, err error)
	// Reached records a limit that the agent has reached.
	Reached(ctx context.Context, at time.Time, limit *team.LimitReached) error
	// Used reports the usage of the conversation, and returns whether it is recorded. It is called
	// until it is.
	Used(ctx context.Context, u team.Usage) (noted bool)
}

// overLimit is the state of a conversation stopped by a usage limit.
type overLimit struct {
	until  time.Time
	untold *team.LimitReached // not reported to the team yet
	at     time.Time          // when it was reached
}

// limits is a worker whose model has budgets and limits.
type limits struct {
	*worker
	quota   Quota
	stopped *overLimit        // a limit has stopped it; nil: none
	heldFor map[string]string // reason by held message
	gave    map[string]bool   // keys of mail that was sent, and may have been refused
}

func newLimits(w *worker, q Quota) limits {
	return limits{worker: w, quota: q, heldFor: map[string]string{}, gave: map[string]bool{}}
}

// limited handles the limit that has ended a turn. The member is limited, not idle, until the
// limit ends or the team continues.
func (t *limits) limited(ctx context.Context, limit *team.LimitReached) {
	t.stopped = &overLimit{until: limit.Until, untold: limit, at: t.env.Now()}
	activity, to, why := team.Limited, int64(0), "limited: "+limit.Words
	if !limit.Until.IsZero() {
		to = limit.Until.UnixMilli()
	}
	t.showAs(ctx, activity, to, why)
	t.tellLimit(ctx)
}

// showAs writes the member's activity, with the data of a limit.
func (t *limits) showAs(ctx context.Context, a team.Activity, to int64, why string) {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	err := t.few(c, func() error {
		_, err := t.env.Ledger.UpdateMember(c, ledger.MemberPatch{SessionKey: t.id.Session, Activity: &a, LimitedTo: &to, Reason: &why})
		return err
	})
	if err != nil {
		t.out.line("%s: not shown as %s: %v", t.id.AgentID, a, err)
		t.again = time.Second
		return
	}
	t.activity = a
}

// tellLimit reports a limit to the team, until that succeeds.
func (t *limits) tellLimit(ctx context.Context) {
	s := t.stopped
	if s == nil || s.untold == nil || t.quota == nil {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	if err := t.few(c, func() error { return t.quota.Reached(c, s.at, s.untold) }); err != nil {
		t.out.line("%s: its usage limit is not noted: %v", t.id.AgentID, err)
		t.again = time.Second
		return
	}
	s.untold = nil
}

// blocked reports whether no prompt may be sent now; waiting mail is marked with the reason.
// Otherwise the conversation is no longer stopped: it is working if there is a prompt.
func (t *limits) blocked(ctx context.Context, prompt bool, waits []letter) bool {
	why, _ := t.inTheWay(ctx, t.id.Session)
	if why == "" {
		t.goOn(ctx, prompt)
		return false
	}
	for _, l := range waits {
		if l.known && !t.gave[l.entry.Key()] && t.heldFor[l.msg.ID] != why {
			t.hold(ctx, l, why)
		}
	}
	return true
}

// inTheWay returns why a session gets no prompt now, and when to ask again although nothing has
// changed, zero for never; "": it gets one.
func (t *limits) inTheWay(ctx context.Context, session string) (why string, until time.Time) {
	if t.quota == nil {
		return "", until
	}
	t.tellLimit(ctx)
	if t.stopped != nil && t.stopped.untold != nil {
		return t.stopped.untold.Error(), t.env.Now() // its own limit counts before the team knows it
	}
	blocks, until, err := t.quota.Blocked(ctx, session)
	switch {
	case err != nil:
		t.out.line("%s: budgets and limits: %v", t.id.AgentID, err)
		t.again = time.Second
		return "its budgets and limits cannot be read", t.env.Now()
	case blocks != nil:
		return blocks.Error(), until
	}
	return "", time.Time{}
}

// hold records why a message waits. A message that its poster has not marked as mailed yet is
// handled again after that.
func (t *limits) hold(ctx context.Context, l letter, why string) {
	moved, err := t.env.Ledger.Mark(ctx, ledger.DeliveryMark{
		MessageID: l.msg.ID, Recipient: t.id.Name, State: team.Held, Reason: why,
		IfStates: []team.DeliveryState{team.Mailed, team.Held},
	})
	if err == nil && moved {
		t.heldFor[l.msg.ID] = why
	}
}

// goOn ends the stop of the conversation.
func (t *limits) goOn(ctx context.Context, prompt bool) {
	clear(t.heldFor)
	if t.stopped == nil {
		return
	}
	t.stopped = nil
	switch {
	case t.activity != team.Limited:
	case prompt:
		t.showAs(ctx, team.Working, 0, "")
	default:
		t.showAs(ctx, team.Idle, 0, "")
	}
}

// rest sets the activity of a conversation without a prompt: limited until the end of a limit,
// then idle.
func (t *limits) rest(ctx context.Context) {
	if s := t.stopped; s != nil {
		left := s.until.Sub(t.env.Now())
		switch {
		case t.activity != team.Limited:
		case s.until.IsZero():
			return
		case left > 0:
			if t.again == 0 || left < t.again {
				t.again = left
			}
			return
		default:
			t.showAs(ctx, team.Idle, 0, "")
		}
	}
	t.idle(ctx)
}

// count reports the usage, until it is recorded.
func (t *talk) count(ctx context.Context) {
	c, ok := t.conv.(Counter)
	if !ok || t.quota == nil {
		return
	}
	if u := c.Usage(); u != t.counted && t.quota.Used(ctx, u) {
		t.counted = u
	}
}
