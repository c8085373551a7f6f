package supervisor

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Approved is the intent (see [ledger.Intent]) of an approval that lets members be
// spawned.
type Approved struct {
	Spawn SpawnIn `json:"spawn"`
	Count int     `json:"count"`
}

// carrying is an intent that is being carried out.
type carrying struct {
	waiting []func(ledger.Outcome, error)
}

// CarryOut does what an approval lets happen, if that was not done before, and returns
// what came of it: whoever asks, and however often, it happens once. ctx bounds only
// the waiting. An approval without an intent is CodeNotFound.
func (s *Supervisor) CarryOut(ctx context.Context, approval int64) (ledger.Outcome, error) {
	return ask(ctx, s, func(reply func(ledger.Outcome, error)) { s.carryOut(approval, reply) })
}

func (s *Supervisor) carryOut(approval int64, reply func(ledger.Outcome, error)) {
	c := s.carrying[approval]
	if c == nil {
		c = &carrying{}
		s.carrying[approval] = c
		s.step(func(ctx context.Context) message {
			out, err := s.carry(ctx, approval)
			return carried{approval, out, err}
		})
	}
	if reply != nil {
		c.waiting = append(c.waiting, reply)
	}
}

// carried is the end of an attempt. One that could not be noted is made again: what it
// has spawned is found then and not spawned twice.
type carried struct {
	approval int64
	out      ledger.Outcome
	err      error
}

func (c carried) apply(s *Supervisor) {
	waiting := s.carrying[c.approval].waiting
	delete(s.carrying, c.approval)
	for _, reply := range waiting {
		reply(c.out, c.err)
	}
	if c.err != nil && !team.IsCode(c.err, team.CodeNotFound) {
		s.log.Warn("carry out an approval", "id", c.approval, "err", c.err)
		s.after("intents", s.policy.Repair, openIntents{})
	}
}

// openIntents takes up what was approved and is not done: by somebody who was killed
// meanwhile, or a moment ago.
type openIntents struct{}

func (openIntents) apply(s *Supervisor) {
	delete(s.timers, "intents")
	s.step(func(ctx context.Context) message {
		open, err := s.cfg.Ledger.Intents(ctx)
		if err != nil {
			s.log.Warn("read what was approved", "err", err)
			return nil
		}
		return intentsFound(open)
	})
}

type intentsFound []ledger.Intent

func (found intentsFound) apply(s *Supervisor) {
	for _, i := range found {
		s.carryOut(i.Approval, nil)
	}
}

// carry does one intent and notes what came of it, outside the loop. What our own end
// cuts short stays open.
func (s *Supervisor) carry(ctx context.Context, approval int64) (ledger.Outcome, error) {
	i, err := s.cfg.Ledger.Intent(ctx, approval)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if i.Outcome != nil {
		return *i.Outcome, nil
	}
	var do Approved
	var names []string
	if err = json.Unmarshal(i.What, &do); err != nil {
		err = team.Errorf(team.CodeInvalid, "read what was approved: %w", err)
	} else {
		names, err = s.spawnMany(ctx, approval, do)
	}
	if ctx.Err() != nil {
		return ledger.Outcome{}, ErrStopped
	}
	out := outcomeOf(approval, names, err)
	settled, err := s.cfg.Ledger.FinishIntent(ctx, ledger.FinishIn{
		Approval: approval, Outcome: out, Summary: inbox.Summary("", out.Text),
	})
	if err == nil && settled.Message != nil {
		s.mailer().Deliver(ctx, settled.Deliveries)
	}
	return out, err
}

// spawnMany spawns the members of an approval that are not there yet.
func (s *Supervisor) spawnMany(ctx context.Context, approval int64, do Approved) (names []string, err error) {
	n := max(do.Count, 1)
	outs, errs := make([]SpawnOut, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		in := do.Spawn
		in.Spec.Approval, in.Spec.Nth = approval, i
		wg.Go(func() { outs[i], errs[i] = s.Spawn(ctx, in) })
	}
	wg.Wait()
	for i, out := range outs {
		if errs[i] == nil {
			names = append(names, out.Member.Name)
		}
	}
	return names, oneOf(errs)
}

func outcomeOf(approval int64, names []string, err error) ledger.Outcome {
	id := strconv.FormatInt(approval, 10)
	text := "spawned after approval " + id + ": " + strings.Join(names, " ")
	switch {
	case err == nil:
		return ledger.Outcome{Text: text}
	case len(names) == 0:
		text = "approval " + id + ": the spawn failed: " + err.Error()
	default:
		text += "; the others failed: " + err.Error()
	}
	return ledger.Outcome{Text: text, Error: &team.Error{
		Code: team.CodeOf(err), Msg: err.Error(), Reason: team.ReasonOf(err), Hint: team.HintOf(err),
	}}
}
