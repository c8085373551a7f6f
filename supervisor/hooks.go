package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const (
	// maxAsking is how many hooks are asked at once.
	maxAsking = 4
	// maxIdleBlocks is how often in a row a hook may keep an agent from being idle:
	// one that always says the same would never let it rest.
	maxIdleBlocks = 8
	// stopsBack is how many events a new supervisor looks back for stops that the
	// one before did not live to carry out.
	stopsBack = 5000
)

// ruled asks the hooks about an event, beside the loop, and carries out the stops
// that hooks have asked for, whoever asked them.
func (s *Supervisor) ruled(e ledger.Event) {
	in := hooks.Input{}
	name := e.ID
	switch {
	case e.What == "hook.stop":
		s.stopForHook(e)
		return
	case e.What == "task.claimed":
		if m := s.find(e.Who); m != nil {
			m.idleBlocks = 0
		}
		return
	case e.What == "member.activity" && e.After == string(team.Idle):
		in.Event = hooks.TeammateIdle
	case e.What == "member.state" && e.After == string(team.Exited):
		in.Event = hooks.TeammateExited
		var d struct{ ExitText, Reason string }
		_ = json.Unmarshal(e.Data, &d) // an exit without details is one all the same
		in.Exit, in.Reason = d.ExitText, d.Reason
	case acceptedNow(e):
		in.Event, in.MessageID, name = hooks.MessageAccepted, e.ID, e.Who
	default:
		return
	}
	m := s.find(name)
	if m == nil {
		return
	}
	row, blocks := m.row, m.idleBlocks
	in.About(row)
	s.step(func(ctx context.Context) message {
		select {
		case s.asking <- struct{}{}:
			defer func() { <-s.asking }()
		case <-ctx.Done():
			return nil
		}
		blocked, err := s.askHooks(ctx, in, row, blocks)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("ask the hooks", "hook", in.Event, "member", row.Name, "err", err)
			if err := s.hookFailed(ctx, in, err.Error()); err != nil {
				s.log.Warn("log a failed hook", "err", err)
			}
		}
		if in.Event == hooks.TeammateIdle {
			return idleAsked{row.SessionKey, blocked}
		}
		return nil
	})
}

// acceptedNow reports an event of a message that its agent has taken just now.
func acceptedNow(e ledger.Event) bool {
	has := func(s string) bool {
		return s == string(team.Accepted) || s == string(team.Read) || s == string(team.Answered)
	}
	return e.What == "message."+e.After && has(e.After) && !has(e.Before)
}

// askHooks asks, and sends the feedback of a block to whom it is for.
func (s *Supervisor) askHooks(ctx context.Context, in hooks.Input, row ledger.Member, blocks int) (blocked bool, err error) {
	asker := hooks.Asker{Layout: s.cfg.Layout, Ledger: s.cfg.Ledger, Env: s.cfg.Env}
	if has, err := asker.Has(ctx, in.Event); err != nil || !has {
		return false, err
	}
	if in.MessageID != "" {
		msg, err := s.cfg.Ledger.Message(ctx, in.MessageID)
		if err != nil {
			return false, err
		}
		in.MessageKind, in.MessageFrom, in.MessageText = string(msg.Kind), msg.From, msg.Text
		if msg.Summary == feedbackSummary(in.Event) {
			return false, nil // what a hook said is not asked about again
		}
	}
	v, err := asker.Ask(ctx, in)
	if err != nil || !v.Block {
		return false, err
	}
	if blocks >= maxIdleBlocks && in.Event == hooks.TeammateIdle {
		return true, s.hookFailed(ctx, in, fmt.Sprintf("it has blocked %d times in a row: the agent is left idle", blocks))
	}
	post := ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: row.Name, Text: v.Feedback, Summary: feedbackSummary(in.Event)}
	if in.Event == hooks.TeammateExited { // it reads nothing any more
		post.Kind, post.From, post.To = team.KindError, row.Name, team.LeadName
	}
	_, _, err = s.mailer().Post(ctx, post)
	return true, err
}

// feedbackSummary marks a message as what a hook said.
func feedbackSummary(k hooks.Kind) string {
	return inbox.Summary("", "feedback of the hook "+string(k))
}

func (s *Supervisor) hookFailed(ctx context.Context, in hooks.Input, why string) error {
	data, err := json.Marshal(hooks.Told{Hook: in.Event, Text: why})
	if err != nil {
		return err
	}
	_, err = s.cfg.Ledger.Event(ctx, ledger.Event{What: "hook.failed", ID: in.Teammate, After: why, Data: data})
	return err
}

// idleAsked is what the hooks said of an agent's idleness.
type idleAsked struct {
	session string
	blocked bool
}

func (i idleAsked) apply(s *Supervisor) {
	m := s.members[i.session]
	switch {
	case m == nil:
	case i.blocked:
		m.idleBlocks++
	default:
		m.idleBlocks = 0
	}
}

// stopForHook stops a member because a hook said so, if it has not been started since.
func (s *Supervisor) stopForHook(e ledger.Event) {
	m := s.find(e.ID)
	if m == nil || m.row.Desired != team.WantRunning || m.row.StartedAt > e.At {
		return
	}
	s.log.Info("a hook stops a member", "member", m.row.Name, "reason", e.After)
	s.askStop(m, StopIn{Reason: e.After, From: team.LeadName}, func(out Stopped) {
		s.log.Info("stopped by a hook", "member", out.Name, "outcome", out.Outcome)
	})
}

// stopsLeft carries out the stops that the supervisor before this one did not.
func (s *Supervisor) stopsLeft() {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	events, err := s.cfg.Ledger.Events(ctx, max(0, s.lastSeq-stopsBack), 0, ledger.EventFilter{What: "hook.stop"})
	if err != nil {
		s.log.Warn("look for stops of hooks", "err", err)
		return
	}
	for _, e := range events {
		if e.Seq <= s.lastSeq {
			s.stopForHook(e)
		}
	}
}
