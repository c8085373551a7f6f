package team

import (
	"math"
	"strconv"
	"strings"
)

// Budget is the most that a member, or all members together, may use of their
// models; a zero field means no bound.
type Budget struct {
	Tokens  int64   `json:"tokens,omitempty"`  // input and output, without what came from a cache
	CostUSD float64 `json:"costUsd,omitempty"` // as the CLI counts it
	Turns   int64   `json:"turns,omitempty"`   // ended ones of the built-in agent; other programs' turns are not counted
}

// None reports that nothing is bounded.
func (b Budget) None() bool { return b == Budget{} }

// Share is how much of the budget is used, 1 for all of it; 0 without a budget.
func (b Budget) Share(u Usage) float64 {
	share := 0.0
	if b.Tokens > 0 {
		share = float64(u.Tokens()) / float64(b.Tokens)
	}
	if b.CostUSD > 0 {
		share = max(share, u.CostUSD/b.CostUSD)
	}
	if b.Turns > 0 {
		share = max(share, float64(u.Turns)/float64(b.Turns))
	}
	return share
}

// Tokens are those that a budget counts.
func (u Usage) Tokens() int64 {
	return u.InputTokens + u.OutputTokens - min(u.CachedTokens, u.InputTokens)
}

// Add adds what another conversation has used. The cost of the sum is known if both are.
func (u *Usage) Add(o Usage) {
	u.CostKnown = o.CostKnown && (u.CostKnown || *u == Usage{})
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CachedTokens += o.CachedTokens
	u.CacheWriteTokens += o.CacheWriteTokens
	u.ReasoningTokens += o.ReasoningTokens
	u.CostUSD += o.CostUSD
	u.Turns += o.Turns
	u.Unknown += o.Unknown
}

// ParseBudget reads the bounds as people write them: tokens and turns as a whole number,
// with k or M behind it where wanted, cost in US dollars. Empty means no bound. Errors
// are CodeInvalid.
func ParseBudget(tokens, cost, turns string) (b Budget, err error) {
	count := func(text, what string) (int64, error) {
		if text == "" {
			return 0, nil
		}
		digits, unit := strings.TrimSpace(text), int64(1)
		switch {
		case strings.HasSuffix(digits, "k"):
			digits, unit = digits[:len(digits)-1], 1000
		case strings.HasSuffix(digits, "M"):
			digits, unit = digits[:len(digits)-1], 1_000_000
		}
		n, perr := strconv.ParseInt(digits, 10, 64)
		if perr != nil || n < 1 || n > math.MaxInt64/unit {
			return 0, Errorf(CodeInvalid, "a budget of %q %s", text, what).WithReason(ReasonBadBudget).WithHint("give a whole number, such as 500000, 500k or 2M")
		}
		return n * unit, nil
	}
	if b.Tokens, err = count(tokens, "tokens"); err != nil {
		return Budget{}, err
	}
	if b.Turns, err = count(turns, "turns"); err != nil {
		return Budget{}, err
	}
	if cost != "" {
		c, perr := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(cost), "$"), 64)
		if perr != nil || !(c > 0) || math.IsInf(c, 0) {
			return Budget{}, Errorf(CodeInvalid, "a budget of %q", cost).WithReason(ReasonBadBudget).WithHint("use US dollars, such as 12.50")
		}
		b.CostUSD = c
	}
	return b, nil
}
