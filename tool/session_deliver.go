package tool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/internal/sink"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// maxNotice is the maximum length of what an agent tells the person outside the team, in bytes.
const maxNotice = 2000

// DeliverSession turns on, or off, that a session may notify the person outside the team. Only a
// person may do that.
func (t *Team) DeliverSession(ctx context.Context, c Caller, key string, on bool) (ledger.Session, error) {
	if err := t.may(ctx, c, OpSessions); err != nil {
		return ledger.Session{}, err
	}
	if !c.Person {
		return ledger.Session{}, team.Errorf(team.CodeDenied, "%s is not a person: only a person decides what leaves the team", c.Name).WithReason(team.ReasonNotAPerson)
	}
	s, err := t.Session(ctx, key)
	if err != nil {
		return s, err
	}
	channel := team.ChannelInternal
	if on {
		channel = team.ChannelPerson
	}
	return t.as(c).UpdateSession(ctx, ledger.SessionPatch{Key: s.Key, Deliver: &on, Channel: &channel})
}

// NotifyPerson delivers a text of a session to the team's sinks, and returns the number of sinks
// that took it. Errors: CodeDenied not_delivered unless the session delivers and its channel is
// not internal; CodeLimit message_too_large; CodeNotFound sink_not_found without a sink that takes
// it; CodeUnavailable sink.
func (t *Team) NotifyPerson(ctx context.Context, session, text string) (int, error) {
	s, err := t.Ledger.Session(ctx, session)
	if err != nil {
		return 0, err
	}
	switch {
	case !sink.External(s.Deliver, s.Channel):
		return 0, team.Errorf(team.CodeDenied, "nothing of this conversation leaves the team").WithReason(team.ReasonNotDelivered).
			WithHint("the person turns it on: teamctl session deliver " + s.Key + " on")
	case strings.TrimSpace(text) == "":
		return 0, team.Errorf(team.CodeInvalid, "the text is empty").WithReason(team.ReasonInput)
	case len(text) > maxNotice:
		return 0, team.Errorf(team.CodeLimit, "the text has %d bytes, at most %d are taken", len(text), maxNotice).WithReason(team.ReasonMessageTooLarge)
	}
	m, err := t.Ledger.MemberBySession(ctx, s.Member)
	if err != nil {
		return 0, err
	}
	specs, err := t.Sinks(ctx)
	if err != nil {
		return 0, err
	}
	n := sink.Notice{
		Team: t.Layout.Key, What: "agent.notice", Kind: sink.Agent, ID: m.Name, Title: fmt.Sprintf("teamctl %s: %s", t.Layout.Key, m.Name), Text: text, At: time.Now().UnixMilli(),
	}
	took := 0
	var errs []error
	for _, spec := range specs {
		to, err := sink.Parse(spec)
		if err == nil && !to.Takes(n, time.Now()) {
			continue
		}
		sent := false
		if err == nil {
			sent, err = to.Deliver(ctx, run.BookOf(t.Layout), s.Deliver, s.Channel, n)
		}
		if err != nil {
			errs = append(errs, team.Errorf(team.CodeUnavailable, "%w", err).WithReason(team.ReasonSink))
		}
		if sent {
			took++
		}
	}
	if took == 0 && len(errs) == 0 {
		return 0, team.Errorf(team.CodeNotFound, "no sink takes it").WithReason(team.ReasonSinkNotFound).WithHint("teamctl notify ls")
	}
	return took, joinErrors(errs)
}
