package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newPrune(a *app) *cobra.Command {
	var older string
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Move old history out of the ledger into an archive",
		Long: `Take events, the messages of closed runs and the transcripts of closed conversations
that are older than AGE out of the team's ledger. They are in a file of the team's archive directory, one JSON object
a line, before the ledger lets go of them. A run with a message that a member has
not read stays whole, and so do all tasks. Mailboxes keep their newest 200 read
messages, whatever their age; the ledger has the others too. AGE is a number with d, h or m: 30d, 12h.`,
		Example: "  teamctl prune --older-than 30d\n  teamctl prune --older-than 30d --json",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if older == "" {
				return usage(cmd, "--older-than is required, as in --older-than 30d")
			}
			age, err := parseAge(older)
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				out, err := t.Prune(cmd.Context(), c, age)
				if err != nil {
					return err
				}
				if a.out.value(out) {
					return nil
				}
				if out.Mailboxes > 0 {
					a.out.line("%d read messages left the mailboxes", out.Mailboxes)
				}
				if out.Archive == "" {
					a.out.note("nothing is that old")
					return nil
				}
				a.out.line("%d events, %d messages", out.Events, out.Messages)
				if out.Sessions > 0 {
					a.out.line("%d closed conversations with %d entries", out.Sessions, out.Entries)
				}
				a.out.note("they are in %s", out.Archive)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "minimum age of the removed items: 30d, 12h")
	return cmd
}

// parseAge parses a Go duration or a number of days such as 30d.
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 36_500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, team.Errorf(team.CodeInvalid, "invalid age %q", s).WithHint("30d, 12h, 90m")
}
