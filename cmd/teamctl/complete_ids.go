package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// offeredIDs is the maximum number of ids that a completion offers, newest first.
const offeredIDs = 200

// from completes from a list read from the team; an error completes nothing.
func from[T any](a *app, read func(context.Context, *tool.Team) ([]T, error), word func(T) string) completion {
	return a.fromTeam(func(ctx context.Context, t *tool.Team) []string {
		list, err := read(ctx, t)
		if err != nil {
			return nil
		}
		out := make([]string, 0, len(list))
		for _, e := range list {
			if w := word(e); w != "" {
				out = append(out, w)
			}
		}
		return out
	})
}

// about joins an id and the description that a shell shows beside it.
func about(id, what string) string { return id + "\t" + view.Cut(view.Clean(what), 60) }

// completeApprovals completes ids of approvals; open restricts them to pending ones.
func (a *app) completeApprovals(open bool) completion {
	var f ledger.ApprovalFilter
	if open {
		f.State = ledger.ApprovalPending
	}
	return from(a, func(ctx context.Context, t *tool.Team) ([]ledger.Approval, error) {
		list, err := t.Ledger.Approvals(ctx, f)
		return list[max(0, len(list)-offeredIDs):], err
	},
		func(x ledger.Approval) string {
			return about(strconv.FormatInt(x.ID, 10), string(x.Kind)+" of "+x.Name+": "+x.Subject)
		})
}

// completeRuns completes run numbers; open restricts them to runs that can be closed.
func (a *app) completeRuns(open bool) completion {
	return from(a, func(ctx context.Context, t *tool.Team) ([]ledger.RunInfo, error) {
		return t.Ledger.Runs(ctx, offeredIDs)
	},
		func(r ledger.RunInfo) string {
			if open && r.EndedAt != 0 {
				return ""
			}
			return about(strconv.FormatInt(r.ID, 10), strings.TrimSpace(runState(r)+" "+r.Name))
		})
}

// completeMessages completes ids of messages, shortened as in lists where that is unambiguous.
func (a *app) completeMessages() completion {
	return a.fromTeam(func(ctx context.Context, t *tool.Team) []string {
		list, err := t.Ledger.Messages(ctx, ledger.MessageFilter{Newest: true, Limit: offeredIDs})
		if err != nil {
			return nil
		}
		short := map[string]int{}
		for _, m := range list {
			short[m.ID[:8]]++
		}
		var out []string
		for _, m := range list {
			id := m.ID
			if short[id[:8]] == 1 {
				id = id[:8]
			}
			out = append(out, about(id, m.From+" to "+addressee(m)+": "+preview(m)))
		}
		return out
	})
}

// completeRequests completes ids of shutdown requests that the caller has received.
func (a *app) completeRequests() completion {
	return from(a, func(ctx context.Context, t *tool.Team) ([]ledger.Message, error) {
		f := ledger.MessageFilter{Kind: team.KindShutdownRequest, Newest: true, Limit: offeredIDs}
		if c, err := a.caller(ctx, t); err == nil && !c.Person {
			f.Recipient = c.Name
		}
		return t.Ledger.Messages(ctx, f)
	}, func(m ledger.Message) string { return about(m.RequestID, m.From+" asks "+addressee(m)+" to end") })
}

// completeSettings completes names of settings; values are not completed.
func (a *app) completeSettings() completion {
	return from(a, func(ctx context.Context, t *tool.Team) ([]tool.Setting, error) { return t.Settings(ctx) },
		func(s tool.Setting) string { return about(s.Name, s.Help) })
}

// completeSinks completes the existing notification sinks.
func (a *app) completeSinks() completion {
	return from(a, func(ctx context.Context, t *tool.Team) ([]string, error) { return t.Sinks(ctx) }, func(s string) string { return s })
}

// completeLeases completes the globs of active leases.
func (a *app) completeLeases() completion {
	return from(a, func(ctx context.Context, t *tool.Team) ([]ledger.FileLease, error) { return t.Leases(ctx) },
		func(l ledger.FileLease) string { return about(l.Glob, l.Name+" "+l.Why) })
}

// completeOps completes names of operations that the caller may call, or all of them without a
// team.
func (a *app) completeOps(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	list := op.All()
	if s, err := a.session(); err == nil {
		if offered, err := s.Offered(ctx); err == nil {
			list = offered
		}
	}
	out := make([]string, len(list))
	for i, o := range list {
		text, _, _ := strings.Cut(o.Doc(), "\n")
		text, _, _ = strings.Cut(text, ". ")
		out[i] = about(o.Name, text)
	}
	slices.Sort(out)
	return out, noFiles
}
