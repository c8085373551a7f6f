package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/look"
)

// shown is the output of show: one item, under the name of its kind.
type shown struct {
	Kind     string            `json:"kind"` // team, member, task, approval or message
	Team     *view.Snapshot    `json:"team,omitempty"`
	Member   *psMember         `json:"member,omitempty"`
	Task     *ledger.Task      `json:"task,omitempty"`
	Approval *ledger.Approval  `json:"approval,omitempty"`
	Message  *tool.MessageInfo `json:"message,omitempty"`
}

// showKinds are the words before a name, where a name alone could mean two things.
var showKinds = []string{"member", "task", "approval", "message"}

func newShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME | ID | member|task|approval|message NAME-OR-ID]",
		Short: "Show a member, a task, an approval or a message",
		Long: `Show one item in full: a member by name, a task by number, an approval, or a message
by a prefix of its id. A number is a task if one exists, else an approval; a preceding
kind selects one. Without arguments it shows what waits for you, the members, the
tasks and the latest events, like the board. To show a hidden pane of tmux again, use
teamctl pane unhide.`,
		Example:           "  teamctl show builder\n  teamctl show 1\n  teamctl show approval 3\n  teamctl show",
		Args:              takes(0, 2, "a name or an id, and before it the kind where two fit"),
		ValidArgsFunction: a.completeShow,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if len(args) == 0 {
				return a.withTeam(ctx, func(t *tool.Team, _ tool.Caller) error {
					s, err := look.Snapshot(ctx, t)
					if err == nil && !a.out.value(shown{Kind: "team", Team: &s}) {
						a.showBoard(s)
					}
					return err
				})
			}
			kind, name := "", args[0]
			if len(args) == 2 {
				kind, name = args[0], args[1]
				if near := team.Closest(kind, showKinds); near != kind {
					return usage(cmd, "show takes %s before a name, not %q", strings.Join(showKinds, ", "), kind).
						WithHint("teamctl show " + cmp.Or(near, "member") + " " + team.ShellLine([]string{name}))
				}
			}
			return a.withTeam(ctx, func(t *tool.Team, c tool.Caller) error {
				x, err := find(ctx, t, kind, name)
				if err != nil || a.out.value(x) {
					return err
				}
				switch {
				case x.Member != nil:
					a.showMember(*x.Member)
				case x.Task != nil:
					t.Used(ctx, c, *x.Task)
					a.showTask(*x.Task)
					if open, err := t.Ledger.Approval(ctx, x.Task.ID); kind == "" && err == nil && open.State == ledger.ApprovalPending {
						a.out.hint("teamctl show approval %d", open.ID)
					}
				case x.Approval != nil:
					a.showApproval(*x.Approval)
				case x.Message != nil:
					a.showMessage(*x.Message)
				}
				return nil
			})
		},
	}
}

// find looks for what a name means.
func find(ctx context.Context, t *tool.Team, kind, name string) (shown, error) {
	id := taskID(name)
	number := id != "" && strings.Trim(id, "0123456789") == ""
	try := map[string]func() (shown, error){
		"member": func() (shown, error) {
			m, err := t.Member(ctx, name)
			if err != nil {
				return shown{}, err
			}
			list, _, err := roster(ctx, t, true, true)
			if err != nil {
				return shown{}, err
			}
			for i := range list {
				if list[i].SessionKey == m.SessionKey {
					return shown{Kind: "member", Member: &list[i]}, nil
				}
			}
			return shown{Kind: "member", Member: &psMember{Member: m}}, nil
		},
		"task": func() (shown, error) {
			x, err := t.Ledger.Task(ctx, id)
			return shown{Kind: "task", Task: &x}, err
		},
		"approval": func() (shown, error) {
			x, err := t.Ledger.Approval(ctx, id)
			return shown{Kind: "approval", Approval: &x}, err
		},
		"message": func() (shown, error) {
			x, err := t.MessageShow(ctx, name)
			return shown{Kind: "message", Message: &x}, err
		},
	}
	kinds := []string{kind}
	switch {
	case kind != "":
	case number:
		kinds = []string{"task", "approval", "member", "message"}
	default:
		kinds = []string{"member", "message"}
	}
	var first error
	for _, k := range kinds {
		x, err := try[k]()
		if err == nil {
			return x, nil
		}
		if first == nil {
			first = err
		}
		if code := team.CodeOf(err); code != team.CodeNotFound && code != team.CodeInvalid {
			return shown{}, err
		}
	}
	return shown{}, first
}

func (a *app) completeShow(cmd *cobra.Command, args []string, part string) ([]string, cobra.ShellCompDirective) {
	of := map[string]completion{
		"member": a.completeMembers(true), "task": a.completeTasks(ledger.TaskFilter{Newest: true}),
		"approval": a.completeApprovals(false), "message": a.completeMessages(),
	}
	switch len(args) {
	case 0:
		members, _ := of["member"](cmd, nil, part)
		tasks, _ := of["task"](cmd, nil, part)
		return append(append(members, tasks...), showKinds...), noFiles
	case 1:
		if f := of[args[0]]; f != nil {
			return f(cmd, nil, part)
		}
	}
	return nil, noFiles
}

func newMember(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "member VERB",
		Short:   "Manage members: spawn, ls, show, stop and more",
		Example: "  teamctl member ls -o wide\n  teamctl member mode builder plan",
		Args:    unknownVerb,
		RunE:    needsVerb,
	}
	cmd.AddCommand(&cobra.Command{
		Use:               "show MEMBER",
		Short:             "Show all details of a member",
		Example:           "  teamctl member show builder\n  teamctl member show builder --json",
		Args:              takes(1, 1, "the name of a member"),
		ValidArgsFunction: first(a.completeMembers(true)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withTeam(cmd.Context(), func(t *tool.Team, _ tool.Caller) error {
				x, err := find(cmd.Context(), t, "member", args[0])
				if err != nil || a.out.value(x.Member) {
					return err
				}
				a.showMember(*x.Member)
				return nil
			})
		},
	})
	return cmd
}

func (a *app) showMember(m psMember) {
	put := func(name, value string) {
		if value != "" {
			a.out.line("%-12s %s", name, value)
		}
	}
	put("member", a.out.style.Member(m.Color, m.Name))
	put("role", string(m.Role))
	if m.Name == team.LeadName {
		put("joined", when(m.JoinedAt))
		return
	}
	put("state", a.state(m.Member))
	put("why", view.Clean(look.Why(m.Member)))
	put("activity", a.activity(m))
	if m.Task != nil {
		put("task", taskCell(m.Task)+", for "+view.Elapsed(time.Since(time.UnixMilli(m.Task.Since))))
	}
	put("mode", string(modeOf(m.Spec.Mode)))
	put("agent", view.Clean(m.Spec.Agent))
	put("command", printable(team.ShellLine(m.Spec.Command)))
	if m.PID != 0 {
		put("process", fmt.Sprintf("%d, since %s", m.PID, when(look.Since(m.Member))))
	} else {
		put("since", when(look.Since(m.Member)))
	}
	if m.Restarts > 0 {
		put("restarts", fmt.Sprint(m.Restarts))
	}
	put("terminal", strings.TrimSpace(m.Spec.Backend+" "+m.PaneID))
	put("branch", m.Branch)
	put("worktree", view.Clean(m.Worktree))
	if m.PendingMessages > 0 {
		put("mail", plural(m.PendingMessages, "message")+" not delivered yet")
	}
	put("joined", when(m.JoinedAt))
	put("left", when(m.RemovedAt))
}
