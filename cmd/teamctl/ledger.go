package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newLedger(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger VERB",
		Short: "Manage the ledger: check, backup, recover",
		Long: `Manage the file with a team's tasks, messages and members. The supervisor copies it
when a run has ended and at least hourly while it changes, and keeps the newest three
copies; backup makes one now. recover rebuilds a damaged ledger.`,
		Example: "  teamctl ledger check\n  teamctl ledger backup\n  teamctl ledger recover demo",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(newLedgerCheck(a), newLedgerBackup(a), newLedgerRecover(a))
	return cmd
}

// ledgerOf returns the team that a verb works on; its ledger may be missing.
func (a *app) ledgerOf(cmd *cobra.Command, args []string) (env *tool.Env, key string, err error) {
	if len(args) == 1 {
		if a.team != "" && a.team != args[0] {
			return nil, "", usage(cmd, "two teams are named: %q and --team %q", args[0], a.team)
		}
		if args[0] == "" {
			return nil, "", usage(cmd, "the name of the team is empty")
		}
		a.team = args[0]
	}
	if env, err = a.tools(); err == nil {
		key, err = env.LedgerKey(cmd.Context(), a.team)
	}
	return env, key, err
}

func newLedgerCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check [TEAM]",
		Short: "Check that the ledger is sound, and list its copies",
		Long: `Read the whole ledger and check its pages, indexes, references, counts and claims. It
changes nothing. The exit status is 7 if there is a problem.`,
		Example: "  teamctl ledger check\n  teamctl ledger check demo --json", Args: takes(0, 1, "the name of one team"),
		ValidArgsFunction: first(a.completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, key, err := a.ledgerOf(cmd, args)
			if err != nil {
				return err
			}
			got, err := env.LedgerCheck(cmd.Context(), key)
			if err != nil {
				return err
			}
			bad := len(got.Problems) > 0
			if a.out.value(got) {
				if bad {
					return errSaid
				}
				return nil
			}
			for _, p := range got.Problems {
				a.out.line("%s", view.Clean(p))
			}
			for _, c := range got.Copies {
				a.out.line("copy of %s: %s", c.At.Local().Format("2006-01-02 15:04:05"), c.Path)
			}
			if bad {
				return team.Errorf(team.CodeUnavailable, "the ledger of %s is damaged", key).WithReason(team.ReasonCorrupt).
					WithHint("teamctl ledger recover " + key)
			}
			a.out.line("the ledger of %s is sound", key)
			return nil
		},
	}
}

func newLedgerBackup(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup [TEAM]",
		Short: "Save a copy of the ledger now",
		Long: `Save a copy of the current ledger, beside the automatic copies; the newest three are
kept. It blocks no other process.`,
		Example: "  teamctl ledger backup\n  teamctl ledger backup demo --json", Args: takes(0, 1, "the name of one team"),
		ValidArgsFunction: first(a.completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				a.team = args[0]
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				made, err := t.LedgerBackup(cmd.Context(), c)
				if err != nil || a.out.value(made) {
					return err
				}
				a.out.line("copied the ledger to %s (%d KB)", made.Path, (made.Size+1023)/1024)
				return nil
			})
		},
	}
}

func newLedgerRecover(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "recover [TEAM]",
		Short: "Rebuild a damaged or missing ledger",
		Long: `Rebuild a ledger that is damaged, truncated, empty, missing or not a ledger. Rows come
from the readable parts of the file, table by table around the damage; if the sqlite3
program is installed, from its recovery of loose pages; what is then missing, from the
newest sound copy; and from the mailboxes, config.json and the members' own files. It
reports what is missing. The damaged file is kept under another name. Running members
keep running, and are adopted.

A sound ledger is not changed.`,
		Example: "  teamctl ledger recover\n  teamctl ledger recover demo", Args: takes(0, 1, "the name of one team"),
		ValidArgsFunction: first(a.completeTeams),
		RunE: func(cmd *cobra.Command, args []string) error {
			env, key, err := a.ledgerOf(cmd, args)
			if err != nil {
				return err
			}
			got, err := env.LedgerRecover(cmd.Context(), a.outsider(), key)
			if err != nil || a.out.value(got) {
				return err
			}
			a.ledgerRecovered(got)
			return nil
		},
	}
}

func (a *app) ledgerRecovered(got tool.LedgerRecovered) {
	if got.Status == "sound" {
		a.out.line("the ledger of %s is sound; nothing was changed", got.Team)
		return
	}
	a.out.line("recovered the ledger of %s", got.Team)
	for _, from := range []struct {
		what string
		rows map[string]int
	}{{"the damaged file", got.Rows}, {"its loose pages", got.Pages}, {"the copy", got.Copied}, {"mailboxes and members' files", got.Files}} {
		var parts []string
		for _, name := range slices.SortedFunc(maps.Keys(from.rows), cmp.Compare[string]) {
			if n := from.rows[name]; n > 0 && name != "applied_ops" {
				parts = append(parts, fmt.Sprintf("%s %d", name, n))
			}
		}
		if len(parts) > 0 {
			a.out.line("  from %s: %s", from.what, strings.Join(parts, ", "))
		}
	}
	for _, m := range got.Missing {
		a.out.note("%s", view.Clean(m))
	}
	if got.Kept != "" {
		a.out.line("the damaged file is %s", got.Kept)
	}
	if len(got.Members) > 0 {
		a.out.line("members that run: %s", strings.Join(got.Members, ", "))
	}
}
