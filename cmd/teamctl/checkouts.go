package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/worktree"
)

// checkouts shows the progress of a team's long checkouts on a terminal until stop is called.
// Elsewhere, and with --json, it does nothing: the log has the events.
func (a *app) checkouts(ctx context.Context, t *tool.Team) (stop func()) {
	if a.out.json || !a.out.warnScreen {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	changes, end, err := t.Ledger.Changes(ctx)
	if err != nil {
		cancel()
		return func() {} // only a view
	}
	last, err := t.Ledger.LastEvent(ctx)
	if err != nil {
		end()
		cancel()
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.showCheckouts(ctx, t.Ledger, changes, last)
	}()
	return func() {
		cancel()
		<-done
		end()
	}
}

// showCheckouts draws one line, updates it in place and erases it at the end.
func (a *app) showCheckouts(ctx context.Context, led *ledger.Ledger, changes <-chan struct{}, last int64) {
	at := map[string]worktree.Progress{}
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				_, _ = fmt.Fprint(a.out.stderr, "\r\x1b[K")
			}
			return
		case <-changes:
		}
		events, err := led.Events(ctx, last, 0, ledger.EventFilter{What: team.EventWorktreeCheckout})
		if err != nil || len(events) == 0 {
			continue
		}
		for _, e := range events {
			var p worktree.Progress
			last = e.Seq
			if json.Unmarshal(e.Data, &p) == nil {
				at[e.ID] = p
			}
		}
		shown = true
		cols, _ := a.out.size()
		_, _ = fmt.Fprint(a.out.stderr, "\r"+view.Cut(checkoutLine(at), cols-1)+"\x1b[K")
	}
}

// checkoutLine formats the progress of each checkout.
func checkoutLine(at map[string]worktree.Progress) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(at)) {
		p := at[name]
		parts = append(parts, fmt.Sprintf("%s: %s %d%% (%d of %d)", name, strings.ToLower(view.Clean(p.What)), p.Percent, p.Done, p.Total))
	}
	return strings.Join(parts, ", ")
}
