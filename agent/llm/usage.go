package llm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// usage returns the usage of the job's answers in all its attempts, including entries about to be
// committed.
func (t *turn) usage(entries ...ledger.NewEntry) json.RawMessage {
	sum := t.used(entries...)
	if sum == (team.Usage{}) {
		return nil
	}
	b, err := json.Marshal(sum)
	if err != nil {
		panic(fmt.Sprintf("encode usage: %v", err)) // numbers only
	}
	return b
}

func (t *turn) used(entries ...ledger.NewEntry) team.Usage {
	sum := t.spent
	for _, e := range entries {
		if m, err := metaOf(ledger.Entry{NewEntry: e}); err == nil && m.Usage != nil {
			sum.Add(*m.Usage)
		}
	}
	return sum
}

// spend adds the usage of a request whose answer is not an entry, such as a summary.
func (t *turn) spend(ctx context.Context, u team.Usage) error {
	t.spent.Add(u)
	raw := t.usage()
	if raw == nil {
		return nil
	}
	return t.desk.Write(ctx, "note what a turn has used", func(c context.Context) error {
		return t.Sessions.NoteTurn(c, ledger.TurnNote{Ref: t.ref, Usage: raw})
	})
}

// stopped adds a request without a whole answer to the usage of the turn: what was reported of it, and
// that the rest is unknown. The next answer or the end of the turn records it.
func (t *turn) stopped(reported team.Usage) {
	t.price(&reported)
	reported.CostKnown = false
	reported.Unknown++
	t.spent.Add(reported)
}

// showUsed says on the screen what the turn has used.
func (t *turn) showUsed(u team.Usage) {
	if u.InputTokens+u.OutputTokens == 0 {
		return
	}
	cost := "cost -"
	if u.CostKnown {
		cost = fmt.Sprintf("$%.4f", u.CostUSD)
	}
	t.desk.Line("[turn %d: %d tokens in, %d out, %s]", t.Job.ID, u.InputTokens, u.OutputTokens, cost)
}

// price adds the cost of one request to its usage, if known.
func (t *turn) price(u *team.Usage) {
	p := t.setup.Info.Price
	if p == nil || u.CostKnown {
		return
	}
	plain := u.InputTokens - min(u.CachedTokens+u.CacheWriteTokens, u.InputTokens)
	u.CostUSD = (float64(plain)*p.Input + float64(u.CachedTokens)*p.CacheRead +
		float64(u.CacheWriteTokens)*p.CacheWrite + float64(u.OutputTokens)*p.Output) / 1e6
	u.CostKnown = true
}
