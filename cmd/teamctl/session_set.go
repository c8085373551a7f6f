package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

func newSessionModel(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "model SESSION PROVIDER/MODEL",
		Short: "Give a conversation another model, for its next turn",
		Example: `  teamctl session model dev anthropic/claude-sonnet-4-5
  teamctl session model dev script/demo --json`,
		Args:              takes(2, 2, "the key of a conversation, or the name of a member, and a model"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := model.ParseRef(args[1])
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				s, err := t.SetModel(cmd.Context(), c, args[0], ref.Provider, ref.Model)
				if err != nil || a.out.value(op.SetModelOut{SessionKey: s.Key, ModelRef: modelName(s)}) {
					return err
				}
				a.out.line("%s: %s", s.Key, printable(modelName(s)))
				return nil
			})
		},
	}
}

func newSessionAgent(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "agent SESSION AGENT",
		Short: "Give a conversation another agent spec, for its next turn",
		Example: `  teamctl session agent dev reviewer
  teamctl session agent dev default --json`,
		Args:              takes(2, 2, "the key of a conversation, or the name of a member, and an agent spec"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				s, spec, err := t.SetAgent(cmd.Context(), c, args[0], args[1], true)
				if err != nil || a.out.value(op.SetAgentOut{SessionKey: s.Key, AgentID: spec.ID, Name: spec.Name}) {
					return err
				}
				a.out.line("%s: %s", s.Key, spec.ID)
				return nil
			})
		},
	}
}
