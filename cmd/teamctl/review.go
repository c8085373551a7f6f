package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/tool"
)

func newReview(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "review VERB",
		Short: "Comment on the changes or the plan of a member",
		Long: `Comment on the changes of a member, line by line. Comments are drafts until they are
sent, all of them as one message or as a task; the member answers each. They are
numbered by round: 3.2 is the second of round 3. Where the file changes they follow
their lines.

Comments on a plan that waits for approval are drafts, too. They go with its rejection
(teamctl approvals reject ID --comments).`,
		Example: `  teamctl review add builder cart.go:41 "why two digits? the currency knows them"
  teamctl review send builder
  teamctl review show builder
  teamctl review answer 3.1 --handled
  teamctl review add --plan 3 --line 12 "which release?"`,
		Args: unknownVerb,
		RunE: needsVerb,
	}
	cmd.AddCommand(newReviewShow(a), newReviewAdd(a), newReviewSend(a), newReviewAnswer(a))
	return cmd
}

func newReviewShow(a *app) *cobra.Command {
	var plan string
	cmd := &cobra.Command{
		Use:   "show [MEMBER | --plan ID]",
		Short: "Show the comments on the changes of a member, or of all",
		Long: `Show the comments on the changes of a member, or of all: the file and the line where
each is now, and whether it is a draft, open, handled or asked back. A comment whose
lines are no longer there has changed since. With --plan, show those on a plan.`,
		Example:           "  teamctl review show\n  teamctl review show builder\n  teamctl review show --plan 3",
		Args:              takes(0, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			member := ""
			if len(args) > 0 {
				member = args[0]
			}
			if plan != "" && member != "" {
				return usage(cmd, "either a member or --plan")
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				var list []tool.Review
				var err error
				if plan != "" {
					list = make([]tool.Review, 1)
					list[0], err = t.PlanComments(cmd.Context(), c, plan)
				} else {
					list, err = t.ReviewShow(cmd.Context(), c, member)
				}
				if err != nil || a.out.value(map[string]any{"reviews": list}) {
					return err
				}
				any := false
				for _, r := range list {
					for _, x := range r.Comments {
						any = true
						a.out.text(reviewLines(r.Member, x))
					}
				}
				if !any {
					a.out.note("there are no comments")
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "show the comments on this plan, by the id of its approval")
	a.complete(cmd, "plan", a.completeApprovals(false))
	return cmd
}

// reviewLines are a comment for people, in lines.
func reviewLines(member string, c tool.ReviewComment) string {
	var b strings.Builder
	at := c.Anchor
	if c.Line > 0 {
		at.First, at.Last = c.Line, c.Line+at.Last-at.First
	}
	state := map[ledger.CommentState]string{ledger.CommentAsked: "asks back"}[c.State]
	if state == "" {
		state = string(c.State)
	}
	if c.Plan != 0 && c.State == ledger.CommentOpen {
		state = "sent"
	}
	where := plain.Visible(at.Where())
	if c.Plan != 0 {
		where = fmt.Sprintf("plan %d, %s", c.Plan, at.Lines())
	}
	fmt.Fprintf(&b, "%s  %s  %s  %s", c.Name, member, where, state)
	if at.Old {
		b.WriteString(", removed lines")
	}
	if c.Changed {
		b.WriteString(", changed since")
	}
	b.WriteByte('\n')
	if at.First > 0 {
		for l := range strings.SplitSeq(at.Quote, "\n") {
			b.WriteString("  > " + plain.Visible(strings.ReplaceAll(l, "\t", "    ")) + "\n")
		}
	}
	for l := range strings.SplitSeq(c.Text, "\n") {
		b.WriteString("  " + plain.Visible(l) + "\n")
	}
	if c.Answer != "" {
		b.WriteString("  " + member + ": " + plain.Visible(c.Answer) + "\n")
	}
	return b.String()
}

func newReviewAdd(a *app) *cobra.Command {
	var (
		in     tool.ReviewAddIn
		seen   bool
		unseen bool
	)
	cmd := &cobra.Command{
		Use:   "add (MEMBER FILE[:LINES] | --plan ID --line LINES) TEXT...",
		Short: "Write a draft of a comment on a file, lines or a plan",
		Long: `Write a comment on the changes of a member: on a file, on a line (cart.go:41) or on some
lines (cart.go:40-44), as the file is in its worktree. --old counts the lines as they
were before, for lines that the member has removed. Nothing is sent before review send.

--plan names a plan instead of a member and a file, by the id of its approval, and --line
the line or the lines of it, counted from 1.

--comment changes a comment that was not sent yet, and deletes it where TEXT is empty.
--reviewed marks the file as reviewed until it changes, without a comment.`,
		Example: `  teamctl review add builder cart.go:41 "why two digits?"
  teamctl review add builder price.go:7-9 --old "these checks are still needed"
  teamctl review add builder --comment 3.2 "why two digits? the currency knows them"
  teamctl review add builder cart.go --reviewed
  teamctl review add --plan 3 --line 12-14 "in a commit of its own"`,
		Args:              takes(1, -1, "the name of a member, a file and the comment"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case in.Plan != "" && (in.Old || seen || unseen):
				return usage(cmd, "a plan has no removed lines, and is not marked as reviewed")
			case in.Plan != "" && in.Lines == "" && in.Comment == "":
				return usage(cmd, "--line says which line of the plan the comment is about")
			case in.Plan == "" && in.Lines != "":
				return usage(cmd, "--line is of a plan: of a file, say FILE:LINES")
			case in.Plan == "":
				in.Member, args = args[0], args[1:]
			}
			if in.Plan == "" && (in.Comment == "" || seen || unseen) {
				if len(args) == 0 {
					return usage(cmd, "which file the comment is about has to be said")
				}
				in.File, in.Lines = splitPlace(args[0])
				args = args[1:]
			}
			switch {
			case seen && unseen:
				return usage(cmd, "--reviewed and --not-reviewed contradict each other")
			case seen || unseen:
				if len(args) > 0 || in.Lines != "" || in.Comment != "" {
					return usage(cmd, "a mark is of a whole file and has no text")
				}
				in.Reviewed = &seen
			case len(args) == 0:
				return usage(cmd, "the comment is missing")
			default:
				text, err := a.message(args)
				if err != nil {
					return err
				}
				in.Text = text
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				x, err := t.ReviewAdd(cmd.Context(), c, in)
				if err != nil || a.out.value(x) {
					return err
				}
				switch {
				case in.Plan != "" && in.Text == "":
					a.out.line("comment %s on plan %d of %s is deleted", x.Name, x.Plan, x.Member)
				case in.Plan != "":
					a.out.line("comment %s on %s of plan %d of %s is a draft", x.Name, x.Lines(), x.Plan, x.Member)
					a.out.hint("teamctl approvals reject %d --comments", x.Plan)
				case in.Reviewed != nil && seen:
					a.out.line("%s of %s is reviewed", plain.Visible(in.File), x.Member)
				case in.Reviewed != nil:
					a.out.line("%s of %s is not reviewed", plain.Visible(in.File), x.Member)
				case in.Text == "":
					a.out.line("comment %s on the changes of %s is deleted", x.Name, x.Member)
				default:
					a.out.line("comment %s on %s of %s is a draft", x.Name, plain.Visible(x.Where()), x.Member)
					a.out.hint("teamctl review send %s", x.Member)
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&in.Old, "old", false, "count the lines as they were before the changes")
	flags.StringVar(&in.Comment, "comment", "", "change this comment, 3.2, which was not sent yet")
	flags.StringVar(&in.Plan, "plan", "", "comment on this plan, by the id of its approval")
	flags.StringVar(&in.Lines, "line", "", "of a plan: the line, or the lines as 12-14")
	flags.BoolVar(&seen, "reviewed", false, "mark the file as reviewed until it changes")
	flags.BoolVar(&unseen, "not-reviewed", false, "take that mark away")
	a.complete(cmd, "plan", a.completeApprovals(true))
	return cmd
}

// splitPlace parts "cart.go:40-44" into the file and the lines. A file whose name ends like
// that is meant where what follows the colon is not a number.
func splitPlace(s string) (file, lines string) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || i == len(s)-1 || strings.Trim(s[i+1:], "0123456789-") != "" {
		return s, ""
	}
	return s[:i], s[i+1:]
}

func newReviewSend(a *app) *cobra.Command {
	var task bool
	cmd := &cobra.Command{
		Use:   "send MEMBER",
		Short: "Send all your comments on a member's changes to it",
		Long: `Send all your comments on a member's changes to it as one message, with the file, the
lines and the text of each; with --task as a task of the member. Comments that are too
long for a message are written to a file, whose path is sent.`,
		Example:           "  teamctl review send builder\n  teamctl review send builder --task",
		Args:              takes(1, 1, "the name of one member"),
		ValidArgsFunction: first(a.completeMembers(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				out, err := t.ReviewSend(cmd.Context(), c, args[0], task)
				if err != nil || a.out.value(out) {
					return err
				}
				a.out.line("%s", sentReview(args[0], out))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&task, "task", false, "make a task of the member of them")
	return cmd
}

func sentReview(member string, out tool.SentReview) string {
	n := fmt.Sprintf("%d comments", out.Comments)
	if out.Comments == 1 {
		n = "1 comment"
	}
	if out.Task != "" {
		return fmt.Sprintf("review %d with %s is task %s of %s", out.Round, n, out.Task, member)
	}
	return fmt.Sprintf("review %d with %s was sent to %s", out.Round, n, member)
}

func newReviewAnswer(a *app) *cobra.Command {
	var in tool.ReviewAnswerIn
	var ask string
	cmd := &cobra.Command{
		Use:   "answer COMMENT (--handled [TEXT] | --ask TEXT)",
		Short: "Answer a comment: handled, or a question to its author",
		Example: `  teamctl review answer 3.2 --handled "rounds by the currency now"
  teamctl review answer 3.2 --ask "which currency?"
  teamctl review answer 3.2 --handled --member builder`,
		Args: takes(1, -1, "the number of a comment, 3.2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Comment = args[0]
			if in.Handled == (ask != "") {
				return usage(cmd, "an answer is --handled, or --ask with a question")
			}
			if ask != "" && len(args) > 1 {
				return usage(cmd, "the question follows --ask as one word: quote it")
			}
			in.Text = strings.Join(args[1:], " ")
			if ask != "" {
				in.Text = ask
			}
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				if c.Person && in.Member == "" {
					return usage(cmd, "--member names whose comment is answered")
				}
				x, err := t.ReviewAnswer(cmd.Context(), c, in)
				if err != nil || a.out.value(x) {
					return err
				}
				if in.Handled {
					a.out.line("comment %s is handled", x.Name)
				} else {
					a.out.line("%s is asked about comment %s", x.Author, x.Name)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&in.Handled, "handled", false, "what it asks for is done")
	cmd.Flags().StringVar(&ask, "ask", "", "ask its author this")
	cmd.Flags().StringVar(&in.Member, "member", "", "whose changes the comment is about (default: yours)")
	a.complete(cmd, "member", a.completeMembers(false))
	return cmd
}
