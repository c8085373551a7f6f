package llm

import (
	"context"
	"crypto/sha256"

	"github.com/teamctl/teamctl/ledger"
)

const (
	sameInRow  = 3 // the same call with the same result, consecutively
	sameAmong  = 5 // the same among more calls
	amongLast  = 10
	repetition = "You have made the same call with the same result several times. Do something else, or end your turn and say what you need."
)

// checkLoop detects a call that is repeated with the same result: the model is notified once, then
// the turn fails.
func (t *turn) checkLoop(ctx context.Context) error {
	if !t.repeats() {
		return nil
	}
	if t.warned {
		return fail("loop: the same call again and again")
	}
	t.warned = true
	return t.note(ctx, repetition)
}

// repeats reports whether the newest calls of the job, since the last notice to the model, are a
// loop.
func (t *turn) repeats() bool {
	type mark [sha256.Size]byte
	var rounds [][]mark // of the job, each with its calls and results
	asked := map[string]string{}
	for i, e := range t.entries.entries {
		if e.Job != t.Job.ID {
			continue
		}
		m := t.entries.metas[i]
		switch e.Kind {
		case ledger.EntryUser:
			if e.Content == repetition {
				rounds, t.warned = nil, true
			}
		case ledger.EntryAssistant:
			rounds = append(rounds, nil)
			for _, c := range m.Calls {
				asked[c.ID] = c.Name + "\x00" + string(c.Input)
			}
		case ledger.EntryToolResult:
			if n := len(rounds); n > 0 && e.Content != ledger.ResultSkipped {
				rounds[n-1] = append(rounds[n-1], sha256.Sum256([]byte(asked[m.Call]+"\x00"+e.Content)))
			}
		case ledger.EntryCompaction, ledger.EntryEvent:
		}
	}
	var all []mark
	for _, r := range rounds[max(0, len(rounds)-amongLast):] {
		all = append(all, r...)
	}
	if len(all) == 0 {
		return false
	}
	last, total, row := all[len(all)-1], 0, true
	for i, m := range all {
		if m == last {
			total++
		}
		if i >= len(all)-sameInRow && m != last {
			row = false
		}
	}
	return total >= sameAmong || row && len(all) >= sameInRow
}
