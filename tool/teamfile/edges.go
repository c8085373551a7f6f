package teamfile

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/teamctl/teamctl/team"
)

// Edge is one entry of edges.
type Edge struct {
	From string        `json:"from" jsonschema:"name of a member, or team-lead"`
	Type team.EdgeType `json:"type"`
	To   string        `json:"to" jsonschema:"name of a member, or team-lead"`
}

func (r *reader) edges(n ast.Node) (out []placed[Edge]) {
	r.sequence(n, "edges", func(e ast.Node) {
		p := placed[Edge]{at: position(e), keys: map[string]ast.Node{}}
		if r.mapping(e, "an edge", p.noting([]field{
			{"from", r.text("from", &p.v.From)},
			{"type", r.text("type", (*string)(&p.v.Type))},
			{"to", r.text("to", &p.v.To)},
		})) {
			out = append(out, p)
		}
	})
	return out
}

// checkEdges checks that edges have a known type and lead from a member to another one. The name
// of a member with a count means the first one; the others are name-2, name-3.
func (r *reader) checkEdges(es []placed[Edge], ms []placed[Member]) {
	names := memberNames(ms)
	for i := range es {
		p := &es[i]
		ok := true
		for _, end := range []struct {
			key  string
			name *string
		}{{"from", &p.v.From}, {"to", &p.v.To}} {
			if *end.name == "" {
				ok = false
				r.at(p.where(end.key), "an edge needs from, type and to")
				continue
			}
			key, err := team.AgentKey(*end.name)
			if *end.name == team.LeadName {
				key, err = team.LeadName, nil
			}
			if err != nil || !slices.Contains(names, key) {
				ok = false
				r.at(p.where(end.key), "%s names no member of this file: %q", end.key, *end.name)
				continue
			}
			*end.name = key
		}
		if !ok {
			continue
		}
		if err := (team.Edge{From: p.v.From, Type: p.v.Type, To: p.v.To}).Check(); err != nil {
			at := p.where("type")
			if hint := team.HintOf(err); hint != "" {
				r.at(at, "%v: %s", err, hint)
			} else {
				r.at(at, "%v", err)
			}
		}
	}
}

// memberNames returns the names of the members, including the lead.
func memberNames(ms []placed[Member]) []string {
	names := []string{team.LeadName}
	for _, m := range ms {
		if key, err := team.AgentKey(m.v.Name); err == nil {
			for i := range max(1, min(m.v.Count, maxCount)) {
				names = append(names, numbered(key, i))
			}
		}
	}
	return names
}
