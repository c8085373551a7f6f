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

// Intents does what approvals let happen. Whoever asks, and however often, it happens once: what
// came of it is noted in the ledger.
type Intents struct {
	loop.Quiet
	team  loop.Team
	again time.Duration
	do    func(ctx context.Context, approval int64, what json.RawMessage) (names []string, err error)
	// under way, by approval: who waits for the outcome
	carrying map[int64][]func(ledger.Outcome, error)
}

// NewIntents returns the service. do carries out what was approved and finds what it has done
// before; it is called again after the pause again where the outcome could not be noted.
func NewIntents(t loop.Team, again time.Duration, do func(ctx context.Context, approval int64, what json.RawMessage) (names []string, err error)) *Intents {
	return &Intents{team: t, again: again, do: do, carrying: map[int64][]func(ledger.Outcome, error){}}
}

// Ready takes up what was approved and is not done.
func (i *Intents) Ready() { i.look() }

// Event takes up what is approved.
func (i *Intents) Event(e ledger.Event) {
	if e.What == team.ApprovalEvents+string(ledger.ApprovalApproved) {
		i.Bus.After("intents", time.Millisecond, i.look)
	}
}

// Busy reports that an intent is being carried out.
func (i *Intents) Busy() bool { return len(i.carrying) > 0 }

// CarryOut does what an approval lets happen, if that was not done before. An approval without
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

// carried is called after an attempt. One that could not be noted is made again.
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

// look takes up what was approved and is not done: by a process that was killed meanwhile, or
// a moment ago.
func (i *Intents) look() {
	i.Bus.Go("read intents", func(ctx context.Context) func() {
		open, err := i.team.Ledger.Intents(ctx)
		if err != nil {
			i.team.Log.Warn("read what was approved", "err", err)
			return nil
		}
		return func() {
			for _, one := range open {
				i.CarryOut(one.Approval, nil)
			}
		}
	})
}

// carry does one intent and notes what came of it, outside the loop. What our own end
// cuts short stays open.
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
