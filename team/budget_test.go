package team

import "testing"

func TestParseBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens, cost string
		want         Budget
		ok           bool
	}{
		{"", "", Budget{}, true},
		{"500000", "12.50", Budget{Tokens: 500_000, CostUSD: 12.5}, true},
		{"500k", "$3", Budget{Tokens: 500_000, CostUSD: 3}, true},
		{"2M", "", Budget{Tokens: 2_000_000}, true},
		{"0", "", Budget{}, false},
		{"-1", "", Budget{}, false},
		{"many", "", Budget{}, false},
		{"9223372036854775807M", "", Budget{}, false},
		{"", "0", Budget{}, false},
		{"", "NaN", Budget{}, false},
		{"", "inf", Budget{}, false},
	} {
		got, err := ParseBudget(c.tokens, c.cost, "")
		if got != c.want || (err == nil) != c.ok || err != nil && (!IsCode(err, CodeInvalid) || HintOf(err) == "") {
			t.Errorf("%q, %q: %+v, %v", c.tokens, c.cost, got, err)
		}
	}
}

// What comes from a cache costs next to nothing, and is not counted.
func TestBudgetShare(t *testing.T) {
	t.Parallel()
	u := Usage{InputTokens: 1000, CachedTokens: 900, OutputTokens: 100, CostUSD: 1}
	for _, c := range []struct {
		b    Budget
		want float64
	}{{Budget{}, 0}, {Budget{Tokens: 400}, 0.5}, {Budget{Tokens: 400, CostUSD: 1}, 1}, {Budget{CostUSD: 4}, 0.25}} {
		if got := c.b.Share(u); got != c.want {
			t.Errorf("%+v: %v, want %v", c.b, got, c.want)
		}
	}
}
