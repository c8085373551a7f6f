package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newWorktree(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worktree VERB",
		Short: "Manage members' worktrees: ls, diff, prepare, prune",
		Long: `Inspect the members' worktrees. Each member works in one of its own, on a branch of
its own. See their changes, the conflicts of merging them, and which members change
the same files. Inspecting changes nothing.`,
		Example: "  teamctl worktree ls\n  teamctl worktree status builder\n  teamctl worktree diff",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(newWorktreeLs(a), newWorktreeStatus(a), newWorktreeDiff(a), newWorktreePrepare(a), newWorktreePrune(a))
	return cmd
}

func newWorktreeLs(a *app) *cobra.Command {
	var in tool.WorktreesIn
	var noDisk bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the worktrees and the conflicts of merging them",
		Long: `List the worktree of each member, and of each former member that has left one. AHEAD
and BEHIND count commits relative to the branch that is checked out in the repository,
or --into. CONFLICTS are the files that would conflict if the branch were merged there
now; "?" means that this git cannot tell (it needs 2.38). SHARED counts files that
another member changes too.`,
		Example: "  teamctl worktree ls\n  teamctl worktree ls --into release --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Disk = !noDisk
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				res, err := t.Worktrees(cmd.Context(), in)
				if err != nil || a.out.value(res) {
					return err
				}
				if len(res.Worktrees) == 0 {
					a.out.note("no member has a worktree of its own")
					return nil
				}
				var rows [][]string
				for _, w := range res.Worktrees {
					name := w.Member
					if w.Left {
						name += " (left)"
					}
					if w.Err != nil {
						rows = append(rows, []string{name, "-", "-", "-", "-", "-", "-", "-", "-", printable(w.Problem)})
						continue
					}
					disk := "-"
					if in.Disk {
						disk = sizeText(w.DiskBytes)
					}
					rows = append(rows, []string{name, dash(w.Branch), count(w.ToTarget), count(w.FromTarget), work(w.WorktreeStatus), count(w.Unpushed),
						conflicts(w.WorktreeView), fmt.Sprint(sharedFiles(w)), disk, w.Path})
				}
				a.out.table([]string{"MEMBER", "BRANCH", "AHEAD", "BEHIND", "WORK", "UNPUSHED", "CONFLICTS", "SHARED", "DISK", "PATH"}, rows, false)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&in.Into, "into", "", "branch to compare with (default: the one checked out in the repository)")
	cmd.Flags().BoolVar(&noDisk, "no-disk", false, "do not compute disk usage")
	return cmd
}

// count formats a number that may be unknown.
func count(n int) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func conflicts(v team.WorktreeView) string {
	if !v.Foreseen {
		return "?"
	}
	return fmt.Sprint(len(v.Conflicts))
}

func sharedFiles(w tool.WorktreeInfo) int {
	seen := map[string]bool{}
	for _, s := range w.Shared {
		seen[s.Path] = true
	}
	return len(seen)
}

// work describes uncommitted work in a word.
func work(s team.WorktreeStatus) string {
	switch {
	case s.Operation != "":
		return "in a " + s.Operation
	case s.Clean():
		return "clean"
	}
	return fmt.Sprintf("%d changed", len(s.Changes))
}

// sizeText formats a size for people.
func sizeText(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"K", "M", "G", "T"} {
		if f < 1000 {
			break
		}
		f, unit = f/1024, u
	}
	if unit == "B" || f >= 10 {
		return fmt.Sprintf("%.0f%s", f, unit)
	}
	return fmt.Sprintf("%.1f%s", f, unit)
}

func newWorktreeStatus(a *app) *cobra.Command {
	var in tool.WorktreesIn
	cmd := &cobra.Command{
		Use:               "status [MEMBER...]",
		Short:             "Show the worktrees of members in detail",
		Example:           "  teamctl worktree status builder\n  teamctl worktree status",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Members, in.Disk = args, true
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				res, err := t.Worktrees(cmd.Context(), in)
				if err != nil || a.out.value(res) {
					return err
				}
				for i, w := range res.Worktrees {
					if i > 0 {
						a.out.line("")
					}
					a.worktreeStatus(w)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&in.Into, "into", "", "branch to compare with (default: the one checked out in the repository)")
	return cmd
}

func (a *app) worktreeStatus(w tool.WorktreeInfo) {
	into := w.Into
	row := func(name, format string, args ...any) {
		a.out.line("%s %s", view.Pad(name, 10), printable(fmt.Sprintf(format, args...)))
	}
	if w.Left {
		row("member", "%s (left)", w.Member)
	} else {
		row("member", "%s (%s, %s)", w.Member, w.Observed, w.Activity)
	}
	row("path", "%s", w.Path)
	if w.Repo != "" {
		row("repo", "%s", w.Repo)
	}
	if w.Err != nil {
		row("problem", "%s", w.Problem)
		return
	}
	row("branch", "%s at %s", dash(w.Branch), dash(short(w.Head)))
	if w.Base != "" {
		row("base", "%s, %d commits since", short(w.Base), w.Ahead)
	}
	if into != "" && w.ToTarget >= 0 {
		row("into", "%s: %d ahead, %d behind", into, w.ToTarget, w.FromTarget)
	}
	if w.Unpushed >= 0 {
		row("unpushed", "%d commits", w.Unpushed)
	}
	row("work", "%s", work(w.WorktreeStatus))
	row("disk", "%s", sizeText(w.DiskBytes))
	switch {
	case !w.Foreseen && into != "":
		row("conflicts", "unknown: this git cannot tell")
	case len(w.Conflicts) > 0:
		row("conflicts", "%s", strings.Join(w.Conflicts, ", "))
	}
	for _, s := range w.Shared {
		row("shared", "%s, also changed by %s", s.Path, s.Name)
	}
	for _, c := range w.Changes {
		a.out.line("  %s%s %s", dot(c.Index), dot(c.Work), printable(c.Path))
	}
}

func dot(letter string) string {
	if letter == "." {
		return " "
	}
	return letter
}

func newWorktreeDiff(a *app) *cobra.Command {
	var (
		stat  bool
		since string
	)
	cmd := &cobra.Command{
		Use:   "diff [MEMBER...]",
		Short: "Show the changes on members' branches",
		Long: `Show the diff of each member's worktree against the commit at which its branch began:
commits and uncommitted work together. Untracked files are listed. With --since the
diff is against another state: commit shows uncommitted work only, task what has
changed since the member claimed its last task, review since you last sent comments on
its changes.`,
		Example:           "  teamctl worktree diff --stat\n  teamctl worktree diff builder --since review",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				list, err := t.WorktreeDiffsSince(cmd.Context(), c, args, stat, tool.Since(since))
				if err != nil || a.out.value(map[string]any{"diffs": list}) {
					return err
				}
				for _, d := range list {
					a.out.line("# %s, branch %s since %s", d.Member, dash(d.Branch), dash(short(d.Base)))
					a.out.text(printableLines(d.Diff))
					for _, p := range d.Untracked {
						a.out.line("untracked: %s", printable(p))
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show a summary by file")
	cmd.Flags().StringVar(&since, "since", "", "compare with: commit, task, review (default: where the branch began)")
	a.complete(cmd, "since", words("commit", "task", "review"))
	return cmd
}

func newWorktreePrepare(a *app) *cobra.Command {
	var in tool.PrepareIn
	cmd := &cobra.Command{
		Use:   "prepare [MEMBER...]",
		Short: "Set up worktrees again: copies, links, setup commands",
		Long: `Set up worktrees again. A new worktree gets a copy of the ignored files named by
.worktreeinclude of the repository (such as .env), the files that the team file copies
or links, and its setup commands run. This repeats that for existing worktrees; no
file is overwritten. Setup commands that came with the repository run only after a
person has read and allowed them, once on this machine for the same commands.`,
		Example:           "  teamctl worktree prepare builder\n  teamctl worktree prepare --allow",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Members = args
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				list, err := t.Prepare(cmd.Context(), c, in)
				if list == nil {
					return err
				}
				if a.out.value(map[string]any{"prepared": list}) {
					if err != nil {
						return team.Errorf(team.CodeOf(err), "%w", errSaid)
					}
					return nil
				}
				for _, p := range list {
					if p.Err == nil {
						a.out.line("%s: %d files copied, %d linked, %d commands run", p.Member, p.Copied, len(p.Linked), len(p.Ran))
					}
					for _, n := range p.Notes {
						a.out.note("%s: %s", p.Member, printable(n))
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&in.Allow, "allow", false, "allow the setup commands that the repository brought")
	return cmd
}

func newWorktreePrune(a *app) *cobra.Command {
	var in tool.PruneTreesIn
	cmd := &cobra.Command{
		Use:   "prune [MEMBER...]",
		Short: "Remove clean worktrees of members that have left",
		Long: `Remove the worktrees left by former members, all or the named ones. A worktree with
uncommitted changes, ignored files with work or a process in it is kept, and the
reason is reported. A branch with commits of its own stays: a member that comes back
continues on it.`,
		Example: "  teamctl worktree prune --dry-run\n  teamctl worktree prune builder",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Members = args
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				list, err := t.PruneTrees(cmd.Context(), c, in)
				if err != nil || a.out.value(map[string]any{"worktrees": list}) {
					return err
				}
				if len(list) == 0 {
					a.out.note("no member has left a worktree")
				}
				for _, p := range list {
					switch {
					case p.Status == "kept":
						a.out.line("kept %s of %s: %s", p.Path, p.Member, p.Reason)
					case p.Status == tool.AlreadyRemoved:
						a.out.line("%s of %s is removed already", p.Path, p.Member)
					case in.DryRun:
						a.out.line("would remove %s of %s", p.Path, p.Member)
					case p.BranchDeleted:
						a.out.line("removed %s of %s, and branch %s, which had no commits of its own", p.Path, p.Member, p.Branch)
					default:
						a.out.line("removed %s of %s; branch %s stays", p.Path, p.Member, dash(p.Branch))
					}
					if p.Note != "" {
						a.out.note("%s: %s", p.Member, p.Note)
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only show what would be removed")
	return cmd
}
