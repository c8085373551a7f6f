package main

import (
	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newRecover(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "recover [MEMBER...]",
		Short: "Recover members after a reboot or a lost terminal",
		Long: `Recover members that should run and do not, because the machine or their tmux server
went away, including those with restart policy never, if their end was not observed. A
member counts as dead only if no process holds its lock and none carries its
generation. Members are started one after the other, each in its own worktree, and
each must stay up.

Running members are adopted, not started twice. A member whose failure was observed
stays as it is unless it is named.`,
		Example:           "  teamctl recover\n  teamctl recover builder",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if err := memberNames(cmd.Context(), t, args); err != nil {
					return err
				}
				list, err := t.Recover(cmd.Context(), c, args)
				if err != nil {
					return err
				}
				if list == nil {
					list = []team.Recovered{}
				}
				if !a.out.value(map[string]any{"members": list}) {
					a.recovered(list)
				}
				return notRecovered(list)
			})
		},
	}
}

func (a *app) recovered(list []team.Recovered) {
	if len(list) == 0 {
		a.out.note("there is no member to recover")
	}
	for _, r := range list {
		text := map[string]string{
			"running": "runs", "started": "started again", "left": "left as it is",
			"alive": "not started: something of it still lives", "failed": "could not be started",
		}[r.Outcome]
		if r.Reason != "" {
			text += " (" + r.Reason + ")"
		}
		a.out.line("%s: %s", r.Name, printable(text))
	}
}

// notRecovered is the error for members that should run and do not.
func notRecovered(list []team.Recovered) error {
	for _, r := range list {
		if r.Outcome == "failed" || r.Outcome == "alive" {
			return team.Errorf(team.CodeUnavailable, "%s was not recovered: %s", r.Name, r.Reason).
				WithReason(team.ReasonNotRecovered).WithHint("teamctl logs " + r.Name)
		}
	}
	return nil
}
