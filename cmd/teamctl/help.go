package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
)

// helpWidth is the line width of help texts.
const helpWidth = 80

// daily lists the commands on the first screen of the help: those for an ordinary day.
var daily = []struct {
	title string
	paths []string
}{
	{"Start", []string{"create", "spawn", "task add", "up"}},
	{"Look", []string{"status", "ps", "board", "show", "logs"}},
	{"Talk", []string{"send", "inbox", "approvals"}},
	{"Work", []string{"wait", "worktree diff", "merge"}},
	{"End", []string{"stop", "shutdown", "delete"}},
}

// ending is a row of the table of commands that end something.
type ending struct{ verb, what, then, back string }

// endings says which command ends what, how, and how to undo it.
var endings = []ending{
	{"interrupt", "an agent's turn", "waits for its next message", "send"},
	{"pause", "nothing; processes halt", "keeps its terminal, tasks", "resume"},
	{"stop", "members, asking first", "stay in the team", "start"},
	{"shutdown", "members, asking first", "leave; worktrees stay", "spawn"},
	{"kill", "members, at once", "leave; a checkpoint is made", "spawn"},
	{"leave", "a membership by join", "its process is yours to end", "join"},
	{"down", "a team, as shutdown does", "deletes it, as delete does", "up"},
	{"delete", "a team at rest", "unmerged work is kept", "create"},
	{"task release", "a claim", "is ready for others", "task claim"},
	{"task cancel", "a task, also in progress", "counts as failed", "task retry"},
	{"task rm", "a task nobody works on", "is gone; its history stays", "task add"},
	{"pane hide", "a pane's place on screen", "the member goes on", "pane unhide"},
}

// topic is a help text that belongs to no command.
type topic struct {
	name, short string
	show        func(*app, *cobra.Command)
}

// topics are the arguments of help that are not commands.
var topics = []topic{
	{"all", "every command", (*app).helpAll},
	{"ending", "what ends what, and what brings it back", (*app).helpEnding},
	{"flags", "flags and exit statuses of every command", (*app).helpFlags},
}

// helps replaces cobra's help of root and its commands by ours.
func (a *app) helps(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if c == root {
			a.firstScreen(root)
			return
		}
		a.out.text(filled(cmp.Or(c.Long, c.Short+".")) + c.UsageString())
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), usageText(c))
		return err
	})
}

// usageText is the part of a help text below its prose. Examples come last, so that they are still
// on the screen when the rest has scrolled by.
func usageText(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nUsage:\n  %s\n", c.UseLine())
	if len(c.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso: %s\n", strings.Join(c.Aliases, ", "))
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\nVerbs:\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				b.WriteString(helpLine("  "+view.Pad(s.Name(), s.NamePadding()), s.Short))
			}
		}
	}
	if flags := c.LocalFlags(); flags.HasAvailableFlags() {
		b.WriteString("\nFlags:\n" + flags.FlagUsagesWrapped(helpWidth))
	}
	b.WriteString("\nEvery command takes --team, --as, --json and -o: teamctl help flags.\n")
	if c.Example != "" {
		b.WriteString("\nExamples:\n" + c.Example + "\n")
	}
	return b.String()
}

// firstScreen writes the help of teamctl itself. It fits a terminal of 80x24.
func (a *app) firstScreen(root *cobra.Command) {
	a.out.text(root.Short + ": teamctl COMMAND [ARGUMENT...]\n\n")
	for _, g := range daily {
		title := g.title
		for _, path := range g.paths {
			if c, _, err := root.Find(strings.Fields(path)); err == nil {
				a.out.text(helpLine("  "+view.Pad(title, 7)+view.Pad(path, 13), c.Short))
			}
			title = ""
		}
	}
	a.out.text(helpLine("  More   help all     ", "List every command") +
		helpLine("         help ending  ", "Show what ends what, and what brings it back") +
		"Commands and nouns (team, member, task, message, worktree, ...) take --help.\n")
}

// helpAll lists every command once, by its shortest form.
func (a *app) helpAll(root *cobra.Command) {
	for i, g := range root.Groups() {
		if i > 0 {
			a.out.text("\n")
		}
		a.out.text(g.Title + "\n")
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				a.leaves(c)
			}
		}
	}
	a.out.text("\nteamctl COMMAND --help has the flags and examples of each.\n")
}

// leaves lists a command, or its subcommands if it does nothing by itself.
func (a *app) leaves(c *cobra.Command) {
	path := strings.TrimPrefix(c.CommandPath(), "teamctl ")
	if !c.IsAvailableCommand() || shortForm(path) != "" {
		return
	}
	if !strings.HasSuffix(c.Use, " VERB") {
		a.out.text(helpLine("  "+view.Pad(path, 18), c.Short))
	}
	for _, s := range c.Commands() {
		if c.Name() != "completion" {
			a.leaves(s)
		}
	}
}

// helpEnding writes the table of endings.
func (a *app) helpEnding(*cobra.Command) {
	a.out.text("What ends what, from the mildest on:\n\n")
	line := func(verb, what, then, back string) {
		a.out.text(fmt.Sprintf("%-12s  %-24s  %-27s  %s\n", verb, what, then, back))
	}
	line("VERB", "ENDS", "AND THEN", "BACK WITH")
	for _, e := range endings {
		line(e.verb, e.what, e.then, e.back)
	}
	a.out.text(`
A member that is stopped, shut down or killed gives its task back: others can
claim it. Its branch and its commits stay in every case.
`)
}

// helpFlags lists the global flags and the exit statuses.
func (a *app) helpFlags(root *cobra.Command) {
	a.out.text("Flags of every command:\n" + root.PersistentFlags().FlagUsagesWrapped(helpWidth) + `
A command that lists takes -w, --watch too: it lists again on every change.

Exit status:
  0  done                    5  denied
  1  internal error, or      6  a limit is reached
     a task failed           7  unavailable (tmux, git, supervisor)
  2  invalid use or input    8  timeout
  3  not found               128 + N  ended by signal N
  4  conflict
`)
}

func helpLine(left, short string) string {
	return view.Cut(left+"  "+short, helpWidth-1) + "\n"
}

// filled wraps the paragraphs of a help text at helpWidth; indented ones are preserved.
func filled(text string) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") {
			continue
		}
		var b strings.Builder
		at := 0
		for _, w := range strings.Fields(p) {
			n := view.Width(w)
			switch {
			case at == 0:
			case at+1+n >= helpWidth:
				b.WriteByte('\n')
				at = 0
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(w)
			at += n
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

// newHelp is "teamctl help COMMAND" and "teamctl help TOPIC".
func newHelp(a *app, root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND... | all | ending | flags]",
		Short: "Show the help of a command, or all commands",
		Long: `Show the help of a command. all lists every command, ending what ends what and what
brings it back, flags the flags and exit statuses of every command.`,
		Example: "  teamctl help task add\n  teamctl help all",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				for _, t := range topics {
					if t.name == args[0] {
						t.show(a, root)
						return nil
					}
				}
			}
			cmd, rest, err := root.Find(args)
			if cmd == nil || err != nil || len(rest) > 0 {
				if cmd == nil {
					cmd = root
				}
				if len(rest) == 0 {
					rest = args
				}
				return unknownVerb(cmd, rest)
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var verbs []string
			for _, c := range cmd.Commands() {
				if c.IsAvailableCommand() {
					verbs = append(verbs, c.Name()+"\t"+c.Short)
				}
			}
			if cmd == root {
				for _, t := range topics {
					verbs = append(verbs, t.name+"\t"+t.short)
				}
			}
			return verbs, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
