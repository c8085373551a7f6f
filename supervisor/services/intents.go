package services

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

// Intents carries out approved actions. Each happens once, whoever requests it and however often:
// its outcome is recorded in the ledger.
type Intents struct {
	loop.Quiet
	team  loop.Team
	again time.Duration
	do    func(ctx context.Context, approval int64, what json.RawMessage) (names []string, err error)
	// running, by approval: who waits for the outcome
	carrying map[int64][]func(ledger.Outcome, error)
}

// NewIntents returns the service. do carries out an approved action and recognises one that it has
// done before. If the actions could not be read, or an outcome could not be recorded, that is tried
// again after the pause again.
func NewIntents(t loop.Team, again time.Duration, do func(ctx context.Context, approval int64, what json.RawMessage) (names []string, err error)) *Intents {
	return &Intents{team: t, again: again, do: do, carrying: map[int64][]func(ledger.Outcome, error){}}
}

// Ready resumes approved actions that are not done.
func (i *Intents) Ready() { i.look() }

// Event starts an approved action.
func (i *Intents) Event(e ledger.Event) {
	if e.What == team.ApprovalEvents+string(ledger.ApprovalApproved) {
		i.Bus.After("intents", time.Millisecond, i.look)
	}
}

// Busy reports whether an action is being carried out.
func (i *Intents) Busy() bool { return len(i.carrying) > 0 }

// CarryOut carries out the action of an approval, unless that was done before. An approval without
// an intent is CodeNotFound. reply may be nil.
func (i *Intents) CarryOut(approval int64, reply func(ledger.Outcome, error)) {
	waiting, under := i.carrying[approval]
	if reply != nil {
		waiting = append(waiting, reply)
	}
	i.carrying[approval] = waiting
	if under {
		return
	}
	i.Bus.Go("carry out an approval", func(ctx context.Context) func() {
		out, err := i.carry(ctx, approval)
		return func() { i.carried(approval, out, err) }
	})
}

// carried is called after an attempt. An attempt whose outcome could not be recorded is repeated.
func (i *Intents) carried(approval int64, out ledger.Outcome, err error) {
	waiting := i.carrying[approval]
	delete(i.carrying, approval)
	for _, reply := range waiting {
		reply(out, err)
	}
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		i.team.Log.Warn("carry out an approval", "id", approval, "err", err)
		i.Bus.After("intents", i.again, i.look)
	}
}

// look resumes approved actions that are not done: left by a killed process, or approved just now.
func (i *Intents) look() {
	i.Bus.Go("read intents", func(ctx context.Context) func() {
		open, err := i.team.Ledger.Intents(ctx)
		if err != nil {
			i.team.Log.Warn("read what was approved", "err", err)
			return func() { i.Bus.After("intents", i.again, i.look) }
		}
		return func() {
			for _, one := range open {
				i.CarryOut(one.Approval, nil)
			}
		}
	})
}

// carry carries out one intent and records its outcome, outside the loop. An action cut short by
// the end of the supervisor stays open.
func (i *Intents) carry(ctx context.Context, approval int64) (ledger.Outcome, error) {
	intent, err := i.team.Ledger.Intent(ctx, approval)
	if err != nil {
		return ledger.Outcome{}, err
	}
	if intent.Outcome != nil {
		return *intent.Outcome, nil
	}
	names, err := i.do(ctx, approval, intent.What)
	if ctx.Err() != nil { // it stays open
		return ledger.Outcome{}, cmp.Or(err, context.Cause(ctx))
	}
	out := outcomeOf(approval, names, err)
	settled, err := i.team.Ledger.FinishIntent(ctx, ledger.FinishIn{
		Approval: approval, Outcome: out, Summary: inbox.Summary("", out.Text),
	})
	if err == nil && settled.Message != nil {
		i.team.Mailer().Deliver(ctx, settled.Deliveries)
	}
	return out, err
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
