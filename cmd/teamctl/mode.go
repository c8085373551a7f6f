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
				s, err := showOrSet(args, modeOf(m.Spec.Mode), func(to team.Mode) (team.Mode, error) {
					m, err := t.SetMode(cmd.Context(), c, m.Name, to)
					return modeOf(m.Spec.Mode), err
				})
				if err == nil && !a.out.value(modeOut{Status: s.status, Member: m.Name, Mode: s.now, Before: s.before}) {
					s.print(a, m.Name, "in mode ")
				}
				return err
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
