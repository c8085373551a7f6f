package program

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/agent/model/config"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// blocked returns why the session may not use its model now, or "".
func (r *rig) blocked(p *Program) string {
	r.Helper()
	why, _ := r.blockedUntil(p)
	return why
}

// blockedUntil is blocked with when it is worth asking again.
func (r *rig) blockedUntil(p *Program) (string, time.Time) {
	r.Helper()
	why, until, err := account{p}.Blocked(r.Context(), r.session.Key)
	if err != nil {
		r.Fatal(err)
	}
	if why == nil {
		return "", until
	}
	return why.Error(), until
}

// TestLimitOfAProvider checks that a limit applies to all sessions that use its provider and to
// no other. After its end one session tries, and an answer ends the limit for all of them.
func TestLimitOfAProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ann, bob, other := r.life(t.TempDir()), r.life(t.TempDir()), r.life(t.TempDir())
	ann.asksAt(r.session.Key, "anthropic")
	bob.asksAt(r.session.Key, "anthropic")
	other.asksAt(r.session.Key, "openai")
	reached := func(until time.Time) {
		t.Helper()
		if err := (account{ann}).Reached(t.Context(), time.Now(), &team.LimitReached{Until: until, Words: "enough", Provider: "anthropic"}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	reached(end)
	for _, p := range []*Program{ann, bob} {
		if _, until := r.blockedUntil(p); !until.Equal(end) {
			t.Errorf("blocked until %v, want %v", until, end)
		}
	}
	for p, want := range map[*Program]string{ann: "llm:anthropic has reached a usage limit", bob: "llm:anthropic has reached a usage limit", other: ""} {
		if got := r.blocked(p); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if err := quota.End(t.Context(), r.led, "llm:anthropic", nil); err != nil {
		t.Fatal(err)
	}
	if got := r.blocked(bob); got != "" {
		t.Errorf("after its end: %s", got)
	}
	reached(time.Now().Add(-time.Second))
	if got := r.blocked(ann); got != "" {
		t.Errorf("no session may try at the end of the limit: %s", got)
	}
	if got, until := r.blockedUntil(bob); !strings.Contains(got, "usage limit") || time.Until(until) <= 0 {
		t.Errorf("two sessions may try at once, or the second one never tries: %q until %v", got, until)
	}
	ann.answered(t.Context(), "anthropic")
	for _, p := range []*Program{ann, bob} {
		if got := r.blocked(p); got != "" {
			t.Errorf("after an answer: %s", got)
		}
	}
}

// TestBudgetsAreTold checks that people are notified once at 80 % and once at 100 % of a budget,
// however often it is checked, and again after it is raised. A budget of turns counts ended turns
// and holds the first turn beyond it.
func TestBudgetsAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.life(t.TempDir())
	set := func(turns int64) {
		t.Helper()
		b := team.Budgets{Members: map[string]team.Budget{"dev": {Turns: turns}}, Team: team.Budget{Turns: 100}}
		if err := r.led.Set(t.Context(), quota.SettingBudgets, b); err != nil {
			t.Fatal(err)
		}
	}
	told := func() string {
		t.Helper()
		events, err := r.led.Events(context.WithoutCancel(t.Context()), 0, 0, ledger.EventFilter{What: "usage."})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range events {
			var d struct{ Share float64 }
			if err := json.Unmarshal(e.Data, &d); err != nil || d.Share < 0.8 {
				t.Errorf("%+v, %v", e, err)
			}
			out = append(out, e.What+" "+e.ID)
		}
		return strings.Join(out, ",")
	}
	set(5)
	warned, up := team.EventUsageBudgetWarned+" dev", team.EventUsageBudgetUsedUp+" dev"
	for i, want := range []string{"", "", "", warned, warned + "," + up} {
		if got := r.blocked(p); got != "" {
			t.Fatalf("turn %d is held: %s", i+1, got)
		}
		r.turn("todo", `{"items":[]}`, `{}`)
		for range 2 {
			(account{p}).Used(t.Context(), team.Usage{})
		}
		if got := told(); got != want {
			t.Errorf("after turn %d: %s, want %s", i+1, got, want)
		}
	}
	if got := r.blocked(p); !strings.Contains(got, "the budget of dev is used up") {
		t.Errorf("%q", got)
	}
	set(6)
	if got := r.blocked(p); got != "" {
		t.Errorf("blocked after the budget was raised: %s", got)
	}
	if got := told(); got != warned+","+up+","+warned {
		t.Error(got)
	}
}

// TestNoTurnWithoutAPrice checks that a turn is refused while a budget in dollars covers it and
// its model has no price, even if the model had one before.
func TestNoTurnWithoutAPrice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.life(t.TempDir())
	p.Tools = &tool.Env{Home: r.home}
	configure := func(limits string) {
		t.Helper()
		text := "model: local/m\nproviders: {local: {api: chat, baseURL: 'http://127.0.0.1:1/v1'" + limits + "}}\n"
		if err := os.WriteFile(filepath.Join(r.home.Dir, config.Name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin := func() error {
		_, err := p.resolve(t.Context(), r.session, ledger.ClaimedTurn{})
		if team.ReasonOf(err) != team.ReasonBadBudget {
			return nil // the next steps of resolve need more than this rig has
		}
		return err
	}
	set := func(b team.Budgets) {
		t.Helper()
		if err := r.led.Set(t.Context(), quota.SettingBudgets, b); err != nil {
			t.Fatal(err)
		}
	}
	configure("")
	if err := begin(); err != nil {
		t.Fatalf("without a budget: %v", err)
	}
	for what, b := range map[string]team.Budgets{
		"the team's": {Team: team.Budget{CostUSD: 1}}, "its own": {Members: map[string]team.Budget{"dev": {CostUSD: 1}}},
	} {
		set(b)
		configure("")
		if err := begin(); err == nil || !strings.Contains(err.Error(), "the price of local/m is unknown") {
			t.Errorf("%s: %v", what, err)
		}
		configure(", models: {m: {price: {input: 0, output: 0}}}")
		if err := begin(); err != nil {
			t.Errorf("%s, with a price of nothing: %v", what, err)
		}
	}
	set(team.Budgets{Members: map[string]team.Budget{"dev": {Tokens: 1}, "other": {CostUSD: 1}}})
	configure("")
	if err := begin(); err != nil {
		t.Errorf("a budget in tokens, and another's: %v", err)
	}
}
