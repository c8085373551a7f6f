package teamfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/teamctl/teamctl/team"
)

// model reads provider/model.
func (r *reader) model(into *string) func(ast.Node) {
	return func(n ast.Node) {
		before := len(r.problems)
		r.text("model", into)(n)
		provider, model, _ := strings.Cut(*into, "/")
		if len(r.problems) == before && (provider == "" || model == "") {
			r.bad(n, "invalid model %q: provider/model is needed", *into)
		}
	}
}

// agents reads a list of agent specs, which have the fields of agent.toml.
func (r *reader) agents(into *[]team.AgentSpec) func(ast.Node) {
	return func(n ast.Node) {
		r.sequence(n, "agents", func(e ast.Node) {
			before := len(r.problems)
			b, err := json.Marshal(r.object(e, "an agent", 0))
			if len(r.problems) > before {
				return
			}
			var s team.AgentSpec
			if err == nil {
				d := json.NewDecoder(bytes.NewReader(b))
				d.DisallowUnknownFields()
				err = d.Decode(&s)
			}
			if err == nil {
				err = s.Validate()
			}
			switch {
			case err != nil:
				r.bad(e, "agent %q: %s", s.ID, strings.TrimPrefix(err.Error(), "json: "))
			case slices.ContainsFunc(*into, func(o team.AgentSpec) bool { return o.ID == s.ID || strings.EqualFold(o.Name, s.Name) }):
				r.bad(e, "agent %q: another agent of this file has its agent_id or its name", s.ID)
			default:
				*into = append(*into, s)
			}
		})
	}
}
