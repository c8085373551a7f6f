package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newMerge(a *app) *cobra.Command {
	var in tool.MergeIn
	var update bool
	cmd := &cobra.Command{
		Use:   "merge [MEMBER...|--ready|--resume]",
		Short: "Merge members' branches, through a gate",
		Long: `Merge the branches of members into a branch of the repository, by default the one that
is checked out there. The branches are stacked in order without touching any checkout;
the gate commands run on the stack in a scratch worktree and must pass; then the
target moves by compare-and-swap. A branch that conflicts, or that breaks the gate, is
left out (a failing stack is halved until the faulty branch is found), and its owner
gets a task with the conflict or the output; for a built-in worker the lead gets it.

Nothing is ever forced. A clean checkout of the target is fast-forwarded with it; a
checkout with changes is never touched, and its branch not moved. Members' branches
are not changed.

Requested merges are queued first (teamctl merge queue). If this command is killed,
the next merge, or --resume, completes its work. The exit status is not 0 unless every
branch was merged.`,
		Example: `  teamctl merge --ready --dry-run
  teamctl merge builder tester --gate 'go test ./...'
  teamctl merge --ready --into integration --strategy squash --gate make --refresh
  teamctl merge --resume`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Members, in.KeepCheckout = args, !update
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error { return a.merge(cmd.Context(), t, c, in) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&in.Ready, "ready", false, "all members that are idle, have committed everything, and have something to merge")
	f.BoolVar(&in.Resume, "resume", false, "only the merges in the queue")
	f.StringVar(&in.Repo, "repo", "", "with --ready: of this repository only, of several")
	f.StringVar(&in.Into, "into", "", "branch to merge into (default: the one checked out in the repository)")
	f.StringVar(&in.Strategy, "strategy", "merge", "merge (a merge commit each), rebase, or squash (one commit each)")
	f.StringArrayVar(&in.Gates, "gate", nil, "command that must pass in the merged tree; may be repeated")
	f.DurationVar(&in.GateTimeout, "gate-timeout", 30*time.Minute, "how long one gate command may take")
	f.BoolVar(&in.DryRun, "dry-run", false, "show the merges without running gates or moving branches")
	f.BoolVar(&in.Refresh, "refresh", false, "then rebase the other worktrees that are clean and idle")
	f.BoolVar(&update, "update-checkout", true, "fast-forward a clean checkout of the target")
	a.complete(cmd, "strategy", words("merge", "rebase", "squash"))
	cmd.AddCommand(newMergeQueue(a), newMergeCancel(a))
	return cmd
}

func (a *app) merge(ctx context.Context, t *tool.Team, c tool.Caller, in tool.MergeIn) error {
	if !a.out.json {
		in.Each = func(n team.LaneNote) {
			if n.State == team.LaneGating {
				a.out.note("running the gate on %s", laneNames(n.Items))
			}
		}
		in.Waits = func() {
			a.out.note("another merge of the team is running; waiting for it (Ctrl-C leaves this one in the queue)")
			a.out.hint("teamctl merge queue")
		}
	}
	res, err := t.Merge(ctx, c, in)
	if err != nil && len(res.Merges) == 0 {
		return err
	}
	if !a.out.value(res) {
		for _, n := range res.Notes {
			a.out.note("%s", n)
		}
		for _, m := range res.Merges {
			a.mergeLine(m, res.DryRun)
		}
		if len(res.Merges) == 0 {
			a.out.note("nothing to merge")
		}
		var without []string
		for _, r := range res.Refreshed {
			switch {
			case r.Done:
				a.out.line("%s rebased onto %s", r.Member, r.Into)
			case in.Refresh:
				a.out.note("%s was not rebased: %s", r.Member, r.Why)
			case !slices.ContainsFunc(res.Merges, func(m ledger.Merge) bool { return m.Member == r.Member }): // a branch merged just now has it
				without = append(without, r.Member)
			}
		}
		if len(without) > 0 {
			a.out.note("not rebased yet: %s (--refresh rebases those that are clean and idle)", strings.Join(without, ", "))
		}
	}
	if err != nil {
		if a.out.json { // stdout has a single value
			a.out.say("teamctl: ", "error: %v", err)
			return team.Errorf(team.CodeOf(err), "%w", errSaid)
		}
		return err
	}
	for _, m := range res.Merges {
		if in.DryRun {
			break // the plan is the result
		}
		if m.State != ledger.MergeLanded && m.State != ledger.MergeContained {
			if a.out.json {
				return team.Errorf(team.CodeConflict, "%w", errSaid)
			}
			return errMerge
		}
	}
	return nil
}

// errMerge ends a merge that did not merge every branch.
var errMerge = team.Errorf(team.CodeConflict, "not every branch was merged").WithReason(team.ReasonMergeIncomplete)

// workHint returns a hint about where the members' work is and how to get it, if there is any.
func (a *app) workHint(ctx context.Context, t *tool.Team) error {
	members, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Worktree != "" && m.Spec.WorktreeMode == "own" {
			a.out.hint("teamctl worktree diff")
			a.out.hint("teamctl merge --ready")
			return nil
		}
	}
	return nil
}

func laneNames(items []team.LaneItem) string {
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.Name
	}
	return strings.Join(names, ", ")
}

func (a *app) mergeLine(m ledger.Merge, dry bool) {
	s := &a.out.style
	var text string
	switch m.State {
	case ledger.MergeLanded:
		verb := s.Green("merged")
		if dry {
			verb = "would be merged"
		}
		text = fmt.Sprintf("%s into %s (%s)", verb, m.Target, m.Strategy)
	case ledger.MergeContained:
		text = "is in " + m.Target + " already"
	case ledger.MergeConflict:
		text = s.Red("conflicts") + " in " + printable(strings.Join(m.Files, ", "))
	case ledger.MergeRed:
		text = s.Red("breaks the gate") + ": " + printable(m.Why)
	case ledger.MergeFailed:
		text = s.Red("not merged") + ": " + printable(m.Why)
	case ledger.MergeQueued, ledger.MergeGating, ledger.MergeLanding, ledger.MergeCanceled:
		text = string(m.State)
	}
	if m.Task != "" {
		text += ", task " + m.Task
	}
	a.out.line("%s %s", m.Member, text)
	if m.Log != "" && m.State == ledger.MergeRed {
		a.out.hint("less %s", m.Log)
	}
}

func newPR(a *app) *cobra.Command {
	var into string
	var body bool
	cmd := &cobra.Command{
		Use:   "pr [MEMBER...]",
		Short: "Prepare pull requests of branches; nothing is pushed",
		Long: `Write the text of a pull request for the branch of each member (or of all with commits
that the target lacks) and print the commands that would push the branch and open it
with gh or glab, if installed. None of them is run.`,
		Example:           "  teamctl pr builder\n  teamctl pr builder --into release --body",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				list, err := t.PullRequests(cmd.Context(), c, args, into)
				if err != nil || a.out.value(map[string]any{"pullRequests": list}) {
					return err
				}
				if len(list) == 0 {
					a.out.note("no member has commits that the branch lacks")
				}
				for _, p := range list {
					a.out.line("# %s: %s into %s: %s", p.Member, p.Branch, p.Into, printable(p.Title))
					for _, w := range p.Warnings {
						a.out.note("%s: %s", p.Member, w)
					}
					if body {
						a.out.text(printableLines(p.Body))
					} else {
						a.out.line("# text: %s", p.BodyFile)
					}
					for _, argv := range p.Commands {
						a.out.line("%s", printable(team.ShellLine(argv)))
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "branch to merge into (default: the one checked out in the repository)")
	cmd.Flags().BoolVar(&body, "body", false, "also print the text")
	return cmd
}
