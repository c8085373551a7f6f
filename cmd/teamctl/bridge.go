package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/bridge"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newBridge(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bridge VERB",
		Short: "Bridge the team to the native team of an agent: claude",
		Long: `Bridge the team to the native team of an agent CLI: members, mail and tasks of each
appear in the other. See docs/bridge.md.`,
		Example: "  teamctl bridge claude --help\n  teamctl bridge claude --team demo",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(a.bridgeClaude())
	return cmd
}

func (a *app) bridgeClaude() *cobra.Command {
	in, remove := bridge.In{}, false
	cmd := &cobra.Command{
		Use:   "claude",
		Short: "Bridge the team to one that a Claude Code lead created",
		Long: `Bridge the team to the native team of a Claude Code lead. Members of each appear in
the other, mail between them arrives, and the two boards are synchronised. The native
lead is also the lead of this team: its mail comes as team-lead's, it gets mail to
team-lead, and it may ask members to shut down. It cannot answer approvals.

The command runs until it is interrupted or the native team is deleted; it may be
killed and started again at any time. Of the program's files it writes only those of
that team, CONFIG/teams/NAME and CONFIG/tasks/NAME, and it reports everything that it
mirrors. --remove removes the members of each side from the other.`,
		Example: `  teamctl bridge claude --team demo
  teamctl bridge claude --team demo --native session-a5e01d1a
  teamctl bridge claude --team demo --once
  teamctl bridge claude --team demo --remove`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if in.Once && remove {
				return team.Errorf(team.CodeInvalid, "--once and --remove do not go together")
			}
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				in.Team, in.Caller, in.Say = t, c, a.bridged
				if in.Dir == "" {
					dir, err := claudeDir()
					if err != nil {
						return err
					}
					in.Dir = dir
				}
				if remove {
					return bridge.Remove(ctx, in)
				}
				return bridge.Run(ctx, in)
			})
		},
	}
	cmd.Flags().StringVar(&in.Dir, "config-dir", "", "the program's configuration directory (default $CLAUDE_CONFIG_DIR, else ~/.claude)")
	cmd.Flags().StringVar(&in.Native, "native", "", "the team to bridge to (default: the only one)")
	cmd.Flags().BoolVar(&in.Once, "once", false, "synchronise both sides once and exit")
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the members of each side from the other and exit")
	return cmd
}

// claudeDir returns the directory where Claude Code keeps its teams.
func claudeDir() (string, error) {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", team.Errorf(team.CodeInvalid, "find the home directory: %w", err).WithHint("name the directory with --config-dir")
	}
	return filepath.Join(home, ".claude"), nil
}

// bridged prints one action of the bridge.
func (a *app) bridged(n bridge.Note) {
	if a.out.value(n) {
		return
	}
	words := map[string]string{
		bridge.NoteJoined: "joined with", bridge.NoteMemberHere: "member here:", bridge.NoteMemberThere: "member there:",
		bridge.NoteMemberLeft: "left:", bridge.NoteTaskHere: "task here:", bridge.NoteTaskThere: "task there:",
		bridge.NoteMailHere: "mail here for", bridge.NoteMailThere: "mail there for", bridge.NoteClash: "name clash:",
		bridge.NoteRefused: "refused:", bridge.NoteWaits: "waits:", bridge.NoteGone: "gone:",
	}
	line := words[n.What]
	for _, s := range []string{n.Name, n.Why} {
		if s != "" {
			line += " " + printable(s)
		}
	}
	a.out.line("%s", line)
}
