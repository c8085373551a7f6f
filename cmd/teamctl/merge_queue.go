package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

func newMergeQueue(a *app) *cobra.Command {
	var all, watch bool
	cmd := &cobra.Command{
		Use:     "queue",
		Short:   "Show queued and running merges",
		Example: "  teamctl merge queue --watch\n  teamctl merge queue --all --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				if watch {
					return a.watchMerges(cmd.Context(), t)
				}
				limit := 0
				if all {
					limit = 50
				}
				list, err := t.MergeQueue(cmd.Context(), all, limit)
				if err != nil {
					return err
				}
				if list == nil {
					list = []ledger.Merge{}
				}
				if a.out.value(map[string]any{"merges": list}) {
					return nil
				}
				if len(list) == 0 {
					a.out.note("the queue is empty")
					return nil
				}
				a.idleQueue(t, list)
				var rows [][]string
				for _, m := range list {
					rows = append(rows, []string{ledgerID(m.ID), m.Member, m.Branch, m.Target, m.Strategy, string(m.State), dash(m.Task),
						dash(view.Cut(view.Clean(m.Why), 60))})
				}
				a.out.table([]string{"ID", "MEMBER", "BRANCH", "INTO", "STRATEGY", "STATE", "TASK", "WHY"}, rows, false)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list the last fifty that have ended")
	cmd.Flags().BoolVar(&watch, "watch", false, "print a line for every step until the queue is empty")
	return cmd
}

// idleQueue reports a queue with pending entries that no process works on.
func (a *app) idleQueue(t *tool.Team, list []ledger.Merge) {
	if !slices.ContainsFunc(list, func(m ledger.Merge) bool { return m.State.Open() }) {
		return
	}
	if busy, err := t.Merging(); err == nil && !busy {
		a.out.note("no process is merging the queue")
		a.out.hint("teamctl merge --resume")
	}
}

// watchMerges reports every step of the queue until it is empty.
func (a *app) watchMerges(ctx context.Context, t *tool.Team) error {
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return err
	}
	defer stop()
	last := map[int64]ledger.MergeState{}
	for first := true; ; first = false {
		list, err := t.MergeQueue(ctx, true, 200)
		if err != nil {
			return err
		}
		open := false
		for _, m := range list {
			before, known := last[m.ID]
			last[m.ID] = m.State
			open = open || m.State.Open()
			if known && m.State == before || first && !m.State.Open() {
				continue // reported already, or older than this command
			}
			if !a.out.item(m) {
				a.mergeLine(m, false)
			}
		}
		if first {
			a.idleQueue(t, list)
		}
		if !open {
			if first {
				a.out.note("the queue is empty")
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		}
	}
}

func newMergeCancel(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel [MEMBER...]",
		Short: "Cancel queued merges, of one member or of all",
		Long: `Cancel merges that wait in the queue. A merge in progress (its gate runs) continues:
end the command that does it, or wait for it.`,
		Example:           "  teamctl merge cancel builder\n  teamctl merge cancel",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeMembers(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				list, err := t.MergeCancel(cmd.Context(), c, args)
				if list == nil || err != nil && a.out.json {
					return err
				}
				if a.out.value(map[string]any{"merges": list}) {
					return nil
				}
				for _, m := range list {
					a.mergeLine(m, false)
				}
				if err != nil {
					return err
				}
				if len(list) == 0 {
					a.out.note("nothing of that is queued")
				}
				return nil
			})
		},
	}
}
