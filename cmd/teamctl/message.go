package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newMessage(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "message VERB",
		Short: "Manage messages and receipts: send, ls, show and more",
		Example: `  teamctl message ls
  teamctl message show 3f2a`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newMessageLs(a), newMessageShow(a), newMessageAudit(a))
	return cmd
}

func newMessageShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a message's delivery states and their evidence",
		Long: `Show a message and its receipts: the delivery state for each recipient, with time and
evidence. A prefix of an id is enough.`,
		Example: "  teamctl message show 3f2a\n  teamctl message show 3f2a --json",
		Args:    takes(1, 1, "the id of a message"),

		ValidArgsFunction: first(a.completeMessages()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				m, err := t.MessageShow(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if !a.out.value(m) {
					a.showMessage(m)
				}
				return nil
			})
		},
	}
}

func (a *app) showMessage(m tool.MessageInfo) {
	put := func(name, value string) {
		if value != "" {
			a.out.line("%-12s %s", name, view.Clean(value))
		}
	}
	put("message", m.ID)
	put("kind", string(m.Kind))
	put("from", m.From)
	put("to", addressee(m.Message))
	put("sent", when(m.At))
	put("answers", m.Parent)
	put("request", m.RequestID)
	if m.Hop > 0 {
		put("hops", fmt.Sprint(m.Hop))
	}
	put("answered by", strings.Join(m.Replies, ", "))
	for _, d := range m.Deliveries {
		line := fmt.Sprintf("%s, since %s", delivered(d), when(d.At))
		if d.Evidence != "" {
			line += ": " + d.Evidence
		}
		a.out.line("%-12s %s", "  "+d.Recipient, printable(line))
	}
	a.out.line("text")
	for _, l := range strings.Split(strings.TrimRight(tool.Speak(m.Message).Text, "\n"), "\n") {
		a.out.line("  %s", printable(l))
	}
}

func newMessageLs(a *app) *cobra.Command {
	var (
		f    ledger.MessageFilter
		kind string
	)
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List messages with their delivery states",
		Example: "  teamctl message ls\n  teamctl message ls --with builder --limit 20",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			f.Kind = team.Kind(kind)
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				want := f
				want.Newest = f.Newest || f.Limit > 0 // with a limit the newest ones, as for events
				list, err := t.Ledger.Messages(ctx, want)
				if err != nil {
					return err
				}
				if want.Newest && !f.Newest {
					slices.Reverse(list)
				}
				type row struct {
					ledger.Message
					Deliveries []ledger.Delivery `json:"deliveries"`
				}
				rows := make([]row, len(list))
				for i, m := range list {
					rows[i].Message = m
					if rows[i].Deliveries, err = t.Ledger.Deliveries(ctx, m.ID); err != nil {
						return err
					}
				}
				if a.out.value(map[string]any{"messages": rows}) {
					return nil
				}
				if len(rows) == 0 {
					a.out.note("no messages")
					return nil
				}
				var cells [][]string
				for _, r := range rows {
					cells = append(cells, []string{r.ID[:8], clockOf(r.At), r.From, addressee(r.Message), string(r.Kind),
						reached(r.Deliveries), view.Cut(preview(r.Message), 50)})
				}
				a.out.table([]string{"ID", "TIME", "FROM", "TO", "KIND", "STATE", "PREVIEW"}, cells, false)
				return nil
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&kind, "kind", "", "only messages of this kind")
	fl.StringVar(&f.From, "from", "", "only messages of this member")
	fl.StringVar(&f.Recipient, "to", "", "only messages to this member, broadcasts too")
	fl.StringVar(&f.With, "with", "", "only messages from or to this member")
	fl.Int64Var(&f.Run, "run", 0, "only messages of this run")
	fl.BoolVar(&f.Newest, "newest", false, "newest first")
	fl.IntVar(&f.Limit, "limit", 0, "only the newest N (default all)")
	a.complete(cmd, "run", a.completeRuns(false))
	for _, name := range []string{"from", "to", "with"} {
		a.complete(cmd, name, a.completeMembers(true))
	}
	return cmd
}

// reached abbreviates the states of all deliveries.
func reached(ds []ledger.Delivery) string {
	if len(ds) == 1 {
		return string(ds[0].State)
	}
	n := map[team.DeliveryState]int{}
	var order []team.DeliveryState
	for _, d := range ds {
		if n[d.State]++; n[d.State] == 1 {
			order = append(order, d.State)
		}
	}
	parts := make([]string, len(order))
	for i, s := range order {
		parts[i] = fmt.Sprintf("%d %s", n[s], s)
	}
	return dash(strings.Join(parts, ", "))
}

func newMessageAudit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "audit",
		Short:   "Write all messages with their recipients as JSON lines",
		Example: "  teamctl message audit > audit.jsonl\n  teamctl message audit | head -n 20",
		Args:    takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				return t.Ledger.Audit(cmd.Context(), a.out.stdout)
			})
		},
	}
}

func newThread(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "thread [ID]",
		Short: "Show a message thread as a tree",
		Long: `Show the thread that contains a message, or without an id all threads of the current
run. Answers are below the message that they answer, at most 50 deep.`,
		Example: "  teamctl thread\n  teamctl thread 3f2a",
		Args:    takes(0, 1, "the id of one message"),

		ValidArgsFunction: first(a.completeMessages()),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
				id := ""
				if len(args) == 1 {
					m, err := t.Ledger.FindMessage(ctx, args[0])
					if err != nil {
						return err
					}
					id = m.ID
				}
				th, err := t.Ledger.Thread(ctx, id)
				if err != nil {
					return err
				}
				if a.out.value(th) {
					return nil
				}
				if len(th.Lines) == 0 {
					a.out.note("no messages")
				}
				for _, l := range th.Lines {
					a.out.line("%s[%s] %s->%s: %s - %s", strings.Repeat("  ", l.Depth), clockOf(l.At), l.From, addressee(l.Message), l.Kind, preview(l.Message))
				}
				if th.Cut > 0 {
					a.out.note("%d messages more than %d deep are not shown: teamctl thread ID shows those around a message", th.Cut, ledger.MaxThreadDepth)
				}
				return nil
			})
		},
	}
}

func addressee(m ledger.Message) string {
	if m.To == "" {
		return "all"
	}
	return m.To
}

// preview summarises a message in a few words.
func preview(m ledger.Message) string { return view.Clean(tool.Speak(m).Line) }

func clockOf(ms int64) string { return time.UnixMilli(ms).Format("15:04:05") }
