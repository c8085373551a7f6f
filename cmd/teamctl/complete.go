package main

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete registers the completion of a flag. The flag exists: an error here is a mistake that
// the tests of completion show.
func (a *app) complete(cmd *cobra.Command, flag string, f completion) {
	_ = cmd.RegisterFlagCompletionFunc(flag, f)
}

// words completes from a fixed list.
func words(list ...string) completion {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return list, noFiles }
}

// completeTeams completes names of teams without opening a ledger.
func (a *app) completeTeams(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	home, err := findHome()
	if err != nil {
		return nil, noFiles
	}
	dirs, err := os.ReadDir(home.TeamsDir())
	if err != nil {
		return nil, noFiles
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			names = append(names, d.Name())
		}
	}
	return names, noFiles
}

// fromTeam completes from the team's ledger. It only reads, and if it fails it completes nothing.
func (a *app) fromTeam(read func(context.Context, *tool.Team) []string) completion {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		t, _, err := a.open(ctx)
		if err != nil {
			return nil, noFiles
		}
		var out []string
		for _, word := range read(ctx, t) {
			name, _, _ := strings.Cut(word, "\t")
			taken := false
			for _, g := range given {
				taken = taken || g == name
			}
			if !taken {
				out = append(out, word)
			}
		}
		if t.Close() != nil {
			return nil, noFiles
		}
		return out, noFiles
	}
}

// completeMembers completes names of members, including the lead if withLead.
func (a *app) completeMembers(withLead bool) completion {
	return a.fromTeam(func(ctx context.Context, t *tool.Team) []string {
		members, err := t.Ledger.Members(ctx, false)
		if err != nil {
			return nil
		}
		var names []string
		for _, m := range members {
			if withLead || m.Name != team.LeadName {
				names = append(names, m.Name+"\t"+string(m.Observed))
			}
		}
		return names
	})
}

// completeTasks completes ids of the tasks that match.
func (a *app) completeTasks(f ledger.TaskFilter) completion {
	return a.fromTeam(func(ctx context.Context, t *tool.Team) []string {
		f.Limit = 200
		tasks, err := t.Ledger.Tasks(ctx, f)
		if err != nil {
			return nil
		}
		var ids []string
		for _, task := range tasks {
			ids = append(ids, task.ID+"\t"+view.Clean(task.Subject))
		}
		return ids
	})
}

// first completes the first argument only.
func first(f completion) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return f(cmd, args, toComplete)
	}
}
