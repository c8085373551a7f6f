package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func newApprovals(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "approvals [VERB]",
		Short: "Answer requests: ls, show, approve, reject, rules",
		Long: `List pending requests and answer them: plans, permissions, tasks to review,
delegation. A person may answer all of them; a member only those that name its role
(teamctl settings answerer.plan leader), and rules of the team file answer the
permission requests that they match (teamctl approvals rules). Requests are answered
only here: no message can approve anything. A member whose program asks at its own
screen, to trust a directory or to log in, is listed with the command that attaches to
it: nothing is typed into such a question.`,
		Example: `  teamctl approvals
  teamctl approvals approve 3
  teamctl approvals reject 3 --feedback "add tests first"`,
		Args: unknownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listApprovals(cmd.Context(), all) },
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list answered requests")
	ls := &cobra.Command{
		Use: "ls", Short: "List pending requests", Example: "  teamctl approvals ls --all\n  teamctl approvals ls -o wide", Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listApprovals(cmd.Context(), all) },
	}
	ls.Flags().BoolVar(&all, "all", false, "also list answered requests")
	cmd.AddCommand(ls, newApprovalShow(a), newApprove(a), newReject(a), newApprovalRules(a))
	return cmd
}

func (a *app) listApprovals(ctx context.Context, all bool) error {
	return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
		list, err := t.Approvals(ctx, all)
		if err != nil {
			return err
		}
		screens, err := t.AtScreens(ctx)
		if err != nil {
			return err
		}
		if a.out.value(map[string]any{"approvals": list, "screens": screens}) {
			return nil
		}
		switch {
		case len(list) > 0:
			a.showApprovals(list)
		case len(screens) == 0:
			a.out.note("nothing waits for an answer")
		}
		for _, x := range screens {
			a.out.line("%s is %s at its own screen, for %s: %s", x.Name, view.Cut(view.Clean(cmp.Or(x.Reason, "waiting")), 100), age(x.Since), x.Attach)
		}
		return nil
	})
}

func (a *app) showApprovals(list []ledger.Approval) {
	var rows [][]string
	for _, x := range list {
		state := string(x.State)
		if x.AnsweredBy != "" {
			state += " by " + view.By(x.AnsweredBy, x.AnsweredVia)
		}
		rows = append(rows, []string{strconv.FormatInt(x.ID, 10), string(x.Kind), x.Name, state, age(x.CreatedAt), x.Answerer, view.Cut(plain.Visible(x.Subject), 60)})
	}
	a.out.table([]string{"ID", "KIND", "FROM", "STATE", "AGE", "ANSWERER", "SUBJECT"}, rows, false)
}

func newApprovalShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show a request in full",
		Example: "  teamctl approvals show 3\n  teamctl approvals show 3 --json",
		Args:    takes(1, 1, "the id of an approval"),

		ValidArgsFunction: first(a.completeApprovals(false)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				x, err := t.Ledger.Approval(cmd.Context(), approvalID(args[0]))
				if err != nil {
					return err
				}
				if a.out.value(x) {
					return nil
				}
				a.showApproval(x)
				said, err := t.PlanComments(cmd.Context(), c, strconv.FormatInt(x.ID, 10))
				if err != nil {
					return err
				}
				for _, y := range said.Comments {
					a.out.text(reviewLines(said.Member, y))
				}
				if rule, ok, err := t.RuleFor(cmd.Context(), x); err != nil || !ok || x.State != ledger.ApprovalPending {
					return err
				} else {
					a.out.line("%-12s %s", "--always adds", plain.Visible(rule.String()))
				}
				return nil
			})
		},
	}
}

func (a *app) showApproval(x ledger.Approval) {
	for _, kv := range [][2]string{
		{"approval", strconv.FormatInt(x.ID, 10)}, {"kind", string(x.Kind)}, {"state", string(x.State)}, {"from", x.Name},
		{"answerer", x.Answerer}, {"subject", x.Subject}, {"task", x.Task}, {"request", x.RequestID}, {"asked", when(x.CreatedAt)},
		{"deadline", when(x.Deadline)}, {"answered by", view.By(x.AnsweredBy, x.AnsweredVia)}, {"feedback", x.Feedback},
	} {
		if kv[1] != "" {
			a.out.line("%-12s %s", kv[0], plain.Visible(kv[1]))
		}
	}
	a.showMetadata(x.Payload, func(name, value string) {
		if x.Kind == ledger.ApprovePlan && (name == "plan_content" || name == "plan") {
			value = numbered(value) // a comment names a line
		}
		a.out.line("%s\n  %s", name, strings.ReplaceAll(escapedLines(value), "\n", "\n  "))
	})
}

// numbered numbers the lines of a text.
func numbered(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = fmt.Sprintf("%*d  %s", len(strconv.Itoa(len(lines))), i+1, strings.TrimSuffix(l, "\r"))
	}
	return strings.Join(lines, "\n")
}

// escapedLines keeps the line breaks of a text and escapes everything else that a terminal would
// hide or interpret.
func escapedLines(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = plain.Visible(l)
	}
	return strings.Join(lines, "\n")
}

func newApprove(a *app) *cobra.Command {
	in := tool.AnswerIn{Approve: true}
	var input, updates string
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a request",
		Long: `Approve a request. An approved plan puts its member into the given mode; an approved
review completes the task; an approved delegation is carried out. If the request
contains a question, give the answer too, as one of the options or in your own words.

With --always a rule of the team (teamctl approvals rules) allows the same permission
from now on: the very command or file, or the tool for that member. "approvals show"
names the rule. Only a person may add one.`,
		Example: "  teamctl approvals approve 3\n  teamctl approvals approve 3 --always\n  teamctl approvals approve 3 --mode acceptEdits\n  teamctl approvals approve 3 --answer \"the second one\"",
		Args:    takes(1, 1, "the id of an approval"),

		ValidArgsFunction: first(a.completeApprovals(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if input != "" {
				if !json.Valid([]byte(input)) {
					return usage(cmd, "--input is not valid JSON")
				}
				in.UpdatedInput = json.RawMessage(input)
			}
			if updates != "" {
				if !json.Valid([]byte(updates)) {
					return usage(cmd, "--updates is not valid JSON")
				}
				in.Updates = json.RawMessage(updates)
			}
			return a.answer(cmd.Context(), args[0], in)
		},
	}
	cmd.Flags().StringArrayVar(&in.Answers, "answer", nil, "answer to a question; repeat the flag for each question of the request")
	cmd.Flags().StringVar(&updates, "updates", "", "of a permission: rules to add, so that the agent does not ask again, as JSON as its request suggests them")
	cmd.Flags().StringVar(&in.Mode, "mode", "", "of a plan: the permission mode in which the member continues (default: default)")
	cmd.Flags().StringVar(&input, "input", "", "permitted input of the tool, as JSON (permission requests only)")
	cmd.Flags().StringVar(&in.Feedback, "feedback", "", "what the member is told with it")
	cmd.Flags().BoolVar(&in.Always, "always", false, "of a permission: allow the same from now on, by a rule of the team")
	a.complete(cmd, "mode", words("default", "acceptEdits", "bypassPermissions", "dontAsk"))
	return cmd
}

func newReject(a *app) *cobra.Command {
	var in tool.AnswerIn
	cmd := &cobra.Command{
		Use:   "reject ID (--feedback TEXT | --comments)",
		Short: "Reject a request, with feedback",
		Long: `Reject a request, with feedback: the reason, or what to change. With --comments your
comments on the lines of a plan (teamctl review add --plan) go with it, each with the
lines that it is about.`,
		Example: "  teamctl approvals reject 3 --feedback \"add tests first\"\n  teamctl approvals reject 3 --comments --feedback \"two steps are missing\"",
		Args:    takes(1, 1, "the id of an approval"),

		ValidArgsFunction: first(a.completeApprovals(true)),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.answer(cmd.Context(), args[0], in) },
	}
	cmd.Flags().StringVar(&in.Feedback, "feedback", "", "reason, or what to change")
	cmd.Flags().BoolVar(&in.Comments, "comments", false, "of a plan: send your comments on its lines, too")
	return cmd
}

func (a *app) answer(ctx context.Context, id string, in tool.AnswerIn) error {
	in.ID = approvalID(id)
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		done, err := t.Answer(ctx, c, in)
		if err != nil {
			return err
		}
		x := answeredApproval{Answered: done}
		if done.Outcome == "" && done.Kind == ledger.ApprovePlan && in.Approve {
			x.Mode, x.ModeFrom = a.newMode(ctx, t, done.Approval)
		}
		if a.out.value(x) {
			return nil
		}
		again := ""
		if x.Outcome != "" {
			again = " already"
		}
		a.out.line("%s %d of %s: %s%s", x.Kind, x.ID, x.Name, x.State, again)
		if x.Unsent > 0 {
			a.out.line("without your comments on it: %d (teamctl review show --plan %d)", x.Unsent, x.ID)
		}
		if x.Rule != nil {
			a.out.line("allowed from now on: %s", plain.Visible(x.Rule.String()))
		}
		if x.ModeFrom != "" {
			a.out.line("%s continues in mode %s: %s", x.Name, modeOf(x.Mode), x.ModeFrom)
		}
		return nil
	})
}

// newMode returns the mode that an approved plan sets for its member, and when the running agent
// adopts it, as declared for its kind.
func (a *app) newMode(ctx context.Context, t *tool.Team, x ledger.Approval) (mode team.Mode, from string) {
	m, err := t.Ledger.MemberBySession(ctx, x.Session)
	if err != nil {
		return "", ""
	}
	if l, err := a.adapters(); err == nil {
		if p, err := l.Show(m.Spec.Agent); err == nil {
			from = p.NewMode
		}
	}
	return m.Spec.Mode, from
}

func approvalID(s string) string { return strings.TrimPrefix(strings.TrimSpace(s), "#") }

func newAsk(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ask VERB",
		Short:   "Ask for an approval as a member: plan, permission",
		Example: "  teamctl ask plan - --wait < plan.md\n  teamctl ask permission Bash --input '{\"command\":\"make\"}' --wait",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(newAskPlan(a), newAskPermission(a))
	return cmd
}

// waiting holds the flags of a request that a command can wait for.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait for the answer: exit status 0 approved, 5 rejected, 8 not answered in time")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "maximum time to wait (default: no limit)")
}

func newAskPlan(a *app) *cobra.Command {
	var (
		in tool.PlanIn
		w  waiting
	)
	cmd := &cobra.Command{
		Use:   "plan TEXT...",
		Short: "Submit a plan; - reads standard input",
		Long: `Submit a plan to the lead. A member may have one pending plan; it is rejected when the
member exits. When it is approved the member's permission mode changes.`,
		Example: "  teamctl ask plan \"split the parser, then port it\"\n  teamctl ask plan - --path plan.md --wait < plan.md",
		Args:    takes(1, -1, "the plan"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if in.Content, err = a.message(args); err != nil {
				return err
			}
			return a.ask(cmd.Context(), w, func(t *tool.Team, c tool.Caller) (ledger.Approval, error) {
				return t.AskPlan(cmd.Context(), c, in)
			})
		},
	}
	w.flags(cmd)
	cmd.Flags().StringVar(&in.Path, "path", "", "file with the plan")
	cmd.Flags().StringVar(&in.RequestID, "request-id", "", "id of the request (default: a new one)")
	return cmd
}

func newAskPermission(a *app) *cobra.Command {
	var (
		in    tool.PermissionIn
		w     waiting
		input string
	)
	cmd := &cobra.Command{
		Use:     "permission TOOL",
		Short:   "Request permission to use a tool",
		Example: "  teamctl ask permission Bash --input '{\"command\":\"make test\"}'\n  teamctl ask permission Bash --description \"run the tests\" --wait --timeout 5m",
		Args:    takes(1, 1, "the name of a tool"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in.ToolName = args[0]
			if input != "" {
				in.Input = json.RawMessage(input)
			}
			return a.ask(cmd.Context(), w, func(t *tool.Team, c tool.Caller) (ledger.Approval, error) {
				return t.AskPermission(cmd.Context(), c, in)
			})
		},
	}
	w.flags(cmd)
	cmd.Flags().StringVar(&input, "input", "", "input of the tool, as JSON")
	cmd.Flags().StringVar(&in.Description, "description", "", "purpose of the lease")
	cmd.Flags().StringVar(&in.ToolUseID, "tool-use-id", "", "id of the tool use, for the answer")
	cmd.Flags().StringVar(&in.RequestID, "request-id", "", "id of the request (default: a new one)")
	return cmd
}

// askedApproval is the outcome of a request, with what was answered.
type askedApproval struct {
	ledger.Approval
	UpdatedInput json.RawMessage `json:"updatedInput,omitempty"`      // replaces the input of the request
	Updates      json.RawMessage `json:"permissionUpdates,omitempty"` // permissions granted for later requests
	Mode         team.Mode       `json:"permissionMode,omitempty"`    // set by an approved plan
}

func (a *app) ask(ctx context.Context, w waiting, f func(*tool.Team, tool.Caller) (ledger.Approval, error)) error {
	return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
		x, err := f(t, c)
		if err == nil && w.wait {
			x, err = t.AwaitApproval(ctx, x.ID, w.timeout)
		}
		if err != nil {
			return err
		}
		with, err := t.GrantedWith(context.WithoutCancel(ctx), x)
		if err != nil {
			return err
		}
		if a.out.value(askedApproval{x, with.Input, with.Updates, with.Mode}) {
			return nil
		}
		if x.State == ledger.ApprovalPending {
			a.out.line("%s %d waits for an answer", x.Kind, x.ID)
		} else {
			a.out.line("%s %d was %s by %s", x.Kind, x.ID, x.State, view.By(x.AnsweredBy, x.AnsweredVia))
		}
		if len(with.Input) > 0 { // the input differs from the requested one: a caller that reads only the status would not notice
			a.out.line("with another input only: %s", plain.Visible(string(with.Input)))
		}
		if with.Mode != "" {
			a.out.line("continue in mode %s", with.Mode)
		}
		return nil
	})
}

func newRespond(a *app) *cobra.Command {
	in := tool.SendIn{Type: "shutdown_response"}
	var approve bool
	cmd := &cobra.Command{
		Use:   "respond REQUEST-ID --approve | --reject REASON",
		Short: "Answer a shutdown request as its recipient",
		Long: `Answer a shutdown request in your mailbox. After --approve you are expected to exit;
after --reject you continue, and the lead gets the reason.`,
		Example: "  teamctl respond shutdown-1795237099787@builder --approve\n  teamctl respond shutdown-1795237099787@builder --reject \"mid-task\"",
		Args:    takes(1, 1, "the id of the request"),

		ValidArgsFunction: first(a.completeRequests()),
		RunE: func(cmd *cobra.Command, args []string) error {
			if approve == (in.Content != "") {
				return usage(cmd, "either --approve or --reject REASON")
			}
			in.RequestID, in.Approve = args[0], &approve
			return a.withTeam(cmd.Context(), func(t *tool.Team, c tool.Caller) error {
				sent, err := t.Send(cmd.Context(), c, in)
				if err == nil && !a.out.value(sent) {
					a.out.line("%s", sent.Message)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&approve, "approve", false, "approve: this member exits now")
	cmd.Flags().StringVar(&in.Content, "reject", "", "reject, with the reason")
	return cmd
}

func newSettings(a *app) *cobra.Command {
	var unset bool
	cmd := &cobra.Command{
		Use:   "settings [NAME [VALUE]]",
		Short: "Show or change the settings of the team",
		Long: `Show the team's settings, or change one. Delegation is decided by delegation.MEMBER,
else delegation, else the role: a leader may delegate, others may not.
delegationPolicy in a task's metadata can only tighten that: for the named task, and
for members working on one. Its owner cannot change it.`,
		Example: `  teamctl settings
  teamctl settings delegation approval_required
  teamctl settings delegation.builder auto
  teamctl settings answerer.plan person
  teamctl settings lead-answers permissions
  teamctl settings spawn-depth --unset`,
		Args: takes(0, 2, "a name and a value"),

		ValidArgsFunction: first(a.completeSettings()),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				switch {
				case unset && len(args) != 1:
					return usage(cmd, "--unset takes the name of one setting")
				case unset, len(args) == 2:
					value := ""
					if !unset {
						if value = args[1]; value == "" {
							return usage(cmd, "the value of a setting cannot be empty: --unset resets it")
						}
					}
					if err := t.Set(ctx, c, args[0], value); err != nil {
						return err
					}
					if !a.out.value(map[string]string{"name": args[0], "value": value}) {
						a.out.line("%s: %s", args[0], dash(value))
					}
					return nil
				}
				return a.showSettings(ctx, t, args)
			})
		},
	}
	cmd.Flags().BoolVar(&unset, "unset", false, "reset the setting")
	return cmd
}

func (a *app) showSettings(ctx context.Context, t *tool.Team, names []string) error {
	list, err := t.Settings(ctx)
	if err != nil {
		return err
	}
	if len(names) == 1 {
		for _, s := range list {
			if s.Name == names[0] {
				if !a.out.value(s) {
					a.out.line("%s", s.Value)
				}
				return nil
			}
		}
		known := make([]string, len(list))
		for i, s := range list {
			known[i] = s.Name
		}
		e := team.Errorf(team.CodeNotFound, "%q is not set", names[0]).WithReason(team.ReasonSettingNotFound)
		if near := team.Closest(names[0], known); near != "" {
			return e.WithHint("did you mean " + near + "?")
		}
		return e.WithHint("teamctl settings lists what can be set")
	}
	if a.out.value(map[string]any{"settings": list}) {
		return nil
	}
	var rows [][]string
	for _, s := range list {
		rows = append(rows, []string{s.Name, dash(s.Value), s.Help})
	}
	a.out.table([]string{"NAME", "VALUE", "MEANING"}, rows, false)
	return nil
}
