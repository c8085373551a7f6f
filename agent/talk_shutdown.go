package agent

import (
	"context"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// goOnAfter follows a shutdown request in a prompt: the request has ended the turn that was
// running.
const goOnAfter = "\n\nIf you approve, leave your work so that another can take it over, and end your turn. " +
	"If you reject, go on with what you were doing."

// shutdowns returns the shutdown requests among letters that the model must answer. It rejects
// those from unauthorised senders; stop means that one was approved here, for a model that cannot
// be asked.
func (t *talk) shutdowns(ctx context.Context, letters []letter) (ask []letter, stop bool) {
	for _, l := range letters {
		if l.done || !l.known || l.msg.Kind != team.KindShutdownRequest {
			continue
		}
		if l.commands && t.askable(ctx) {
			ask = append(ask, l)
			continue
		}
		stop = t.shutdown(ctx, l) || stop
		t.receipt(ctx, l, evidence)
		t.handled[l.entry.Key()] = true
	}
	return ask, stop
}

// askable reports whether the model can be asked. One that has had no prompt has nothing to
// finish, and one stopped by a limit gets no prompt.
func (t *talk) askable(ctx context.Context) bool {
	if !t.prompted || t.stopped != nil {
		return false
	}
	if t.quota == nil {
		return true
	}
	why, _, err := t.quota.Blocked(ctx, t.id.Session)
	return why == nil && err == nil
}

// approved reports whether the member has approved one of the shutdown requests of a turn, with
// its tool. Without an answer it continues until the supervisor's deadline.
func (t *talk) approved(ctx context.Context, given []letter) bool {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	for _, l := range given {
		if !l.known || l.msg.Kind != team.KindShutdownRequest {
			continue
		}
		var answers []ledger.Message
		err := t.few(c, func() (err error) {
			answers, err = t.env.Ledger.Messages(c, ledger.MessageFilter{RequestID: l.msg.RequestID, From: t.id.Name, Parent: l.msg.ID})
			return err
		})
		if err != nil {
			t.out.line("%s: the answer to shutdown request %s cannot be read: %v", t.id.AgentID, l.msg.RequestID, err)
			continue
		}
		if slices.ContainsFunc(answers, func(m ledger.Message) bool { return m.Kind == team.KindShutdownApproved }) {
			t.out.line("%s: shutdown approved", t.id.AgentID)
			return true
		}
	}
	return false
}
