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

func newSessionDeliver(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "deliver SESSION on|off",
		Short: "Let a conversation notify you outside the team",
		Long: `Let the agent of a conversation notify you by the team's sinks (teamctl notify), with
its tool notify_person. It is off until you turn it on. Messages between agents are
never delivered outside the team.`,
		Example: `  teamctl session deliver dev on
  teamctl session deliver dev off --json`,
		Args: takes(2, 2, "the key of a conversation, or the name of a member, and on or off"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{"on", "off"}, noFiles
			}
			return first(a.completeMembers(true))(cmd, args, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return usage(cmd, "give on or off, not %q", args[1])
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				s, err := t.DeliverSession(cmd.Context(), c, args[0], args[1] == "on")
				if err != nil || a.out.value(map[string]any{"session_key": s.Key, "deliver": s.Deliver}) {
					return err
				}
				a.out.line("%s: %s", s.Key, args[1])
				return nil
			})
		},
	}
}
