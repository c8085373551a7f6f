package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newSend(a *app) *cobra.Command {
	var (
		in      tool.SendIn
		wait    string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "send MEMBER TEXT...",
		Short: "Send a message to a member, or to a group of them",
		Long: `Send a message to a member. It is stored before this command returns and then written
to the member's mailbox; the delivery state is reported as far as there is evidence. A
recipient that has never read its mail, as a plain command may, is reported. - reads
the text from standard input. 'worker-*' sends a message to each member whose name is
worker- and a number, with a receipt of its own.

--wait waits until the message is accepted, read or answered. The exit status is 8
after the time limit, and 4 if the message is dropped because the member has left.`,
		Example: `  teamctl send builder "please look at task 3 first"
  teamctl send builder "stop touching main.go" --wait=read --timeout 1m
  teamctl send reviewer --forward 3f2a
  git diff | teamctl send reviewer - --summary "diff to review"
  teamctl send builder "run the tests" --kind task_request
  teamctl send 'worker-*' "the tests are green again"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if in.Forward != "" {
				return takes(1, -1, "the name of a member")(cmd, args)
			}
			return takes(2, -1, "the name of a member and a text")(cmd, args)
		},
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args[1:])
			if err != nil {
				return err
			}
			want, err := waitFor(cmd, wait)
			if err != nil {
				return err
			}
			in.Recipient, in.Content = args[0], text
			return a.send(cmd.Context(), in, want, timeout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Type, "kind", "message", "message, info, error, task_request or task_response")
	f.StringVar(&in.Summary, "summary", "", "a short summary for lists (default: the first words)")
	f.StringVar(&in.Parent, "parent", "", "id of the message that this one answers")
	f.StringVar(&in.IdemKey, "idempotency-key", "", "idempotency key: a message with a known key is not sent again")
	f.StringVar(&in.Task, "task", "", "id of the task that a task_request is about")
	f.StringVar(&in.Forward, "forward", "", "id of a message to forward; the text is put before it")
	waitFlags(cmd, &wait, &timeout)
	a.complete(cmd, "parent", a.completeMessages())
	a.complete(cmd, "forward", a.completeMessages())
	a.complete(cmd, "task", a.completeTasks(ledger.TaskFilter{Newest: true}))
	a.complete(cmd, "kind", words("message", "info", "error", "task_request", "task_response"))
	return cmd
}

func newBroadcast(a *app) *cobra.Command {
	in := tool.SendIn{Type: string(team.KindBroadcast)}
	var (
		wait    string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "broadcast TEXT...",
		Short: "Send a message to every member",
		Example: `  teamctl broadcast "the main branch is frozen"
  teamctl broadcast - < notes.txt`,
		Args: takes(1, -1, "a text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.message(args)
			if err != nil {
				return err
			}
			want, err := waitFor(cmd, wait)
			if err != nil {
				return err
			}
			in.Content = text
			return a.send(cmd.Context(), in, want, timeout)
		},
	}
	cmd.Flags().StringVar(&in.Summary, "summary", "", "a short summary for lists (default: the first words)")
	cmd.Flags().StringVar(&in.IdemKey, "idempotency-key", "", "idempotency key: a message with a known key is not sent again")
	waitFlags(cmd, &wait, &timeout)
	return cmd
}

func waitFlags(cmd *cobra.Command, wait *string, timeout *time.Duration) {
	cmd.Flags().StringVar(wait, "wait", "", "wait until the message is accepted, read or answered")
	cmd.Flags().Lookup("wait").NoOptDefVal = string(team.Accepted)
	cmd.Flags().DurationVar(timeout, "timeout", 0, "maximum time to wait (default: no limit)")
}

// waitFor parses --wait; "" means not to wait.
func waitFor(cmd *cobra.Command, wait string) (team.DeliveryState, error) {
	if wait == "" {
		if cmd.Flags().Changed("timeout") {
			return "", usage(cmd, "--timeout is for --wait")
		}
		return "", nil
	}
	return tool.ParseWait(wait)
}

// message is the text of a message: the words, or standard input for "-".
func (a *app) message(words []string) (string, error) {
	text := strings.Join(words, " ")
	if text == "-" {
		b, err := io.ReadAll(io.LimitReader(a.stdin, team.MaxMessageBytes+1))
		if err != nil {
			return "", team.Errorf(team.CodeInvalid, "read standard input: %w", err)
		}
		text = strings.TrimRight(string(b), "\n")
	}
	if !utf8.ValidString(text) {
		return "", team.Errorf(team.CodeInvalid, "the text is not UTF-8").WithReason(team.ReasonNotUTF8)
	}
	return text, nil
}

func (a *app) send(ctx context.Context, in tool.SendIn, want team.DeliveryState, timeout time.Duration) error {
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		names, group, err := t.Alike(ctx, c, in.Recipient)
		if err != nil {
			return err
		}
		if !group {
			sent, late, err := a.sendOne(ctx, t, c, in, want, timeout)
			if err == nil && (late == nil || !a.out.json) {
				a.out.value(sent)
			}
			return errors.Join(err, late)
		}
		each := a.out.format == formatName || a.out.format == formatJSONL
		all, late := tool.Sent{Success: true, Message: fmt.Sprintf("Message sent to %d member(s) of %s", len(names), in.Recipient)}, error(nil)
		for _, name := range names {
			one := in
			one.Recipient = name
			if in.IdemKey != "" {
				one.IdemKey += ":" + name
			}
			sent, slow, err := a.sendOne(ctx, t, c, one, want, timeout)
			if err != nil {
				return err
			}
			all.Recipients, all.Deliveries = append(all.Recipients, name), append(all.Deliveries, sent.Deliveries...)
			all.NotReading, late = append(all.NotReading, sent.NotReading...), cmp.Or(late, slow)
			if each {
				a.out.value(sent)
			}
		}
		if !each && (late == nil || !a.out.json) {
			a.out.value(all)
		}
		return late
	})
}

// sendOne sends a message, and says how far it has come unless the output is JSON. late is why it has
// not come as far as wanted.
func (a *app) sendOne(ctx context.Context, t *tool.Team, c tool.Caller, in tool.SendIn, want team.DeliveryState, timeout time.Duration) (sent tool.Sent, late, err error) {
	if sent, err = t.Send(ctx, c, in); err != nil {
		return sent, nil, err
	}
	if sent.Approval != 0 {
		if !a.out.json && a.out.format != formatName {
			a.out.line("not sent yet: it waits for approval %d", sent.Approval)
		}
		return sent, nil, nil
	}
	if want != "" {
		sent.Deliveries, late = t.Await(ctx, sent.MessageID, want, timeout)
	}
	if a.out.json || a.out.format == formatName {
		return sent, late, nil
	}
	if len(sent.Deliveries) == 0 {
		a.out.line("%s", sent.Message)
	}
	for _, d := range sent.Deliveries {
		a.out.line("%s: %s", d.Recipient, delivered(d))
	}
	if says := tool.SaysNotReading(sent.NotReading); says != "" {
		a.out.note("%s", says)
	}
	if want == "" && len(sent.Deliveries) > 0 {
		a.out.hint("teamctl message show %s", sent.MessageID[:8])
	}
	return sent, late, nil
}

// delivered reports how far a message has come, according to the evidence.
func delivered(d ledger.Delivery) string {
	text := map[team.DeliveryState]string{
		team.Posted: "posted, not in the mailbox yet", team.Mailed: "in the mailbox", team.Held: "held back",
		team.Injected: "put into the conversation", team.Unknown: "unknown: it was put into the conversation, and nothing shows it there", team.Accepted: "accepted", team.Read: "read",
		team.Answered: "answered", team.Dropped: "dropped",
	}[d.State]
	if text == "" {
		text = string(d.State)
	}
	if d.Reason != "" {
		text += " (" + printable(d.Reason) + ")"
	}
	return text
}

func newInbox(a *app) *cobra.Command {
	var unread, consume, prompt bool
	cmd := &cobra.Command{
		Use:   "inbox [MEMBER]",
		Short: "Read a mailbox (default: your own)",
		Long: `Read a mailbox without marking anything. --consume marks the printed mail as read
after printing it; if it is killed or cannot write, nothing is marked and the next
call prints the same messages. It works only with your own mailbox. --prompt prints
your unread mail as it is inserted into an agent's conversation: for the lead the
state of the team, then each message in an element of its own.`,
		Example: `  teamctl inbox
  teamctl inbox builder --unread
  teamctl inbox --consume --prompt
  teamctl inbox --consume --json`,
		Args:              takes(0, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				who := c.Name
				if len(args) == 1 {
					m, err := t.Member(cmd.Context(), args[0])
					if err != nil {
						return err
					}
					who = m.Name
				}
				if prompt && who != c.Name {
					return usage(cmd, "--prompt is for your own mail")
				}
				if consume && who != c.Name {
					return team.Errorf(team.CodeDenied, "the mailbox of %s is not yours to mark", who).WithReason(team.ReasonNotYours).
						WithHint("teamctl inbox " + who + " --unread shows it")
				}
				show := func(in tool.InboxOut) error {
					a.showInbox(in, prompt)
					return a.out.failure()
				}
				if consume { // marked once written
					return t.InboxConsume(cmd.Context(), c, show)
				}
				var (
					in  tool.InboxOut
					err error
				)
				if prompt {
					in, err = t.InboxPeek(cmd.Context(), c)
				} else {
					in, err = t.Inbox(cmd.Context(), who, unread)
				}
				if err != nil {
					return err
				}
				return show(in)
			})
		},
	}
	cmd.Flags().BoolVar(&unread, "unread", false, "only unread messages")
	cmd.Flags().BoolVar(&consume, "consume", false, "print your own unread mail, and mark it as read")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print your own unread mail in the form that is inserted into an agent's conversation")
	return cmd
}

// showInbox writes a mailbox, with prompt in the form that is inserted into a conversation.
func (a *app) showInbox(in tool.InboxOut, prompt bool) {
	if a.out.value(in) {
		return
	}
	if prompt {
		a.out.line("%s", in.Prompt)
		return
	}
	if len(in.Entries) == 0 {
		a.out.note("no mail for %s", in.Agent)
	}
	for _, e := range in.Entries {
		a.mail(e)
	}
}

func (a *app) mail(e tool.InboxEntry) {
	mark := " "
	if !e.Read {
		mark = a.out.style.Yellow("*")
	}
	kind := ""
	if e.Kind != string(team.KindMessage) {
		kind = view.Clean(e.Kind)
		if !e.Verified {
			kind += ", unverified"
		}
		kind = " " + a.out.style.Dim("["+kind+"]")
	}
	if e.MayBeKnown {
		kind += " " + a.out.style.Dim("[put back, may be known]")
	}
	a.out.line("%s %s %s%s", mark, a.out.style.Dim(clock(e.Timestamp)), a.out.style.Member(e.Color, view.Clean(e.From)), kind)
	text := e.Text
	if f, ok := inbox.Parse(text); ok {
		text = inbox.Describe(f)
	}
	for _, l := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		a.out.line("    %s", printable(l))
	}
}
