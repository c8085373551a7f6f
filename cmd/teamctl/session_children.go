package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// sessionLabel is what a session is called in a list: its label, below its parent.
func sessionLabel(s tool.SessionInfo) string {
	if s.Depth == 0 {
		return printable(s.Label)
	}
	return strings.Repeat("  ", s.Depth-1) + "└ " + printable(s.Label)
}

// sessionTurn is what a session does.
func sessionTurn(s tool.SessionInfo) string {
	out := string(s.Turn)
	if s.State == "closed" {
		out = s.State
	} else if out == "" || s.Turn.Ended() {
		out = "idle"
		if s.Turn != "" {
			out += ", " + string(s.Turn)
		}
	}
	if len(s.Wakes) > 0 {
		out += ", wakes at " + time.UnixMilli(s.Wakes[0]).Format("15:04")
	}
	return out
}

func newSessionSpawn(a *app) *cobra.Command {
	var in tool.ChildIn
	cmd := &cobra.Command{
		Use:   "spawn SESSION",
		Short: "Open a child of a conversation",
		Long: `Open a child of a conversation: one of its own, in the same process and worktree, with
at most the tools that its parent has. It begins with the first teamctl session send,
and what its turns come to is announced to the parent.`,
		Example: `  teamctl session spawn dev --agent scout --label 'find the callers of Parse'
  teamctl session spawn dev`,
		Args:              takes(1, 1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				in.Parent = args[0]
				s, err := t.SpawnSession(cmd.Context(), c, in)
				if err != nil || a.out.value(op.SessionSpawnOut{SessionKey: s.Key, Owner: s.Owner, AgentID: s.ActiveAgentID, Depth: s.Depth}) {
					return err
				}
				a.out.line("%s", s.Key)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&in.Agent, "agent", "", "id or name of its agent spec (default that of its parent)")
	cmd.Flags().StringVar(&in.Label, "label", "", "what it is for")
	cmd.Flags().StringSliceVar(&in.Tags, "tag", nil, "a word that its results carry; may be repeated")
	return cmd
}

func newSessionSend(a *app) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "send SESSION TEXT...",
		Short: "Give a child conversation a text",
		Long: `Give a child conversation a text, which begins its next turn. The text - is standard
input. Members get messages instead: teamctl send.`,
		Example: `  teamctl session send agent:scout:subagent:0f2c5c1e-4f8f-4a55-9d0f-6f0e4f2d8f3b "which functions call Parse?"
  git diff | teamctl session send agent:scout:subagent:0f2c5c1e-4f8f-4a55-9d0f-6f0e4f2d8f3b - --key diff-1`,
		Args: takes(2, -1, "the key of a conversation, and a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args[1:])
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				got, err := t.SendSession(cmd.Context(), c, tool.InjectIn{Session: args[0], Message: text, Key: key})
				if err != nil || a.out.value(got) {
					return err
				}
				if got.Queued {
					a.out.line("queued behind the turn under way")
					return nil
				}
				a.out.line("turn %d", got.RunID)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "idempotency key: the same again is taken once")
	return cmd
}

func newSessionHistory(a *app) *cobra.Command {
	var in tool.HistoryIn
	cmd := &cobra.Command{
		Use:   "history SESSION",
		Short: "Read the newest entries of a conversation",
		Long:  "Read the newest entries of a conversation, or those before one: at most 100 KB of text.",
		Example: `  teamctl session history dev --limit 1
  teamctl session history dev --before 40`,
		Args:              takes(1, 1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				in.Session = args[0]
				h, err := t.SessionHistory(cmd.Context(), c, in)
				if err != nil || a.out.value(h) {
					return err
				}
				if h.Earlier && len(h.Entries) > 0 {
					a.out.note("earlier entries: --before %d", h.Entries[0].Seq)
				}
				for _, e := range h.Entries {
					a.out.line("%s %s", a.out.style.Dim(string(e.Kind)), strings.TrimRight(printableLines(e.Text), "\n"))
				}
				return a.out.failure()
			})
		},
	}
	cmd.Flags().Int64Var(&in.Before, "before", 0, "only entries with a smaller number")
	cmd.Flags().IntVar(&in.Limit, "limit", 0, "maximum number of entries (default: as many as 100 KB have room for)")
	return cmd
}

func newSessionStop(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stop SESSION",
		Short: "End a child conversation and its children",
		Long: `End a child conversation: its turn ends, and those of its children do. The
conversations are closed and can be read. teamctl interrupt ends the turn of a member.`,
		Example: `  teamctl session stop agent:scout:subagent:0f2c5c1e-4f8f-4a55-9d0f-6f0e4f2d8f3b
  teamctl session stop agent:scout:subagent:0f2c5c1e-4f8f-4a55-9d0f-6f0e4f2d8f3b --json`,
		Args: takes(1, 1, "the key of a conversation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				s, err := t.StopSession(cmd.Context(), c, args[0])
				if err != nil || a.out.value(op.SessionStopOut{SessionKey: s.Key, State: string(s.State)}) {
					return err
				}
				a.out.line("%s", s.State)
				return nil
			})
		},
	}
}

func newSessionWake(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "wake SESSION AFTER TEXT...",
		Short: "Queue a turn of a conversation for later",
		Long: `Queue a turn of a conversation for later: after 1m to 24h it begins with the text. A
conversation waits for at most five of them.`,
		Example: `  teamctl session wake dev 10m "has the build of main passed?"
  teamctl session wake dev 2h "look at the queue" --json`,
		Args:              takes(3, -1, "the key of a conversation, or the name of a member, a length of time and a text"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			after, err := time.ParseDuration(args[1])
			if err != nil {
				return usage(cmd, "%q is not a length of time: 90s, 10m, 2h30m", args[1])
			}
			text, err := a.message(args[2:])
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				w, err := t.WakeSession(cmd.Context(), c, tool.WakeIn{Session: args[0], After: after, Text: text})
				if err != nil || a.out.value(w) {
					return err
				}
				a.out.line("turn %d at %s", w.RunID, time.UnixMilli(w.At).Format("2006-01-02 15:04:05"))
				return nil
			})
		},
	}
}

func newSessionOneshot(a *app) *cobra.Command {
	var in tool.OneshotIn
	cmd := &cobra.Command{
		Use:   "oneshot SESSION TASK...",
		Short: "Give a child one task, and print its answer",
		Long: `Open a child of a conversation, give it a task, wait for the end of its turn, print its
answer, and close it. The task - is standard input. The exit status is 0 if the turn
ended well, 8 after --timeout, and 1 otherwise.`,
		Example: `  teamctl session oneshot dev --agent scout "which functions call Parse?"
  git diff | teamctl session oneshot dev --agent reviewer --timeout 10m -`,
		Args:              takes(2, -1, "the key of a conversation, or the name of a member, and a task"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args[1:])
			if err != nil {
				return err
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				in.Parent, in.Task = args[0], text
				got, err := t.Oneshot(cmd.Context(), c, in)
				if err != nil {
					return err
				}
				if !a.out.value(got) {
					a.out.line("%s", printableLines(got.Reply))
				}
				switch got.Status {
				case team.AnnouncedOK:
					return nil
				case team.AnnouncedTimeout:
					a.out.note("no answer after %s", in.Timeout)
					return exitError(8)
				case team.AnnouncedError, team.AnnouncedUnknown:
				}
				a.out.note("turn %d did not end well: %s", got.RunID, printable(got.Reason))
				return exitError(1)
			})
		},
	}
	cmd.Flags().StringVar(&in.Agent, "agent", "", "id or name of its agent spec (default that of its parent)")
	cmd.Flags().StringVar(&in.Label, "label", "", "what it is for")
	cmd.Flags().DurationVar(&in.Timeout, "timeout", 0, "maximum time of its turn (default: no limit)")
	return cmd
}
