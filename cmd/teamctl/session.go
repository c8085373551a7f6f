package main

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newSession(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session VERB",
		Short: "Manage conversations: ls, show, export and more",
		Example: `  teamctl session ls
  teamctl session show dev`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newSessionLs(a), newSessionShow(a), newSessionHistory(a), newSessionExport(a), newSessionModel(a), newSessionAgent(a), newSessionDeliver(a), newSessionCompact(a), newSessionClose(a),
		newSessionSpawn(a), newSessionSend(a), newSessionWake(a), newSessionOneshot(a), newSessionStop(a))
	return cmd
}

func newSessionLs(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List conversations",
		Example: "  teamctl session ls\n  teamctl session ls --all",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				list, err := listSessions(ctx, t, c, all)
				if err != nil || a.out.value(map[string]any{"sessions": list}) {
					return err
				}
				if len(list) == 0 {
					a.out.note("no conversations yet")
					return nil
				}
				var rows [][]string
				for _, s := range list {
					rows = append(rows, []string{
						s.Key, sessionLabel(s.info), s.ActiveAgentID, dash(modelName(s.Session)), strconv.Itoa(s.Depth), sessionTurn(s.info),
						strconv.FormatInt(s.LastSeq, 10), when(s.UpdatedAt),
					})
				}
				a.out.table([]string{"SESSION", "LABEL", "AGENT", "MODEL", "DEPTH", "STATE", "ENTRIES", "CHANGED"}, rows, false)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list closed ones")
	return cmd
}

// listedSession is a session with what it does.
type listedSession struct {
	ledger.Session
	Name    string         `json:"name"` // of the member whose process runs it
	Turn    team.TurnState `json:"turn,omitempty"`
	RunID   int64          `json:"runId,omitempty"` // the newest turn, or the one under way
	Waiting int            `json:"waiting,omitempty"`
	Wakes   []int64        `json:"wakes,omitempty"`
	info    tool.SessionInfo
}

// listSessions lists conversations, each parent before its children.
func listSessions(ctx context.Context, t *tool.Team, c tool.Caller, all bool) ([]listedSession, error) {
	infos, err := t.Sessions(ctx, c, all)
	if err != nil {
		return nil, err
	}
	rows, err := t.Ledger.Sessions(ctx, ledger.SessionFilter{Closed: true})
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]ledger.Session, len(rows))
	for _, s := range rows {
		byKey[s.Key] = s
	}
	out := make([]listedSession, len(infos))
	for i, s := range infos {
		out[i] = listedSession{Session: byKey[s.Key], Name: s.Member, Turn: s.Turn, RunID: s.RunID, Waiting: s.Waiting, Wakes: s.Wakes, info: s}
	}
	return out, nil
}

// modelName is the model that a session is set to; "" is its agent's.
func modelName(s ledger.Session) string {
	if s.ModelOverride == "" {
		return ""
	}
	return s.ProviderOverride + "/" + s.ModelOverride
}

// transcript is the output of session show and export.
type transcript struct {
	Session ledger.Session       `json:"session"`
	Turns   []ledger.TurnJob     `json:"turns"`
	Waiting []ledger.BacklogItem `json:"waiting"` // the backlog
	Entries []ledger.Entry       `json:"entries"`
}

func (a *app) readTranscript(ctx context.Context, t *tool.Team, who string) (out transcript, err error) {
	if out.Session, err = t.Session(ctx, who); err != nil {
		return out, err
	}
	if out.Turns, err = t.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: out.Session.Key}); err != nil {
		return out, err
	}
	if out.Waiting, err = t.Ledger.Backlog(ctx, out.Session.Key); err != nil {
		return out, err
	}
	out.Entries, err = t.Transcript(ctx, out.Session)
	if out.Turns == nil {
		out.Turns = []ledger.TurnJob{}
	}
	if out.Waiting == nil {
		out.Waiting = []ledger.BacklogItem{}
	}
	if out.Entries == nil {
		out.Entries = []ledger.Entry{}
	}
	return out, err
}

func newSessionShow(a *app) *cobra.Command {
	var entries, trace, prompt bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a conversation: turns, backlog, entries",
		Long: `Show a conversation by its key, or by the name of its member: its settings, its turns
and the backlog. --entries adds the transcript, --trace the decisions about its turns
and its backlog, with reasons. --prompt instead prints what the next request has
before and after the conversation, except background commands.`,
		Example: `  teamctl session show dev
  teamctl session show dev --entries
  teamctl session show dev --trace
  teamctl session show dev --prompt`,
		Args:              takes(1, 1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				if prompt && (entries || trace) {
					return usage(cmd, "--prompt is printed alone")
				}
				if prompt {
					return a.showPrompt(ctx, t, args[0])
				}
				s, err := a.readTranscript(ctx, t, args[0])
				if err != nil || a.out.value(s) {
					return err
				}
				a.showSession(s)
				if entries {
					for _, e := range s.Entries {
						a.entry(e)
					}
				}
				if !trace {
					return nil
				}
				events, err := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{})
				for _, e := range events {
					if e.ID == s.Session.Key {
						a.out.line("%s  %s", a.eventLine(e), view.Clean(string(e.Data)))
					}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&entries, "entries", false, "also show the transcript")
	cmd.Flags().BoolVar(&trace, "trace", false, "show the decisions about its turns, with reasons")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "show the parts of the next request outside the conversation")
	return cmd
}

func (a *app) showPrompt(ctx context.Context, t *tool.Team, who string) error {
	s, err := t.Session(ctx, who)
	if err != nil {
		return err
	}
	p, err := program.Preview(ctx, t, s)
	if err != nil || a.out.value(p) {
		return err
	}
	a.out.line("%s\n\n%s", strings.TrimRight(printableLines(p.System), "\n"), strings.TrimRight(printableLines(p.Ephemeral), "\n"))
	return a.out.failure()
}

func (a *app) showSession(s transcript) {
	a.out.line("%-10s %s", "session", s.Session.Key)
	a.out.line("%-10s %s, %s", "agent", s.Session.ActiveAgentID, s.Session.State)
	if m := modelName(s.Session); m != "" {
		a.out.line("%-10s %s", "model", view.Clean(m))
	}
	a.out.line("%-10s %d", "entries", len(s.Entries))
	for _, j := range s.Turns {
		line := string(j.State)
		if j.Reason != "" {
			line += " (" + printable(j.Reason) + ")"
		}
		a.out.line("%-10s %s", "turn "+strconv.FormatInt(j.ID, 10), line)
	}
	for _, b := range s.Waiting {
		a.out.line("%-10s %s", "waits", printable(b.Text))
	}
}

// entry is one entry of a transcript, as chat shows it.
func (a *app) entry(e ledger.Entry) {
	text := strings.TrimRight(e.Content, "\n")
	switch e.Kind {
	case ledger.EntryAssistant:
		if text != "" {
			a.out.line("%s", strings.TrimRight(printableLines(text), "\n"))
		}
		var m struct {
			Calls []struct {
				Name  string          `json:"name"`
				Input json.RawMessage `json:"input"`
			} `json:"calls"`
		}
		if json.Unmarshal(e.Meta, &m) == nil {
			for _, c := range m.Calls {
				a.out.line("%s", a.out.style.Dim("  → "+c.Name+" "+printable(string(c.Input))))
			}
		}
	case ledger.EntryToolResult:
		a.out.line("%s", a.out.style.Dim("  ← "+printable(firstLine(text))))
	case ledger.EntryUser:
		for _, l := range strings.Split(text, "\n") {
			a.out.line("%s %s", a.out.style.Dim("│"), printable(l))
		}
	case ledger.EntryEvent, ledger.EntryCompaction:
		a.out.line("%s", a.out.style.Dim("  ["+string(e.Kind)+"] "+printable(firstLine(text))))
	}
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

func newSessionExport(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a conversation, as Markdown or JSON lines",
		Example: `  teamctl session export dev --format md
  teamctl session export dev --format jsonl`,
		Args:              takes(1, 1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "md" && format != "jsonl" {
				return usage(cmd, "--format is md or jsonl")
			}
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				s, err := a.readTranscript(ctx, t, args[0])
				if err != nil || a.out.value(s) {
					return err
				}
				for _, e := range s.Entries {
					if format == "md" {
						a.out.line("## %d %s, %s\n\n%s\n", e.Seq, e.Kind, time.UnixMilli(e.At).UTC().Format(time.RFC3339), printableLines(e.Content))
						continue
					}
					b, err := json.Marshal(e)
					if err != nil {
						return err
					}
					a.out.line("%s", b)
				}
				return a.out.failure()
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "md", "md or jsonl")
	a.complete(cmd, "format", words("md", "jsonl"))
	return cmd
}

func newSessionCompact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compact SESSION [WHAT TO KEEP...]",
		Short: "Compact a conversation: its model summarises it",
		Example: `  teamctl session compact dev
  teamctl session compact dev the names of the failing tests`,
		Args:              takes(1, -1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if err := t.Compact(cmd.Context(), c, args[0], strings.Join(args[1:], " ")); err != nil {
					return err
				}
				if !a.out.value(map[string]string{"status": "queued"}) {
					a.out.line("queued")
				}
				return nil
			})
		},
	}
}

func newSessionClose(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "close SESSION",
		Short: "Close a conversation and its children",
		Example: `  teamctl session close dev
  teamctl session close agent:default:subagent:0f2c5c1e-4f8f-4a55-9d0f-6f0e4f2d8f3b`,
		Args:              takes(1, 1, "the key of a conversation, or the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if err := t.CloseSession(cmd.Context(), c, args[0], "closed by "+c.Name); err != nil {
					return err
				}
				if !a.out.value(map[string]string{"status": "closed"}) {
					a.out.line("closed")
				}
				return nil
			})
		},
	}
}
