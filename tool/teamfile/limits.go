package teamfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// limits reads {memory: 2GiB, pids: 200, cpu: 150%}.
func (r *reader) limits(into *team.Limits) func(ast.Node) {
	one := func(what string, read func(string) (team.Limits, error), set func(team.Limits)) func(ast.Node) {
		return func(n ast.Node) {
			var text string
			before := len(r.problems)
			r.scalar(what, &text)(n)
			if text == "" {
				if len(r.problems) == before {
					r.bad(n, "%s is empty", what)
				}
				return
			}
			l, err := read(text)
			switch {
			case err == nil:
				set(l)
			case team.HintOf(err) != "":
				r.bad(n, "%v: %s", err, team.HintOf(err))
			default:
				r.bad(n, "%v", err)
			}
		}
	}
	return func(n ast.Node) {
		r.mapping(n, "limits", []field{
			{"memory", one("memory", func(s string) (team.Limits, error) { return team.ParseLimits(s, "", "") },
				func(l team.Limits) { into.MemoryBytes = l.MemoryBytes })},
			{"pids", one("pids", func(s string) (team.Limits, error) { return team.ParseLimits("", s, "") },
				func(l team.Limits) { into.PIDs = l.PIDs })},
			{"cpu", one("cpu", func(s string) (team.Limits, error) { return team.ParseLimits("", "", s) },
				func(l team.Limits) { into.CPUPercent = l.CPUPercent })},
		})
	}
}

// LimitsSchema is the schema of limits in a team file.
func LimitsSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:        "object",
		Description: "maximum that the member may use, with all that it starts",
		Properties: map[string]*jsonschema.Schema{
			"memory": {Types: []string{"string", "integer"}, Description: "for example 2GiB; plain numbers are bytes"},
			"pids":   {Types: []string{"string", "integer"}, Description: "processes and threads, for example 200"},
			"cpu":    {Type: "string", Pattern: `^ *[0-9]+ *% *$`, Description: "of one core: 150% is one and a half"},
		},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}
