package teamfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// Actions when the usage limit of a provider ends.
const (
	OnLimitWait   = "wait"   // held work stays held until teamctl usage resume
	OnLimitResume = "resume" // the team continues by itself
)

// OnLimit is OnLimitWait or OnLimitResume.
type OnLimit string

// budget reads {tokens: 2M, cost: 12.50, turns: 100}.
func (r *reader) budget(into *team.Budget) func(ast.Node) {
	one := func(what string, set func(text string) error) func(ast.Node) {
		return func(n ast.Node) {
			var text string
			before := len(r.problems)
			r.scalar(what, &text)(n)
			if len(r.problems) > before {
				return
			}
			if text == "" {
				r.bad(n, "%s is empty", what)
			} else if err := set(text); err != nil {
				r.bad(n, "%v: %s", err, team.HintOf(err))
			}
		}
	}
	return func(n ast.Node) {
		r.mapping(n, "budget", []field{
			{"tokens", one("tokens", func(text string) error {
				b, err := team.ParseBudget(text, "", "")
				into.Tokens = b.Tokens
				return err
			})},
			{"cost", one("cost", func(text string) error {
				b, err := team.ParseBudget("", text, "")
				into.CostUSD = b.CostUSD
				return err
			})},
			{"turns", one("turns", func(text string) error {
				b, err := team.ParseBudget("", "", text)
				into.Turns = b.Turns
				return err
			})},
		})
	}
}

func (r *reader) onLimit(into *OnLimit) func(ast.Node) {
	return func(n ast.Node) {
		var text string
		r.text("onLimit", &text)(n)
		if *into = OnLimit(text); text != "" && text != OnLimitWait && text != OnLimitResume {
			r.bad(n, "unknown onLimit %q: use %s or %s", text, OnLimitWait, OnLimitResume)
		}
	}
}

// budgetSchema is the schema of a budget.
func budgetSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:        "object",
		Description: "the most that may be used of a model: told at 80 %, held at 100 %",
		Properties: map[string]*jsonschema.Schema{
			"tokens": {Types: []string{"string", "integer"}, Description: "input and output without what came from a cache: 500000, 500k, 2M"},
			"turns":  {Types: []string{"string", "integer"}, Description: "ended turns of agents of kind llm"},
			"cost":   {Types: []string{"string", "number"}, Description: "US dollars, as the CLI counts them"},
		},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}
