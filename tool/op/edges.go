package op

import (
	"context"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func edgeOps() []Op {
	manage := []tool.Operation{tool.OpTaskManage}
	return []Op{
		with(Op{Name: "EdgeList", Verb: "edge ls", ReadOnly: true, Idempotent: true}, edgeList),
		with(Op{Name: "EdgeAdd", Verb: "edge add", Gates: manage, Idempotent: true}, edgeAdd),
		with(Op{Name: "EdgeRemove", Verb: "edge rm", Gates: manage, Destructive: true, Idempotent: true}, edgeRemove),
	}
}

// EdgeListIn names the team.
type EdgeListIn struct{ TeamRef }

// EdgeListOut is the graph of the team.
type EdgeListOut struct {
	Edges []team.Edge `json:"edges"`
}

func edgeList(ctx context.Context, s *Session, in EdgeListIn) (EdgeListOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (EdgeListOut, error) {
		list, err := t.Edges(ctx)
		return EdgeListOut{Edges: list}, err
	})
}

// EdgeIn names an edge.
type EdgeIn struct {
	TeamRef
	From string        `json:"from" jsonschema:"Name of the member that the edge leads from."`
	Type team.EdgeType `json:"type" jsonschema:"What it says: FROM delegates to TO, reviews TO, reports to TO, shares context with TO, or hands off to TO."`
	To   string        `json:"to" jsonschema:"Name of the member that it leads to."`
}

// EdgeOut is an edge and the result.
type EdgeOut struct {
	Status string `json:"status" jsonschema:"added, removed, already_set or already_removed"`
	team.Edge
}

func edgeAdd(ctx context.Context, s *Session, in EdgeIn) (EdgeOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (EdgeOut, error) {
		e, changed, err := t.EdgeAdd(ctx, c, team.Edge{From: in.From, Type: in.Type, To: in.To})
		if !changed {
			return EdgeOut{tool.AlreadySet, e}, err
		}
		return EdgeOut{"added", e}, err
	})
}

func edgeRemove(ctx context.Context, s *Session, in EdgeIn) (EdgeOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (EdgeOut, error) {
		e, changed, err := t.EdgeRemove(ctx, c, team.Edge{From: in.From, Type: in.Type, To: in.To})
		if !changed {
			return EdgeOut{tool.AlreadyRemoved, e}, err
		}
		return EdgeOut{"removed", e}, err
	})
}
