package teamfile

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/teamctl/teamctl/team"
)

// Lanes is how many turns of agents of kind llm run at once, by lane.
type Lanes map[team.Lane]int

// lanes reads {subagent: 4, teammate: 16}.
func (r *reader) lanes(into *Lanes) func(ast.Node) {
	return func(n ast.Node) {
		var fields []field
		for _, lane := range team.Lanes() {
			fields = append(fields, field{string(lane), func(n ast.Node) {
				width, before := 0, len(r.problems)
				r.integer(string(lane), &width)(n)
				switch {
				case len(r.problems) > before:
				case width < 1 || width > team.MaxLaneWidth:
					r.bad(n, "%s: %d turns at once: a number from 1 to %d is needed", lane, width, team.MaxLaneWidth)
				default:
					if *into == nil {
						*into = Lanes{}
					}
					(*into)[lane] = width
				}
			}})
		}
		r.mapping(n, "lanes", fields)
	}
}

// lanesSchema is the schema of lanes.
func lanesSchema() *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:                 "object",
		Description:          "how many turns of agents of kind llm run at once, by lane",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	for _, lane := range team.Lanes() {
		s.Properties[string(lane)] = &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(float64(team.MaxLaneWidth))}
	}
	return s
}
