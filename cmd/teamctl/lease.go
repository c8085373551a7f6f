package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

func newLease(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lease VERB",
		Short: "Manage advisory leases of files: take, release, ls",
		Long: `Manage leases. A lease announces that a member is about to change some files. It is
advisory: a member that requests the same files is warned, and so is the holder, but
access is not restricted. It expires by itself.`,
		Example: `  teamctl lease take 'internal/store/**' --for 2h --why "new schema"
  teamctl lease ls
  teamctl lease release 'internal/store/**'`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newLeaseTake(a), newLeaseRelease(a), newLeaseLs(a))
	return cmd
}

func newLeaseTake(a *app) *cobra.Command {
	var in tool.LeaseIn
	cmd := &cobra.Command{
		Use:   "take GLOB",
		Short: "Take or renew a lease",
		Long: `Take a lease of the files that GLOB matches: a path in the repository in which *
stands for anything but a slash, and ** for any number of directories. Conflicts are
told, not refused: the exit status is 0.`,
		Example: "  teamctl lease take 'docs/**'\n  teamctl lease take go.mod --for 10m --member builder",
		Args:    takes(1, 1, "one glob, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Glob = args[0]
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				got, err := t.LeaseTake(cmd.Context(), c, in)
				if err != nil || a.out.value(got) {
					return err
				}
				a.out.line("%s holds %s until %s", got.Lease.Name, plain.Visible(got.Lease.Glob), leaseEnd(got.Lease.Until))
				for _, l := range got.Conflicts {
					a.out.note("%s holds %s until %s%s", l.Name, plain.Visible(l.Glob), leaseEnd(l.Until), because(l.Why))
				}
				for _, f := range got.Touched {
					a.out.note("%s has changed %s already", f.Name, printable(f.Path))
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.DurationVar(&in.For, "for", time.Hour, "how long it holds")
	f.StringVar(&in.Why, "why", "", "the planned change")
	f.StringVar(&in.Member, "member", "", "on behalf of this member (default: the caller)")
	a.complete(cmd, "member", a.completeMembers(true))
	return cmd
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + plain.Visible(why)
}

func leaseEnd(ms int64) string {
	at := time.UnixMilli(ms).Local()
	if time.Until(at) > 20*time.Hour {
		return at.Format("2006-01-02 15:04")
	}
	return at.Format("15:04")
}

func newLeaseRelease(a *app) *cobra.Command {
	var member string
	var all bool
	cmd := &cobra.Command{
		Use:     "release GLOB | release --all",
		Short:   "Release a lease",
		Example: "  teamctl lease release 'docs/**'\n  teamctl lease release --all --member builder",
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return takes(0, 0, "")(cmd, args)
			}
			return takes(1, 1, "the glob or the number of one lease, or --all")(cmd, args)
		},
		ValidArgsFunction: first(a.completeLeases()),
		RunE: func(cmd *cobra.Command, args []string) error {
			glob := ""
			if !all {
				glob = args[0]
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				n, err := t.LeaseRelease(cmd.Context(), c, member, glob)
				if err != nil || a.out.value(map[string]any{"released": n}) {
					return err
				}
				a.out.line("released %d", n)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&member, "member", "", "of this member (default: the caller)")
	cmd.Flags().BoolVar(&all, "all", false, "all held messages")
	a.complete(cmd, "member", a.completeMembers(true))
	return cmd
}

func newLeaseLs(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List the current leases",
		Example: "  teamctl lease ls\n  teamctl lease ls --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				list, err := t.Leases(cmd.Context())
				if err != nil {
					return err
				}
				if list == nil {
					list = []ledger.FileLease{}
				}
				if a.out.value(map[string]any{"leases": list}) {
					return nil
				}
				if len(list) == 0 {
					a.out.note("there are no leases")
					return nil
				}
				var rows [][]string
				for _, l := range list {
					rows = append(rows, []string{ledgerID(l.ID), l.Name, plain.Visible(l.Glob), leaseEnd(l.Until), dash(plain.Visible(l.Why))})
				}
				a.out.table([]string{"ID", "MEMBER", "FILES", "UNTIL", "WHY"}, rows, false)
				return nil
			})
		},
	}
}

func ledgerID(n int64) string { return strconv.FormatInt(n, 10) }
