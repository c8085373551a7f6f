package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// usageBy is the usage with that of tasks or days.
type usageBy struct {
	tool.Usage
	Tasks []view.Spent `json:"tasks,omitempty"`
	Rest  *view.Spent  `json:"rest,omitempty"`
	Days  []view.Spent `json:"days,omitempty"`
}

func newUsage(a *app) *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "usage [VERB]",
		Short: "Show tokens, cost, budgets and usage limits",
		Long: `Show the members' usage of their models, as far as their CLIs report it, the budgets,
and the providers at a limit.

At 80 % of a budget you are notified (teamctl notify). At 100 % the turns of its
members are interrupted, and they get no mail and are not started until the budget is
raised. When an agent's CLI reports a usage limit, the same applies to all members of
that agent kind until the limit is over and you run "teamctl usage resume"; a team
file with "onLimit: resume" makes the team continue by itself. For agents of kind llm
a limit applies to all that use its provider (llm:PROVIDER); one of them probes when
it should be over.`,
		Example: `  teamctl usage
  teamctl usage --by task
  teamctl usage budget --tokens 5M --cost 20
  teamctl usage budget ann --tokens 500k
  teamctl usage resume claude`,
		Args: unknownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				u, err := t.Usage(cmd.Context())
				if err != nil || by == "" && a.out.value(u) {
					return err
				}
				if by == "" {
					a.usageTable(u)
					return nil
				}
				return a.usageBy(cmd, t, u, by)
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "what to show the usage `by`: task, day")
	cmd.AddCommand(newUsageBudget(a), &cobra.Command{
		Use: "resume AGENT", Short: "Resume after a usage limit", Example: "  teamctl usage resume claude\n  teamctl usage resume codex",
		Args: takes(1, 1, "an agent, such as claude or llm:anthropic"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if err := t.ResumeUsage(cmd.Context(), c, args[0]); err != nil {
					return err
				}
				if !a.out.value(map[string]string{"resumed": args[0]}) {
					a.out.line("%s continues", args[0])
				}
				return nil
			})
		},
	})
	return cmd
}

// usageBy shows the usage by task or by day.
func (a *app) usageBy(cmd *cobra.Command, t *tool.Team, u tool.Usage, by string) error {
	if by != "task" && by != "day" {
		return usage(cmd, "--by does not take %q: want task or day", by)
	}
	v, err := look.UsageByAll(cmd.Context(), t)
	if err != nil {
		return err
	}
	out := usageBy{Usage: u, Tasks: v.Tasks, Rest: &v.Rest}
	if by == "day" {
		out = usageBy{Usage: u, Days: v.Days}
	}
	if a.out.value(out) {
		return nil
	}
	var rows [][]string
	for _, x := range append(slices.Clip(out.Tasks), out.Days...) {
		rows = append(rows, []string{x.Name, x.Amount(), x.Money(), x.Subject})
	}
	if by == "day" {
		for i := range rows {
			rows[i] = rows[i][:3]
		}
		a.out.table([]string{"DAY", "TOKENS", "COST"}, rows, false)
		return nil
	}
	rows = append(rows, []string{"-", v.Rest.Amount(), v.Rest.Money(), "without a task"})
	a.out.table([]string{"TASK", "TOKENS", "COST", "SUBJECT"}, rows, false)
	return nil
}

func newUsageBudget(a *app) *cobra.Command {
	var tokens, cost, turns string
	var none bool
	cmd := &cobra.Command{
		Use: "budget [MEMBER]", Short: "Set the budget of the team or of a member",
		Example: "  teamctl usage budget --tokens 5M\n  teamctl usage budget ann --cost 2.50\n  teamctl usage budget ann --none",
		Args:    takes(0, 1, "a member"), ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			if none == (tokens != "" || cost != "" || turns != "") {
				return usage(cmd, "a budget needs --tokens, --cost, --turns or several of them; --none removes it")
			}
			b, err := team.ParseBudget(tokens, cost, turns)
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				name := ""
				if len(args) > 0 {
					if err := memberNames(cmd.Context(), t, args); err != nil {
						return err
					}
					name = args[0]
				}
				if err := t.SetBudget(cmd.Context(), c, name, b); err != nil {
					return err
				}
				u, err := t.Usage(cmd.Context())
				if err != nil || a.out.value(u) {
					return err
				}
				a.usageTable(u)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&tokens, "tokens", "", "input and output `tokens`, without cached input: 500000, 500k, 2M")
	cmd.Flags().StringVar(&cost, "cost", "", "US `dollars`, as counted by the agent's CLI")
	cmd.Flags().StringVar(&turns, "turns", "", "ended `turns` of agents of kind llm; turns of other programs are not counted")
	cmd.Flags().BoolVar(&none, "none", false, "remove the budget")
	return cmd
}

func (a *app) usageTable(u tool.Usage) {
	row := func(name string, m tool.MemberUsage) []string {
		n := func(v int64) string {
			if !m.Counted {
				return "-"
			}
			return strconv.FormatInt(v, 10)
		}
		cost, budget := "-", "-"
		if m.CostUSD > 0 || m.CostKnown {
			cost = fmt.Sprintf("$%.2f", m.CostUSD)
		}
		if !m.Budget.None() {
			budget = fmt.Sprintf("%d%% of", int(m.Share*100))
			if m.Budget.Tokens > 0 {
				budget += fmt.Sprintf(" %d", m.Budget.Tokens)
			}
			if m.Budget.CostUSD > 0 {
				budget += fmt.Sprintf(" $%.2f", m.Budget.CostUSD)
			}
			if m.Budget.Turns > 0 {
				budget += fmt.Sprintf(" %d turns", m.Budget.Turns)
			}
		}
		return []string{name, m.Agent, n(m.InputTokens), n(m.CachedTokens), n(m.OutputTokens), cost, budget}
	}
	var rows [][]string
	for _, m := range u.Members {
		rows = append(rows, row(m.Name, m))
	}
	rows = append(rows, row("(team)", u.Team))
	a.out.table([]string{"MEMBER", "AGENT", "INPUT", "CACHED", "OUTPUT", "COST", "BUDGET"}, rows, false)
	for _, m := range u.Members {
		if m.Uncounted > 0 {
			a.out.note("%s: %s ended before their answer, and what they took is not known", m.Name, plural(int(m.Uncounted), "request"))
		}
		if m.Held != "" {
			a.out.note("%s gets no prompts: %s", m.Name, printable(m.Held))
		}
	}
	for _, l := range u.Limited {
		until := "it has not said until when"
		if l.Until != 0 {
			until = "until " + time.UnixMilli(l.Until).Format("Mon 15:04")
		}
		a.out.note("%s has reached a usage limit, %s", l.Agent, until)
		if u.OnLimit == "wait" {
			a.out.hint("teamctl usage resume %s", l.Agent)
		}
	}
}
