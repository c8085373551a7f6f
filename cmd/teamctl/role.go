package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// roleOut is the result of role.
type roleOut struct {
	Status string    `json:"status"` // shown, changed or already_set
	Member string    `json:"member"`
	Role   team.Role `json:"role"`
	Before team.Role `json:"before,omitempty"` // before a change
}

func newRole(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "role NAME [ROLE]",
		Short: "Show or change the role of a member",
		Long: `Show what a member's role is, or change it: leader, executor, reviewer, observer
or operator. What the member may do changes at once; tasks that it may not work on
any more go back to the board. Only a person makes an operator,
which passes nearly every gate and is logged each time.`,
		Example: `  teamctl role builder
  teamctl role builder reviewer`,
		Args: takes(1, 2, "the name of a member and a role"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return []string{string(team.RoleLeader), string(team.RoleExecutor), string(team.RoleReviewer),
					string(team.RoleObserver), string(team.RoleOperator)}, noFiles
			}
			return first(a.completeMembers(true))(cmd, args, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				m, err := t.Member(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				s, err := showOrSet(args, m.Role, func(to team.Role) (team.Role, error) {
					m, err := t.SetRole(cmd.Context(), c, m.Name, to)
					return m.Role, err
				})
				if err == nil && !a.out.value(roleOut{Status: s.status, Member: m.Name, Role: s.now, Before: s.before}) {
					s.print(a, m.Name, "")
				}
				return err
			})
		},
	}
}
