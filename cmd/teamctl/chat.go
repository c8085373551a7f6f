package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/agent/program"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newChat(a *app) *cobra.Command {
	var (
		once    bool
		timeout time.Duration
		repo    string
	)
	cmd := &cobra.Command{
		Use:   "chat [MEMBER]",
		Short: "Show the conversation of the lead or a member; join it",
		Long: `Show the conversation of a built-in agent, live; each line that you type is a message
to it. A line that starts with / is a command; /help lists them. ctrl-c ends the turn
under way, ctrl-d the chat: the agent stays at work.

Without a name it is the lead's own conversation, and this process runs it: an agent
that plans, spawns members, puts tasks on the board, assigns them and answers for you. It
goes on where it was, whatever was killed. What it may not do by itself waits for you:
/approve N, /approve N ANSWER for a question, or /reject N WHY. A second one shows the
conversation and sends. With --repo the team on that repository is made first if there
is none.

--once sends all of standard input as one message and writes the answer. The exit
status is 0 if it was answered, 1 if its turn failed, and 8 after --timeout.`,
		Example: `  teamctl chat --repo .
  teamctl chat dev
  echo "what is left?" | teamctl chat dev --once --timeout 5m`,
		Args:              takes(0, 1, "the name of a member; without it, the lead"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout != 0 && !once {
				return usage(cmd, "--timeout is for --once")
			}
			member := team.LeadName
			if len(args) > 0 {
				member = args[0]
			}
			if repo != "" {
				if member != team.LeadName {
					return usage(cmd, "--repo is for the lead's conversation, without the name of a member")
				}
				if err := a.teamOn(cmd.Context(), repo); err != nil {
					return err
				}
			}
			ctx, stop := a.whileOutput(cmd.Context())
			err := a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				m, err := t.Member(ctx, member)
				if err != nil {
					return err
				}
				if _, err := t.Session(ctx, m.Name); err != nil && team.ReasonOf(err) != team.ReasonSessionNotFound {
					return err
				}
				ch := &chat{app: a, in: a.stdin, team: t, caller: c, member: m}
				if once {
					text, err := a.message([]string{"-"})
					if err != nil {
						return err
					}
					return ch.once(ctx, text, timeout)
				}
				return ch.follow(ctx)
			})
			err = stop(err)
			if team.ReasonOf(err) == team.ReasonTeamNotFound && a.team == "" && member == team.LeadName {
				var e *team.Error
				if errors.As(err, &e) {
					return e.WithHint("teamctl chat --repo . makes one on this repository")
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "send standard input as one message and print the answer")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "maximum time to wait (default: no limit)")
	cmd.Flags().StringVar(&repo, "repo", "", "git repository: make the team on it if there is none")
	return cmd
}

// chat is a person's conversation with a member.
type chat struct {
	*app
	in     io.Reader // what is typed
	team   *tool.Team
	caller tool.Caller
	member ledger.Member
	pane   bool // it is typed in the member's own terminal
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

// lead reports whether the conversation is the lead's, whose person types here.
func (ch *chat) lead() bool { return ch.member.Name == team.LeadName }

// send sends a message, or gives the lead's conversation a line. id is what finds it.
func (ch *chat) send(ctx context.Context, text string) (id string, err error) {
	if ch.lead() || ch.pane {
		if !ch.caller.Person && !ch.pane {
			return "", team.Errorf(team.CodeDenied, "%s is not a person: only a person talks with the lead here", ch.caller.Name).
				WithReason(team.ReasonNotAPerson).WithHint("teamctl send " + team.LeadName + " TEXT")
		}
		id, _, err = program.Say(ctx, ch.team, ch.member, text)
		return id, err
	}
	sent, err := ch.team.Send(ctx, ch.caller, tool.SendIn{Type: string(team.KindMessage), Recipient: ch.member.Name, Content: text})
	return sent.MessageID, err
}

// once sends a message and waits for the end of the turn that took it.
func (ch *chat) once(ctx context.Context, text string, timeout time.Duration) error {
	again := strings.TrimSpace("teamctl chat " + strings.TrimPrefix(ch.member.Name, team.LeadName))
	late := team.Errorf(team.CodeTimeout, "no answer from %s after %s", ch.member.Name, timeout).WithReason(team.ReasonNoAnswer).WithHint(again)
	if timeout > 0 {
		c, cancel := context.WithTimeoutCause(ctx, timeout, late)
		defer cancel()
		ctx = c
	}
	if ch.lead() {
		run, err := ch.runLead(ctx, io.Discard)
		if err != nil {
			return err
		}
		if run != nil {
			defer func() { _ = run.stop() }() // the turn has its answer, or ctx its end
			run.open()
			ctx = run.ctx
		}
	}
	id, err := ch.send(ctx, text)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), late):
		return team.Errorf(team.CodeTimeout, "it is unknown whether %s was sent the message within %s: %w", ch.member.Name, timeout, err).
			WithReason(team.ReasonNoAnswer).WithHint("teamctl message ls; " + again)
	case err != nil:
		return err
	}
	var got chatAnswer
	err = ch.team.OnChange(ctx, func() error {
		var done bool
		if got, done, err = ch.answered(ctx, id); err != nil || !done {
			return err
		}
		return errChatEnd
	})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errChatEnd) {
		err = cause
	}
	switch {
	case errors.Is(err, late):
		if !ch.lead() {
			return late.WithHint("teamctl message show " + id[:8] + "; " + again)
		}
		return late
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

// entryOf is where in the transcript a message or line is; 0 while it is nowhere.
func (ch *chat) entryOf(ctx context.Context, id string) (int64, error) {
	if ch.lead() {
		e, _, err := ch.team.Ledger.EntryOf(ctx, ch.member.SessionKey, id)
		return e.Seq, err
	}
	ds, err := ch.team.Ledger.Deliveries(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, d := range ds {
		n, _, ok := strings.Cut(strings.TrimPrefix(d.Evidence, "entry "), " of the transcript")
		if !ok || !strings.HasPrefix(d.Evidence, "entry ") {
			continue
		}
		if seq, err := strconv.ParseInt(n, 10, 64); err == nil {
			return seq, nil
		}
	}
	return 0, nil
}

// answered looks for the end of the turn that a message was taken into.
func (ch *chat) answered(ctx context.Context, id string) (out chatAnswer, done bool, err error) {
	session := ch.member.SessionKey
	seq, err := ch.entryOf(ctx, id)
	if err != nil || seq == 0 {
		return out, false, err
	}
	// Turns before entries: all entries of a turn that has ended are there.
	turns, err := ch.team.Ledger.TurnJobs(ctx, ledger.JobFilter{Session: session})
	if err != nil {
		return out, false, err
	}
	entries, err := ch.team.Ledger.Entries(ctx, session, seq-1, 0)
	if err != nil || len(entries) == 0 {
		return out, false, err
	}
	if err := ch.team.Whole(ctx, session, entries); err != nil {
		return out, false, err
	}
	for _, j := range turns {
		if !j.State.Ended() || j.State == team.TurnSteered || j.EndedAt < entries[0].At || entries[0].Job != 0 && j.ID < entries[0].Job {
			continue
		}
		out = chatAnswer{Message: id, Turn: j.ID, State: j.State, Reason: j.Reason}
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
