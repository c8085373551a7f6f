package services

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// A program that has joined has no process started by teamctl: it is asked by mail to leave, and
// is removed from the roster if it does not answer by the deadline. The deadline is part of the
// request, so it applies to whatever reads the request: the command that waits for the answer, or
// a supervisor, also a later one.

// joinedDeadline is the payload of a shutdown request to a program that has joined.
type joinedDeadline struct {
	Deadline int64 `json:"deadline"` // Unix milliseconds
}

// JoinedRequest returns the message that asks a program that has joined to leave by a deadline.
func JoinedRequest(from string, m ledger.Member, reason string, deadline time.Time) (ledger.NewMessage, error) {
	msg, err := ShutdownRequest(from, m.Name, reason, "")
	if err != nil {
		return msg, err
	}
	msg.ToSession = m.SessionKey
	msg.Payload, err = json.Marshal(joinedDeadline{deadline.UnixMilli()})
	return msg, err
}

// JoinedAnswer returns the answer of a program that has joined to a shutdown request: approved,
// rejected with a reason, or "" for none yet.
func JoinedAnswer(ctx context.Context, led *ledger.Ledger, of ledger.Member, request string) (outcome, reason string, err error) {
	answers, err := led.Messages(ctx, ledger.MessageFilter{RequestID: request, From: of.Name})
	if err != nil {
		return "", "", err
	}
	for _, a := range answers {
		switch a.Kind {
		case team.KindShutdownApproved:
			return team.StopApproved, "", nil
		case team.KindShutdownRejected:
			if f, ok := inbox.Parse(a.Text); ok {
				if r, ok := f.(inbox.ShutdownRejected); ok {
					reason = r.Reason
				}
			}
			return team.StopRejected, reason, nil
		default: // another message with the same id
		}
	}
	return "", "", nil
}

// Leave removes a program that has joined from the roster and notifies the lead; by is who removes
// it, the program itself or another member. It is not an error if the program has left meanwhile.
func Leave(ctx context.Context, m mail.Mailer, of ledger.Member, by string) error {
	f := inbox.TeammateTerminated{
		Message: fmt.Sprintf("Teammate %q has left the team.", of.Name), AgentID: of.AgentID, Status: inbox.NoticeCompleted,
	}
	if by != of.Name {
		f.Status, f.Message = inbox.NoticeKilled, inbox.NoticeMessage(inbox.NoticeKilled, of.Name, "")
	}
	text, err := inbox.Encode(f)
	if err != nil {
		return err
	}
	_, ds, err := m.Ledger.Leave(ctx, of.SessionKey, ledger.Notice{Kind: f.Kind(), Text: text, Summary: inbox.Summary("", f.Message)})
	if err != nil && team.ReasonOf(err) != team.ReasonMemberRemoved {
		return err
	}
	m.Deliver(ctx, ds)
	if err := os.Remove(m.Layout.Bundle(of.Name).Token()); err != nil && !os.IsNotExist(err) {
		return team.Errorf(team.CodeUnavailable, "remove the token of %s: %w", of.Name, err)
	}
	return publish.Config(ctx, m.Layout, m.Ledger)
}

// Joined removes the programs from the roster that were asked to leave and have not answered by
// the deadline.
type Joined struct {
	loop.Quiet
	team  loop.Team
	wall  func() time.Time
	looks int // running
}

// NewJoined returns the service; wall is the clock of deadlines.
func NewJoined(t loop.Team, wall func() time.Time) *Joined { return &Joined{team: t, wall: wall} }

// Ready checks the requests made under an earlier supervisor.
func (j *Joined) Ready() { j.look() }

// Asked is called when a program may have been asked to leave.
func (j *Joined) Asked() { j.Bus.After(joinedTimer, time.Millisecond, j.look) }

// Jumped checks the deadlines by the time of day.
func (j *Joined) Jumped(time.Duration) {
	if j.Bus.Armed(joinedTimer) {
		j.Asked()
	}
}

// Busy reports whether an answer is pending.
func (j *Joined) Busy() bool { return j.looks > 0 || j.Bus.Armed(joinedTimer) }

// look removes programs whose deadline has passed, and arms a timer for the next one.
func (j *Joined) look() {
	j.looks++
	j.Bus.Go("look at joined programs", func(ctx context.Context) func() {
		next, err := j.expire(ctx)
		if err != nil && ctx.Err() == nil {
			j.team.Log.Warn("look at the shutdown requests of joined programs", "err", err)
			next = time.Second
		}
		return func() {
			if j.looks--; !j.Bus.Armed(joinedTimer) { // otherwise a request came meanwhile
				j.Bus.After(joinedTimer, next, j.look)
			}
		}
	})
}

const joinedTimer = "joined"

// expire checks all requests once; next is the time until the next deadline, 0 for none.
func (j *Joined) expire(ctx context.Context) (next time.Duration, err error) {
	members, err := j.team.Ledger.Members(ctx, false)
	if err != nil {
		return 0, err
	}
	mailer := j.team.Mailer()
	for _, m := range members {
		if !team.KindOf(m.Spec.Agent).External {
			continue
		}
		requests, err := j.team.Ledger.Messages(ctx, ledger.MessageFilter{Kind: team.KindShutdownRequest, Recipient: m.Name})
		if err != nil {
			return 0, err
		}
		for _, r := range requests {
			var by joinedDeadline
			if json.Unmarshal(r.Payload, &by) != nil || by.Deadline == 0 {
				continue
			}
			if d, err := j.team.Ledger.Delivery(ctx, r.ID, m.Name); err != nil || d.Session != m.SessionKey {
				continue // from an earlier member of this name
			}
			outcome, _, err := JoinedAnswer(ctx, mailer.Ledger, m, r.RequestID)
			if err != nil {
				return 0, err
			}
			if outcome != "" {
				continue
			}
			if left := time.UnixMilli(by.Deadline).Sub(j.wall()); left > 0 {
				if left += time.Millisecond; next == 0 || left < next {
					next = left
				}
				continue
			}
			j.team.Log.Info("a joined program has not answered its shutdown request", "member", m.Name)
			if err := Leave(ctx, mailer, m, r.From); err != nil {
				return 0, err
			}
			break
		}
	}
	return next, nil
}
