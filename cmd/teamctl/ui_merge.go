package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// mergeReady merges the branches that are ready, or says which those are. It merges nothing but what
// was shown.
func (s *screenTeam) mergeReady(ctx context.Context, a view.Action, d view.Deed) (view.Done, error) {
	call := func(dry bool) (out tool.MergeOut, err error) {
		in, err := json.Marshal(op.WorktreeMergeIn{Ready: true, DryRun: dry})
		if err != nil {
			return out, err
		}
		raw, err := op.NewSession(s.env, s.key, s.caller, s.app.outsider).CallJSON(ctx, a.Operation, in)
		if err != nil {
			return out, err
		}
		return out, json.Unmarshal(raw, &out)
	}
	out, err := call(true)
	if err != nil {
		return view.Done{}, err
	}
	lines, seen := out.Notes, []string{}
	for _, m := range out.Merges {
		lines = append(lines, m.Member+" "+mergeWords(m, true))
		seen = append(seen, strings.Join([]string{m.Member, m.Branch, m.Tip, m.Target, m.Strategy, string(m.State)}, " "))
	}
	if len(out.Merges) == 0 {
		return view.Done{Said: strings.Join(append([]string{"nothing is ready to be merged"}, lines...), "\n")}, nil
	}
	was := strings.Join(seen, "\n")
	if d.Preview {
		return view.Done{Said: strings.Join(lines, "\n"), Seen: was}, nil
	}
	if was != d.Seen {
		return view.Done{}, team.Errorf(team.CodeConflict, "what is ready to be merged has changed since it was shown: nothing was merged")
	}
	if out, err = call(false); err != nil {
		return view.Done{}, err
	}
	var said []string
	for _, m := range out.Merges {
		said = append(said, m.Member+" "+mergeWords(m, false))
	}
	return view.Done{Said: strings.Join(said, "; ")}, nil
}

// mergeWords is what became of a merge, or would, without the name of its member.
func mergeWords(m ledger.Merge, dry bool) string {
	text := string(m.State)
	switch m.State {
	case ledger.MergeLanded:
		text = fmt.Sprintf("merged into %s (%s)", m.Target, m.Strategy)
		if dry {
			text = "would be " + text
		}
	case ledger.MergeContained:
		text = "is in " + m.Target + " already"
	case ledger.MergeConflict:
		text = "conflicts in " + strings.Join(m.Files, ", ")
	case ledger.MergeRed:
		text = "breaks the gate: " + m.Why
	case ledger.MergeFailed:
		text = "not merged: " + m.Why
	case ledger.MergeQueued, ledger.MergeGating, ledger.MergeLanding, ledger.MergeCanceled:
	}
	if m.Task != "" {
		text += ", task " + m.Task
	}
	return text
}
