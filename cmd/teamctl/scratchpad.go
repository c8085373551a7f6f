package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

func newScratchpad(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scratchpad VERB",
		Short: "Manage the team's JSON document: get, merge, watch",
		Long: `Manage the shared document of the current run: a JSON object with a version. A merge
replaces top-level keys; with --expect it fails (exit status 4) if another caller was
faster, so that nothing is overwritten unseen.`,
		Example: `  teamctl scratchpad get
  teamctl scratchpad merge '{"branch":"main"}' --expect 3
  teamctl scratchpad watch --json`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newScratchpadGet(a), newScratchpadMerge(a), newScratchpadWatch(a))
	return cmd
}

func newScratchpadGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "get",
		Short:   "Print the document; with --json also its version",
		Example: "  teamctl scratchpad get\n  teamctl scratchpad get --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				pad, err := t.Scratchpad(cmd.Context())
				if err != nil {
					return err
				}
				a.pad(pad)
				return nil
			})
		},
	}
}

func newScratchpadMerge(a *app) *cobra.Command {
	var expect int64
	cmd := &cobra.Command{
		Use:     "merge JSON",
		Short:   "Merge top-level keys into the document",
		Example: "  teamctl scratchpad merge '{\"branch\":\"main\"}'\n  teamctl scratchpad merge - --expect 3 < patch.json",
		Args:    takes(1, 1, "a JSON object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args)
			if err != nil {
				return err
			}
			var patch map[string]json.RawMessage
			if err := json.Unmarshal([]byte(text), &patch); err != nil || patch == nil {
				return usage(cmd, "the patch is not a JSON object")
			}
			var want *int64
			if cmd.Flags().Changed("expect") {
				want = &expect
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				pad, err := t.ScratchpadMerge(cmd.Context(), c, json.RawMessage(text), want)
				if err != nil {
					return err
				}
				if !a.out.value(pad) {
					a.out.line("version %d", pad.Version)
				}
				return nil
			})
		},
	}
	cmd.Flags().Int64Var(&expect, "expect", 0, "only if the document still has this version")
	return cmd
}

func newScratchpadWatch(a *app) *cobra.Command {
	var count int
	cmd := &cobra.Command{
		Use:     "watch",
		Short:   "Print the document now and whenever it changes",
		Example: "  teamctl scratchpad watch --json\n  teamctl scratchpad watch",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				enough := errors.New("enough")
				n := 0
				err := t.ScratchpadWatch(cmd.Context(), func(pad ledger.Scratchpad) error {
					if !a.out.item(pad) {
						a.out.line("version %d: %s", pad.Version, printable(string(pad.Doc)))
					}
					if n++; count > 0 && n >= count {
						return enough
					}
					return a.out.failure()
				})
				if errors.Is(err, enough) || errors.Is(err, context.Canceled) {
					return nil
				}
				return err
			})
		},
	}
	cmd.Flags().IntVar(&count, "count", 0, "exit after this many versions (default: never)")
	return cmd
}

func (a *app) pad(pad ledger.Scratchpad) {
	if a.out.value(pad) {
		return
	}
	a.out.encode(pad.Doc, "  ")
}
