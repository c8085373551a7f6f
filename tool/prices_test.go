package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/supervisor/quota"
	"github.com/teamctl/teamctl/team"
)

// TestBudgetsInDollarsNeedAPrice: no door lets a budget in dollars cover a model whose price is
// unknown, for the budget would never be reached; what is refused changes nothing.
func TestBudgetsInDollarsNeedAPrice(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ctx := t.Context()
	byDefault := "script/demo"
	r.Env.Price = func(_ context.Context, ref string) (string, bool, error) {
		ref = cmp.Or(ref, byDefault)
		return ref, !strings.HasPrefix(ref, "free/"), nil
	}
	dev, ann := r.session("dev", "default"), r.session("ann", "default")
	r.member("bob", team.RoleExecutor)
	for name, provider := range map[string]string{"dear": "paid", "odd": "free"} {
		draft := `{"name":"` + name + `","defaults":{"model":{"provider":"` + provider + `","model":"x"}}}`
		if _, err := r.CreateSpec(ctx, Person(), json.RawMessage(draft)); err != nil {
			t.Fatal(err)
		}
	}
	dollars := team.Budget{CostUSD: 5}
	model := func(c Caller, provider string) error {
		_, err := r.SetModel(ctx, Person(), c.Session, provider, "x")
		return err
	}
	spec := func(c Caller, name string) error {
		_, _, err := r.SetAgent(ctx, Person(), c.Session, name, true)
		return err
	}
	spawn := func(name, model, kind string) error {
		_, err := r.spawnIn(ctx, Person(), SpawnIn{Name: name, MemberSpec: team.MemberSpec{Agent: "llm", Model: model, AgentType: kind}})
		return err
	}
	child := func(c Caller, spec string) error {
		_, err := r.SpawnSession(ctx, c, ChildIn{Agent: spec})
		return err
	}
	update := func(provider string) error {
		_, err := r.UpdateSpec(ctx, Person(), "default", json.RawMessage(`{"defaults":{"model":{"provider":"`+provider+`","model":"x"}}}`))
		return err
	}
	state := func() string {
		t.Helper()
		q, err := quota.Read(ctx, r.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		specs, err := r.Specs(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.Sessions(ctx, Person(), true)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]any{q.Budgets, specs, all})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	file := func(text string) error {
		path := filepath.Join(t.TempDir(), "teamctl.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := r.Env.Up(ctx, Person(), UpIn{File: path, DryRun: true})
		return err
	}
	refuse := func(what, who string, do func() error) {
		t.Helper()
		was := state()
		err := do()
		if team.ReasonOf(err) != team.ReasonBadBudget || !team.IsCode(err, team.CodeInvalid) ||
			!strings.Contains(err.Error(), who+" uses: the price of free/x is unknown") || !strings.Contains(team.HintOf(err), "--tokens") {
			t.Errorf("%s: %v (hint %s)", what, err, team.HintOf(err))
		}
		if now := state(); now != was {
			t.Errorf("%s changed\n%s\nto\n%s", what, was, now)
		}
	}
	take := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}

	take("a model without a price and no budget", model(dev, "free"))
	refuse("a budget of the member", "dev", func() error { return r.SetBudget(ctx, Person(), "dev", dollars) })
	refuse("a budget of the team", "dev", func() error { return r.SetBudget(ctx, Person(), "", dollars) })
	refuse("a team file", "dev", func() error { return file("team: demo\nbudget: {cost: 5}\nmembers: [{name: bob}]\n") })
	refuse("a member of a team file", "eve", func() error {
		return file("team: new\nmembers: [{name: eve, model: free/x, budget: {cost: 5}}]\n")
	})
	refuse("a team file's own budget", "eve", func() error {
		return file("team: new\nbudget: {cost: 5}\nmembers: [{name: eve, agent: llm, model: free/x}]\n")
	})
	refuse("a team file's model", "eve", func() error {
		return file("team: new\nbudget: {cost: 5}\nmodel: free/x\nmembers: [{name: eve, agent: llm}]\n")
	})
	take("a team file with a price", file("team: new\nbudget: {cost: 5}\nmembers: [{name: eve, model: paid/x}, {name: bob}]\n"))
	take("tokens and turns", r.SetBudget(ctx, Person(), "dev", team.Budget{Tokens: 5, Turns: 5}))
	take("another's budget", r.SetBudget(ctx, Person(), "ann", dollars))
	take("a worker's budget", r.SetBudget(ctx, Person(), "bob", dollars))

	refuse("a model", "ann", func() error { return model(ann, "free") })
	refuse("the team's model", "ann", func() error { return r.Set(ctx, Person(), SetModel, "free/x") })
	refuse("a spec", "ann", func() error { return spec(ann, "odd") })
	refuse("the model of a spec in use", "ann", func() error { return update("free") })
	refuse("a child", "ann", func() error { return child(ann, "odd") })
	refuse("a spawn", "ann", func() error { return spawn("ann", "free/x", "") })
	refuse("a spawn by its spec", "ann", func() error { return spawn("ann", "", "odd") })
	take("a spawn without a budget", spawn("new", "free/x", ""))
	byDefault = "free/x"
	refuse("the default", "ann", func() error { return spawn("ann", "", "") })
	take("the team's model in place of the default", r.Set(ctx, Person(), SetModel, "paid/x"))
	take("a spawn with it", spawn("ann", "", ""))
	refuse("the default again", "ann", func() error { return r.Set(ctx, Person(), SetModel, "") })
	byDefault = "script/demo"
	take("another default", r.Set(ctx, Person(), SetModel, ""))
	take("a model with a price", model(ann, "paid"))
	take("a spec with a model that the session overrides", spec(ann, "odd"))
	refuse("the end of the override", "ann", func() error {
		_, err := r.SetModel(ctx, Person(), ann.Session, "", "")
		return err
	})
	take("a spec with a price", spec(ann, "dear"))
	take("its child", child(ann, "dear"))

	take("the model of dev", model(dev, "paid"))
	take("a budget of the team", r.SetBudget(ctx, Person(), "", dollars))
	refuse("a spawn below the team's budget", "new", func() error { return spawn("new", "free/x", "") })
}
