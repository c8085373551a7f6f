package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// modes lists the permission modes, for completion.
func modes() []string {
	return []string{
		string(team.ModeDefault), string(team.ModeAcceptEdits), string(team.ModeBypass), string(team.ModePlan),
		string(team.ModeDelegate), string(team.ModeDontAsk),
	}
}

// modeOut is the result of mode.
type modeOut struct {
	Status string    `json:"status"` // shown, changed or already_set
	Member string    `json:"member"`
	Mode   team.Mode `json:"mode"`
	Before team.Mode `json:"before,omitempty"` // before a change
}

func newMode(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mode NAME [MODE]",
		Short: "Show or change a permission mode",
		Long: `Show a permission mode, or change it: default, acceptEdits, plan, delegate or
dontAsk, and bypassPermissions for a member that was spawned with
--dangerously-skip-permissions. What teamctl itself lets the member do changes at
once; when an agent program follows depends on its kind (teamctl agents show KIND,
"a new mode"; teamctl explain MEMBER). The mode of team-lead
is that of your MCP client; what you do at a shell is bound by none.`,
		Example: `  teamctl mode builder
  teamctl mode builder plan
  teamctl mode team-lead delegate`,
		Args: takes(1, 2, "the name of a member and a mode"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return modes(), noFiles
			}
			return first(a.completeMembers(true))(cmd, args, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				m, err := t.Member(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				out := modeOut{Status: "shown", Member: m.Name, Mode: modeOf(m.Spec.Mode)}
				if len(args) == 2 {
					out.Before = out.Mode
					if m, err = t.SetMode(cmd.Context(), c, m.Name, team.Mode(args[1])); err != nil {
						return err
					}
					out.Status, out.Mode = "changed", modeOf(m.Spec.Mode)
					if out.Before == out.Mode {
						out.Status, out.Before = "already_set", ""
					}
				}
				if a.out.value(out) {
					return nil
				}
				switch out.Status {
				case "changed":
					a.out.line("%s: %s -> %s", out.Member, out.Before, out.Mode)
				case "already_set":
					a.out.line("%s is in mode %s already", out.Member, out.Mode)
				default:
					a.out.line("%s", out.Mode)
				}
				return nil
			})
		},
	}
}

// modeOf returns the effective mode: an empty one means default.
func modeOf(m team.Mode) team.Mode {
	if m == "" {
		return team.ModeDefault
	}
	return m
}
