package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newChat(a *app) *cobra.Command {
	var (
		once    bool
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "chat MEMBER",
		Short: "Show the conversation of a built-in agent, and join it",
		Long: `Show the conversation of a built-in agent, live; each line that you type is a message
to it. A line that starts with / is a command; /help lists them. The end of the input
(ctrl-d) leaves the agent at work.

--once sends all of standard input as one message and writes the answer. The exit
status is 0 if it was answered, 1 if its turn failed, and 8 after --timeout.`,
		Example: `  teamctl chat dev
  echo "what is left?" | teamctl chat dev --once --timeout 5m`,
		Args:              takes(1, 1, "the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout != 0 && !once {
				return usage(cmd, "--timeout is for --once")
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				ch := &chat{app: a, team: t, caller: c, member: args[0]}
				if once {
					text, err := a.message([]string{"-"})
					if err != nil {
						return err
					}
					return ch.once(cmd.Context(), text, timeout)
				}
				return ch.follow(cmd.Context())
			})
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "send standard input as one message and print the answer")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "maximum time to wait (default: no limit)")
	return cmd
}

// chat is a person's conversation with a member.
type chat struct {
	*app
	team   *tool.Team
	caller tool.Caller
	member string
}

// errChatEnd ends following.
var errChatEnd = errors.New("the end of the chat")

// chatAnswer is the output of --once with --json.
type chatAnswer struct {
	Message string         `json:"message"` // id
	Turn    int64          `json:"turn"`
	State   team.TurnState `json:"state"`
	Answer  string         `json:"answer"`
	Reason  string         `json:"reason,omitempty"`
}

// once sends a message and waits for the end of the turn that took it.
func (ch *chat) once(ctx context.Context, text string, timeout time.Duration) error {
	s, err := ch.team.Member(ctx, ch.member)
	if err != nil {
		return err
	}
	if _, err := ch.team.Session(ctx, s.Name); err != nil && team.ReasonOf(err) != team.ReasonSessionNotFound {
		return err
	}
	sent, err := ch.team.Send(ctx, ch.caller, tool.SendIn{Type: string(team.KindMessage), Recipient: s.Name, Content: text})
	if err != nil {
		return err
	}
	late := errors.New("late")
	if timeout > 0 {
		c, cancel := context.WithTimeoutCause(ctx, timeout, late)
		defer cancel()
		ctx = c
	}
	var got chatAnswer
	err = ch.team.OnChange(ctx, func() error {
		var done bool
		if got, done, err = ch.answered(ctx, s.SessionKey, sent.MessageID); err != nil || !done {
			return err
		}
		return errChatEnd
	})
	switch {
	case errors.Is(context.Cause(ctx), late):
		return team.Errorf(team.CodeTimeout, "no answer from %s after %s", s.Name, timeout).WithReason(team.ReasonNoAnswer).
			WithHint("teamctl message show " + sent.MessageID[:8] + "; teamctl chat " + s.Name)
	case !errors.Is(err, errChatEnd):
		return err
	}
	if !ch.out.value(got) {
		ch.out.line("%s", printableLines(got.Answer))
	}
	if got.State != team.TurnDone {
		ch.out.note("turn %d is %s: %s", got.Turn, got.State, printable(got.Reason))
		return exitError(1)
	}
	return nil
}

// answered looks for the end of the turn that a message was taken into.
func (ch *chat) answered(ctx context.Context, session, message string) (out chatAnswer, done bool, err error) {
	ds, err := ch.team.Ledger.Deliveries(ctx, message)
	if err != nil {
		return out, false, err
	}
	seq := int64(0)
	for _, d := range ds {
		n, _, ok := strings.Cut(strings.TrimPrefix(d.Evidence, "entry "), " of the transcript")
		if ok && strings.HasPrefix(d.Evidence, "entry ") {
			if seq, err = strconv.ParseInt(n, 10, 64); err != nil {
				return out, false, nil
			}
		}
	}
	if seq == 0 {
		return out, false, nil
	}
	entries, err := ch.team.Ledger.Entries(ctx, session, seq-1, 0)
	if err != nil || len(entries) == 0 {
		return out, false, err
	}
	turns, err := ch.team.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: session})
	if err != nil {
		return out, false, err
	}
	for _, j := range turns {
		if !j.State.Ended() || j.State == team.TurnSteered || j.EndedAt < entries[0].At || entries[0].Job != 0 && j.ID < entries[0].Job {
			continue
		}
		out = chatAnswer{Message: message, Turn: j.ID, State: j.State, Reason: j.Reason}
		mine := false
		for _, e := range entries {
			if e.Job == j.ID && e.Kind == ledger.EntryAssistant {
				mine, out.Answer = true, e.Content
			}
		}
		if mine || j.State != team.TurnDone {
			return out, true, nil
		}
	}
	return out, false, nil
}

// follow shows the conversation as it grows, and sends what is typed.
func (ch *chat) follow(ctx context.Context) error {
	m, err := ch.team.Member(ctx, ch.member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	typed := make(chan error, 1)
	go func() { // it ends with the input; nothing else can end a read of it
		err := ch.read(ctx, m.Name)
		if err == nil {
			err = errChatEnd
		}
		typed <- err
		cancel(err)
	}()
	seq := int64(0)
	if s, err := ch.team.Session(ctx, m.Name); err == nil {
		seq = max(0, s.LastSeq-chatBack)
	} else if team.ReasonOf(err) != team.ReasonSessionNotFound {
		return err
	}
	err = ch.team.OnChange(ctx, func() error {
		list, err := ch.team.Ledger.Entries(ctx, m.SessionKey, seq, 0)
		for _, e := range list {
			seq = e.Seq
			ch.entry(e)
		}
		return errors.Join(err, ch.out.failed)
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errChatEnd) {
		return nil
	}
	return err
}

// chatBack is the number of past entries that a chat shows at its start.
const chatBack = 20

// read takes the lines of the person.
func (ch *chat) read(ctx context.Context, member string) error {
	lines := bufio.NewReader(ch.stdin)
	for {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			if err := ch.typed(ctx, member, text); err != nil {
				ch.out.note("%v", err)
				if hint := team.HintOf(err); hint != "" {
					ch.out.hint("%s", hint)
				}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// typed is one line: a command, or a message.
func (ch *chat) typed(ctx context.Context, member, text string) error {
	if strings.HasPrefix(text, "/") {
		return ch.command(ctx, member, text)
	}
	_, err := ch.team.Send(ctx, ch.caller, tool.SendIn{Type: string(team.KindMessage), Recipient: member, Content: text})
	return err
}
