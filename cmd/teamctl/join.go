package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newJoin(a *app) *cobra.Command {
	var in tool.JoinIn
	cmd := &cobra.Command{
		Use:   "join NAME",
		Short: "Add a program of your own to the team as a member",
		Long: `Put a program that teamctl does not start on the roster, and print what it
needs in its environment to act as that member, its secret token included. No
process is supervised: a task that it claims is its own until two minutes after its
last call about it (teamctl task show ID is one), and it leaves with
teamctl leave. --json names the file of the token instead of printing it.`,
		Example: `  teamctl join helper --json
  eval "$(teamctl join helper)" && teamctl inbox`,
		Args: takes(1, 1, "a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				out, err := t.Join(cmd.Context(), c, in)
				if err != nil {
					return err
				}
				if a.out.value(out) {
					return nil
				}
				for _, kv := range out.Env {
					name, value, _ := strings.Cut(kv, "=")
					a.out.line("export %s=%s", name, team.ShellQuote(value))
				}
				for _, w := range out.Warnings {
					a.out.note("warning: it is %s: %s", out.Member.Name, w)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&in.Role, "role", "", "executor (default), reviewer, observer, leader or operator")
	cmd.Flags().BoolVar(&in.Exact, "exact", false, "fail if the name is taken, instead of using NAME-2")
	a.complete(cmd, "role", words("executor", "reviewer", "observer", "leader", "operator"))
	return cmd
}

func newLeave(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "leave [NAME]",
		Short: "Remove a program that joined (default: yourself)",
		Long: `Take a program that joined off the roster. What it holds goes back to the board,
and its token is worth nothing any more. Its process, if any, is yours to end.`,
		Example:           "  teamctl leave helper\n  teamctl leave helper --json",
		Args:              takes(0, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				m, err := t.Leave(cmd.Context(), c, name)
				outcome := "left"
				if m.RemovedAt != 0 && team.ReasonOf(err) == team.ReasonMemberRemoved {
					outcome, err = "already_left", nil
				}
				if err != nil {
					return err
				}
				if !a.out.value(map[string]string{"left": m.Name, "outcome": outcome}) {
					a.out.line("%s has %s", m.Name, strings.ReplaceAll(outcome, "_", " "))
				}
				return nil
			})
		},
	}
}

// asFlag adds --as, which acts as a member whose token is in the environment.
func (a *app) asFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&a.as, "as", "", "act as this member; "+team.EnvToken+" must contain its token")
	a.complete(root, "as", a.completeMembers(false))
}
