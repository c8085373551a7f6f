package services

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/looptest"
	"github.com/teamctl/teamctl/team"
)

// An approved action happens once, whoever requests it; an action that failed or could not be
// recorded is reported, and repeated.
func TestIntents(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	a, err := tm.Ledger.Ask(t.Context(), ledger.AskIn{RequestID: "d", Kind: ledger.ApproveDelegation, Session: members[0].SessionKey, Subject: "spawn"})
	if err != nil {
		t.Fatal(err)
	}
	id := a.Approval.ID
	if _, err := tm.Ledger.Answer(t.Context(), ledger.AnswerIn{ID: id, Approve: true, By: team.LeadName, Intent: json.RawMessage(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	var did atomic.Int32
	b := looptest.NewBus(t, members...)
	in := NewIntents(tm, time.Minute, func(_ context.Context, approval int64, what json.RawMessage) ([]string, error) {
		did.Add(1)
		if approval != id || string(what) != `{"n":1}` {
			return nil, errors.New("another intent")
		}
		return []string{"bob"}, nil
	})
	var outs []ledger.Outcome
	reply := func(out ledger.Outcome, err error) {
		if err != nil {
			t.Errorf("%v", err)
		}
		outs = append(outs, out)
	}
	b.StartService(in)
	in.CarryOut(id, reply)
	in.CarryOut(id, reply)
	if !in.Busy() {
		t.Error("a supervisor may leave amid it")
	}
	b.Until("done", func() bool { return len(outs) == 2 && !in.Busy() && b.Waiting() == 0 })
	in.CarryOut(id, reply)
	b.Until("found", func() bool { return len(outs) == 3 })
	if did.Load() != 1 || outs[0].Error != nil || outs[2].Text != outs[0].Text {
		t.Errorf("done %d times: %+v", did.Load(), outs)
	}
	in.CarryOut(99, func(_ ledger.Outcome, err error) {
		if !team.IsCode(err, team.CodeNotFound) {
			t.Errorf("without an intent: %v", err)
		}
	})
	b.Until("refused", func() bool { return !in.Busy() })
	if b.Armed("intents") {
		t.Error("what nobody has approved is tried again")
	}
	in.Event(ledger.Event{What: "approval." + string(ledger.ApprovalApproved)})
	if !b.Armed("intents") {
		t.Error("a new approval is not looked at")
	}
}

// Approved actions that could not be read are read again.
func TestIntentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	tm, members := looptest.NewTeam(t, "ann")
	if err := tm.Ledger.DB().Close(); err != nil {
		t.Fatal(err)
	}
	b := looptest.NewBus(t, members...)
	b.StartService(NewIntents(tm, time.Hour, nil))
	b.Done()
	for b.Waiting() > 0 {
		b.Next()
	}
	if !b.Armed("intents") || b.Periods["intents"] != time.Hour {
		t.Errorf("timers: %v", b.Periods)
	}
}
