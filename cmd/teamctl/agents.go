package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newAgents(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "Manage kinds of agent and agent specs: ls, show and more",
		Long: `List the agent kinds that can be spawned, followed by the team's agent specs for
agents of kind llm (--type), each with a model, instructions, tools and skills. Your
own kinds are defined in $TEAMCTL_HOME/agents/NAME.yaml:

    description: what it is
    launch: [mine, --model, "{model}", "{prompt}"]
    ready: ['^>']
    busy: ['esc to interrupt']
    input: '^> ?(?P<text>.*)$'
    enter: {plain: true}

launch, resume and env may use {prompt}, {model}, {mode}, {name}, {team}, {dir},
{bundle}, {mcp} and {conversation}. ready and busy are patterns of lines of the
screen; ready must also match with a text in the input box, since text is sent only
while the agent is seen to be idle. input matches the line of the input box, empty is
its content without a text. With plain, text is typed as one line, for programs that
treat each line as a prompt. mail: pull leaves the mail to the agent's own tools, and
needs no input. asks: true means that the agent answers shutdown requests. teamctl
agents test NAME shows what works.`,
		Example: "  teamctl agents\n  teamctl agents show claude\n  teamctl agents test claude\n  teamctl agents create reader --allow read,grep",
		Args:    unknownVerb,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listAgents(cmd.Context()) },
	}
	show := &cobra.Command{
		Use: "show NAME", Short: "Show the abilities of an agent kind, or an agent spec", Args: takes(1, 1, "the name of a kind of agent, or of an agent spec"),
		Example: "  teamctl agents show claude\n  teamctl agents show reviewer --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.adapters()
			if err != nil {
				return err
			}
			p, err := l.Show(args[0])
			if team.IsCode(err, team.CodeNotFound) || team.IsCode(err, team.CodeInvalid) {
				if shown, serr := a.showSpecOf(cmd.Context(), args[0]); shown || serr != nil {
					return serr
				}
			}
			if err != nil || a.out.value(p) {
				return err
			}
			a.showAgent(p)
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, noFiles
			}
			return a.agentNames(), noFiles
		},
	}
	cmd.AddCommand(&cobra.Command{
		Use: "ls", Short: "List the kinds of agent, and the agent specs of the team", Args: takes(0, 0, ""), Example: "  teamctl agents ls\n  teamctl agents ls --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listAgents(cmd.Context()) },
	}, show, newAgentsCreate(a), newAgentsUpdate(a), newAgentsRm(a), newAgentsExport(a), newAgentsImport(a), newAgentsTest(a))
	return cmd
}

// adapters is the table of agents with the person's own.
func (a *app) adapters() (adapter.Launcher, error) {
	home, err := findHome()
	if err != nil {
		return adapter.Launcher{}, err
	}
	return adapters("", home)
}

// knownAgent refuses a kind of agent that there is not.
func (a *app) knownAgent(name string) error {
	if _, err := adapter.Lookup(name); err == nil {
		return nil
	}
	l, err := a.adapters()
	if err != nil {
		return err
	}
	_, err = l.Lookup(name)
	return err
}

// agents returns the agent kinds that can be offered, without broken files of the user's own.
func (a *app) agents() []adapter.Info {
	l, err := a.adapters()
	if err != nil {
		return adapter.Agents()
	}
	return l.Agents()
}

func (a *app) agentNames() []string {
	var names []string
	for _, i := range a.agents() {
		names = append(names, i.Name+"\t"+i.Description)
	}
	return names
}

func (a *app) listAgents(ctx context.Context) error {
	l, err := a.adapters()
	if err != nil {
		return err
	}
	agents := l.Agents()
	specs, err := a.specsOf(ctx)
	if err != nil {
		return err
	}
	if a.out.value(map[string]any{"agents": agents, "specs": specs}) {
		return nil
	}
	var rows [][]string
	for _, i := range agents {
		p, err := l.Show(i.Name)
		if err != nil {
			return err
		}
		rows = append(rows, []string{i.Name, yes(i.NeedsModel), ways(p.Ways), i.Description})
	}
	a.out.table([]string{"AGENT", "MODEL", "MAIL BY", "WHAT IT IS"}, rows, false)
	a.listSpecs(specs)
	return nil
}

// showSpecOf shows an agent spec of the team, if it has one of that name.
func (a *app) showSpecOf(ctx context.Context, name string) (shown bool, err error) {
	err = a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
		s, err := t.Spec(ctx, name)
		if err == nil {
			shown, err = true, a.showSpec(s)
		}
		return err
	})
	switch team.ReasonOf(err) {
	case team.ReasonTeamNotFound, team.ReasonTeamAmbiguous, team.ReasonSpecNotFound:
		return false, nil
	}
	return shown, err
}

func ways(list []adapter.Way) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

func (a *app) showAgent(p adapter.Profile) {
	a.out.line("%s: %s", p.Name, p.Description)
	rows := [][]string{
		{"program", dash(p.Program)},
		{"tested", dash(p.Tested)},
		{"mail by", ways(p.Ways)},
		{"while it works", p.MidTurn},
		{"while it is idle", p.Idle},
		{"states from", strings.Join(p.States, ", ")},
		{"conversation", p.Conversation},
		{"tools", p.Tools},
		{"approvals", p.Approvals},
		{"plan mode", p.PlanMode},
		{"a new mode", p.NewMode},
		{"interrupt", p.Interrupt},
		{"stop", p.Stop},
		{"configured by", p.Config},
	}
	for _, m := range p.Modes {
		rows = append(rows, []string{"mode " + string(m.Mode), m.As})
	}
	for _, v := range p.Versions {
		rows = append(rows, []string{"version " + v.Range, v.What})
	}
	for _, r := range rows {
		a.out.line("  %-24s %s", r[0], r[1])
	}
}
