package tool

import (
	"context"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

const setEdge = ledger.EdgePrefix

func edgeName(e team.Edge) string {
	return setEdge + e.From + "." + string(e.Type) + "." + e.To
}

// Edges returns the graph of the team by names, without edges of members that have left.
func (t *Team) Edges(ctx context.Context) ([]team.Edge, error) {
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	names, err := t.Ledger.SettingNames(ctx, setEdge)
	if err != nil {
		return nil, err
	}
	here := func(name string) bool {
		return slices.ContainsFunc(members, func(m ledger.Member) bool { return m.Name == name })
	}
	out := []team.Edge{}
	for _, n := range names {
		parts := strings.Split(strings.TrimPrefix(n, setEdge), ".")
		if len(parts) == 3 && here(parts[0]) && here(parts[2]) {
			out = append(out, team.Edge{From: parts[0], Type: team.EdgeType(parts[1]), To: parts[2]})
		}
	}
	return out, nil
}

// EdgeAdd adds an edge; changed is false if it exists already.
func (t *Team) EdgeAdd(ctx context.Context, c Caller, e team.Edge) (_ team.Edge, changed bool, err error) {
	return t.setEdge(ctx, c, e, true)
}

// EdgeRemove removes an edge; changed is false if it was removed before. Errors: CodeNotFound
// (edge_not_found) for one that has never existed.
func (t *Team) EdgeRemove(ctx context.Context, c Caller, e team.Edge) (_ team.Edge, changed bool, err error) {
	e, changed, err = t.setEdge(ctx, c, e, false)
	if err != nil || changed {
		return e, changed, err
	}
	events, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{What: team.EventTeamEdge, ID: strings.TrimPrefix(edgeName(e), setEdge)})
	if err == nil && len(events) == 0 {
		err = team.Errorf(team.CodeNotFound, "edge %s %s %s does not exist", e.From, e.Type, e.To).
			WithReason(team.ReasonEdgeNotFound).WithHint("teamctl edge ls")
	}
	return e, false, err
}

func (t *Team) setEdge(ctx context.Context, c Caller, e team.Edge, there bool) (_ team.Edge, changed bool, err error) {
	if err := t.may(ctx, c, OpTaskManage); err != nil {
		return e, false, err
	}
	for _, end := range []*string{&e.From, &e.To} {
		m, err := t.Member(ctx, *end)
		if err != nil {
			return e, false, err
		}
		*end = m.Name
	}
	if err := e.Check(); err != nil {
		return e, false, err
	}
	name, was := edgeName(e), false
	if was, err = t.Ledger.Setting(ctx, name, new(bool)); err != nil || was == there {
		return e, false, err
	}
	ev := ledger.Event{Who: c.Name, What: team.EventTeamEdge, ID: strings.TrimPrefix(name, setEdge)}
	if there {
		ev.After, err = "added", t.as(c).Set(ctx, name, true)
	} else {
		ev.After, err = "removed", t.as(c).Set(ctx, name, nil)
	}
	if err == nil {
		_, err = t.as(c).Event(ctx, ev)
	}
	return e, err == nil, err
}
