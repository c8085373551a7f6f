package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

func newEdge(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edge VERB",
		Short: "Manage edges, who works with whom: ls, add, rm",
		Long: `Manage the graph of the team: delegates, reviews, reports_to, shares_context and
handoff edges between members. The graph is informational: an edge grants no rights,
which roles do. When a member leaves, its edges are removed.`,
		Example: `  teamctl edge add lina delegates builder
  teamctl edge add judge reviews builder
  teamctl edge ls`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newEdgeLs(a), newEdgeAdd(a), newEdgeRm(a))
	return cmd
}

func newEdgeLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the edges between members of the team",
		Example: "  teamctl edge ls\n  teamctl edge ls --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				list, err := t.Edges(cmd.Context())
				if err != nil || a.out.value(map[string]any{"edges": list}) {
					return err
				}
				rows := make([][]string, 0, len(list))
				for _, e := range list {
					rows = append(rows, []string{e.From, string(e.Type), e.To})
				}
				a.out.table([]string{"FROM", "TYPE", "TO"}, rows, false)
				return nil
			})
		},
	}
}

func newEdgeAdd(a *app) *cobra.Command {
	return a.edgeVerb(&cobra.Command{
		Use:   "add FROM TYPE TO",
		Short: "Add an edge",
		Long: `Add an edge of the type delegates, reviews, reports_to, shares_context or
handoff. An existing edge is not an error.`,
		Example: "  teamctl edge add judge reviews builder\n  teamctl edge add builder reports_to judge",
	}, func(cmd *cobra.Command, t *tool.Team, c tool.Caller, e team.Edge) (op.EdgeOut, error) {
		e, changed, err := t.EdgeAdd(cmd.Context(), c, e)
		if !changed {
			return op.EdgeOut{Status: tool.AlreadySet, Edge: e}, err
		}
		return op.EdgeOut{Status: "added", Edge: e}, err
	})
}

func newEdgeRm(a *app) *cobra.Command {
	return a.edgeVerb(&cobra.Command{
		Use:     "rm FROM TYPE TO",
		Short:   "Remove an edge",
		Example: "  teamctl edge rm judge reviews builder\n  teamctl edge rm builder reports_to judge",
	}, func(cmd *cobra.Command, t *tool.Team, c tool.Caller, e team.Edge) (op.EdgeOut, error) {
		e, changed, err := t.EdgeRemove(cmd.Context(), c, e)
		if !changed {
			return op.EdgeOut{Status: tool.AlreadyRemoved, Edge: e}, err
		}
		return op.EdgeOut{Status: "removed", Edge: e}, err
	})
}

func (a *app) edgeVerb(cmd *cobra.Command, do func(*cobra.Command, *tool.Team, tool.Caller, team.Edge) (op.EdgeOut, error)) *cobra.Command {
	cmd.Args = takes(3, 3, "a member, the type of the edge, and a member")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0, 2:
			return first(a.completeMembers(true))(cmd, nil, part)
		case 1:
			var words []string
			for _, t := range team.EdgeTypes() {
				words = append(words, string(t))
			}
			return words, noFiles
		}
		return nil, noFiles
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
			out, err := do(cmd, t, c, team.Edge{From: args[0], Type: team.EdgeType(args[1]), To: args[2]})
			if err != nil || a.out.value(out) {
				return err
			}
			a.out.line("%s %s %s: %s", out.From, out.Type, out.To, out.Status)
			return nil
		})
	}
	return cmd
}
