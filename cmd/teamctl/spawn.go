package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// spawnFlags are the flags of spawn.
type spawnFlags struct {
	in                     tool.SpawnIn
	env                    []string
	window, session, split bool
	memory, pids, cpu      string
}

// asked returns the spawn requested by the command line.
func (f *spawnFlags) asked(cmd *cobra.Command, args []string) (in tool.SpawnIn, err error) {
	in = f.in
	in.Name = args[0]
	if in.Bypass && in.Mode == "" {
		in.Mode = team.ModeBypass
	}
	if d := cmd.ArgsLenAtDash(); d >= 0 {
		in.Command = args[d:]
	}
	if cmd.Flags().Changed("count") && in.Count < 1 {
		return in, usage(cmd, "--count must be 1 or more")
	}
	if in.Env, err = pairs(cmd, "env", f.env); err != nil {
		return in, err
	}
	if in.Limits, err = team.ParseLimits(f.memory, f.pids, f.cpu); err != nil {
		return in, err
	}
	switch {
	case f.window && f.session, f.window && f.split, f.session && f.split:
		return in, usage(cmd, "--split, --window and --session exclude each other")
	case f.window:
		in.Layout = team.PaneWindow
	case f.session:
		in.Layout = team.PaneSession
	case f.split:
		in.Layout = team.PaneSplit
	}
	in.Writable = slices.Clone(in.Writable)
	for i, path := range in.Writable {
		if in.Writable[i], err = absolute(path); err != nil {
			return in, err
		}
	}
	in.TMUX, in.TMUXPane = os.Getenv("TMUX"), os.Getenv("TMUX_PANE")
	return in, nil
}

func newSpawn(a *app) *cobra.Command {
	var flags spawnFlags
	cmd := &cobra.Command{
		Use:   "spawn NAME [-- COMMAND ARG...]",
		Short: "Start members",
		Long: `Start a member in a pane, a worktree and a branch of its own. Without more
it is the built-in worker, which takes tasks from the board and runs them. Any
command is a member too: give it after --.

Inside tmux your window is split: you at the left, members at the right, the
focus stays where it is. Outside, the team gets a tmux server of its own, and
teamctl attach shows it. A name that is taken gets -2, -3, and so on; one whose
member has left takes its worktree and branch again, unless you say --fresh.`,
		Example: `  teamctl spawn ann --agent claude --prompt "review the parser"
  teamctl spawn web --worktree none --restart always -- npm run dev
  teamctl spawn fixer --branch bugfix -- claude
  teamctl spawn reviewer --role reviewer --prompt "read what builder commits"
  teamctl spawn probe -- bash
  teamctl spawn builder -n 3`,
		Args: func(cmd *cobra.Command, args []string) error {
			n := len(args)
			if d := cmd.ArgsLenAtDash(); d >= 0 {
				n = d
				if d == len(args) {
					return usage(cmd, "there is no command after --")
				}
			}
			if f := tookDash(cmd); f != nil {
				return usage(cmd, "flag --%s needs a value, found --", f.Name)
			}
			switch {
			case n == 0:
				return usage(cmd, "teamctl spawn needs the name of the member")
			case n > 1:
				hint, command := "a command goes after --: teamctl spawn ", args[1:]
				if n < len(args) {
					hint, command = "start one member at a time: teamctl spawn ", args[n:]
				}
				return usage(cmd, "teamctl spawn takes one name, found %q too", args[1]).WithHint(hint + args[0] + " -- " + team.ShellLine(command))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if cmd.ArgsLenAtDash() >= 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return nil, noFiles
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, err := flags.asked(cmd, args)
			if err != nil {
				return err
			}
			if in.Agent != "" {
				if err := a.knownAgent(in.Agent); err != nil {
					return err
				}
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				stop := a.checkouts(cmd.Context(), t)
				out, err := t.Spawn(cmd.Context(), c, in)
				stop()
				tidy(out)
				if len(out) > 0 && !a.out.json {
					a.saidName(in.Name, out)
				}
				if err == nil || !a.out.json {
					a.spawned(t, out)
				}
				return err
			})
		},
	}
	flags.add(cmd)
	a.complete(cmd, "agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, i := range a.agents() {
			names = append(names, i.Name+"\t"+i.Description)
		}
		return names, noFiles
	})
	a.complete(cmd, "role", words("executor", "reviewer", "observer", "leader", "operator"))
	a.complete(cmd, "restart", words("never", "on-failure", "always"))
	a.complete(cmd, "backend", words("auto", "tmux", "pty", "in-process"))
	a.complete(cmd, "mcp", words("all", "team"))
	a.complete(cmd, "permission-mode", words(modes()...))
	return cmd
}

// add declares the flags.
func (f *spawnFlags) add(cmd *cobra.Command) {
	p := cmd.Flags()
	p.IntVarP(&f.in.Count, "count", "n", 1, "how many, started in parallel")
	p.StringVar(&f.in.Agent, "agent", "", "kind of agent (default worker, or command after --); see teamctl agents")
	p.StringVar(&f.in.Backend, "backend", "", "where it runs: auto (default), tmux, pty or in-process")
	p.BoolVar(&f.split, "split", false, "split the current tmux window")
	p.BoolVar(&f.window, "window", false, "a tmux window of its own")
	p.BoolVar(&f.session, "session", false, "in the team's own tmux session")
	p.StringVar(&f.in.Prompt, "prompt", "", "first message to the agent")
	p.StringVar((*string)(&f.in.Role), "role", "", "executor (default), reviewer, observer, leader or operator")
	p.StringVar((*string)(&f.in.Restart), "restart", "", "never, on-failure (default) or always")
	p.StringArrayVar(&f.env, "env", nil, "environment variable KEY=VALUE; may be repeated")
	p.StringVar(&f.in.WorktreeMode, "worktree", "", "own (default with a repository), none, or the PATH of a directory")
	p.StringVar(&f.in.Repo, "repo", "", "name of the repository to work on, of several")
	p.StringVar(&f.in.Base, "base", "", "revision that its new branch starts from (default the team's)")
	p.BoolVar(&f.in.Fresh, "fresh", false, "a new worktree and branch, though a member of the name has left its own")
	p.BoolVar(&f.in.Asks, "asks", false, "the agent answers shutdown requests: ask it before it is ended, even if it has read no mail")
	p.StringVar((*string)(&f.in.MCP), "mcp", "", "MCP servers that it starts with: all (default), those of its program's configuration as well, or team, teamctl's only")
	p.BoolVar(&f.in.Confine, "confine", false, "for agent llm: its tools may write only in its worktree, the git directory and a temporary directory")
	p.StringArrayVar(&f.in.Writable, "writable", nil, "with --confine: further file or directory that it can write; may be repeated")
	p.StringVar(&f.in.Branch, "branch", "", "existing branch to work on (default a new one, teamctl/TEAM/NAME)")
	p.StringVar(&f.in.Cwd, "cwd", "", "directory to run in without a worktree of its own")
	p.StringVar(&f.in.AgentType, "type", "", "agent type handed to the agent")
	p.StringVar(&f.in.Model, "model", "", "model for agents that have one")
	p.StringVar((*string)(&f.in.Mode), "permission-mode", "", "default, acceptEdits, bypassPermissions, plan, delegate or dontAsk (default the lead's, where that is acceptEdits or dontAsk)")
	p.BoolVar(&f.in.Bypass, "dangerously-skip-permissions", false, "permission mode bypassPermissions, which needs this flag")
	p.StringVar(&f.memory, "memory", "", "the most memory that it may use with all that it starts, as 2GiB")
	p.StringVar(&f.pids, "pids", "", "the most processes and threads that it may have, as 200")
	p.StringVar(&f.cpu, "cpu", "", "the most of a core that it may use, as 150%")
	p.BoolVar(&f.in.Exact, "exact", false, "fail if the name is taken, instead of taking NAME-2")
}

// tidy orders what was spawned at once by name. Of several the further ones have
// a number because that was asked for, not because a name was taken.
func tidy(list []tool.Spawned) {
	slices.SortFunc(list, func(x, y tool.Spawned) int { return strings.Compare(x.Name, y.Name) })
	for i := range list {
		list[i].Renamed = list[i].Renamed && len(list) == 1
	}
}

// saidName reports once, before anything else, that a name was changed. A warning about that is
// not repeated.
func (a *app) saidName(asked string, list []tool.Spawned) {
	key, err := team.AgentKey(asked)
	switch {
	case err != nil:
	case len(list) == 1 && list[0].Renamed:
		w := slices.IndexFunc(list[0].Warnings, func(w string) bool { return strings.HasPrefix(w, "the name ") })
		if w < 0 {
			a.out.note("it is %s: the name %q was taken", list[0].Name, key)
			return
		}
		a.out.note("it is %s: %s", list[0].Name, printable(list[0].Warnings[w]))
		if !a.out.json {
			list[0].Warnings = slices.Delete(list[0].Warnings, w, w+1)
		}
	case key != asked:
		a.out.note("the name %q is %s here; both are understood", asked, key)
	}
}

// spawned reports new members: those that came up, and those that did not.
func (a *app) spawned(t *tool.Team, list []tool.Spawned) {
	if list == nil {
		list = []tool.Spawned{}
	}
	if a.out.value(map[string]any{"members": list}) {
		return
	}
	private := false
	for _, s := range list {
		if s.Approval != 0 {
			a.out.line("%s is not spawned yet: it waits for approval %d", s.Name, s.Approval)
			continue
		}
		if s.Error != "" && len(list) == 1 {
			continue // the command's own error reports it
		}
		if s.Error != "" {
			a.out.note("%s did not start: %s", s.Name, printable(s.Error))
			continue
		}
		line := "spawned " + a.out.style.Member(s.Color, s.AgentID)
		if s.PaneID != "" {
			line += " in pane " + s.PaneID
		}
		if s.Branch != "" {
			line += " on branch " + s.Branch
		}
		if s.Again {
			line += ", as it left them"
		}
		a.out.line("%s", line)
		for _, w := range s.Warnings {
			a.out.note("warning: %s: %s", s.Name, printable(w))
		}
		private = private || s.Pane.Private
	}
	if private {
		a.out.hint("teamctl attach --team %s", t.Layout.Key)
	}
}

// pairs reads KEY=VALUE flags.
func pairs(cmd *cobra.Command, flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usage(cmd, "--%s takes KEY=VALUE, not %q", flag, kv)
		}
		m[k] = v
	}
	return m, nil
}

// memberNames checks names before anything is done about them.
func memberNames(ctx context.Context, t *tool.Team, names []string) error {
	for _, n := range names {
		m, err := t.Member(ctx, n)
		if err != nil {
			return err
		}
		if m.Name == team.LeadName {
			return team.Errorf(team.CodeInvalid, "the lead is you: no process of teamctl's").WithReason(team.ReasonLead).
				WithHint("teamctl ps")
		}
	}
	return nil
}
