package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// activityWait is the default time to wait for an agent's activity or output: unlike a task, it
// may never come, and a wait without a limit would hang silently.
const activityWait = 2 * time.Minute

// forever means no limit.
const forever = 100 * 365 * 24 * time.Hour

// awaited is what wait waits for instead of tasks.
type awaited struct {
	member, state string
	mail          bool
}

func (w *awaited) flags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringVar(&w.member, "member", "", "wait for this member instead")
	f.StringVar(&w.state, "state", "", "of the member: ready (default), idle, working, waiting, running, stopped, exited, failed, ...")
	f.BoolVar(&w.mail, "mail", false, "wait for mail of your own instead; it stays unread")
	a.complete(cmd, "member", a.completeMembers(false))
	a.complete(cmd, "state", words("ready", "idle", "working", "waiting", "limited", "running", "stopped", "exited", "failed", "completed", "killed"))
}

func (w *awaited) tasks() bool { return w.member == "" && !w.mail }

// check rejects flags that exclude each other.
func (w *awaited) check(cmd *cobra.Command) error {
	switch {
	case w.member != "" && w.mail:
		return usage(cmd, "--member and --mail exclude each other")
	case w.state != "" && w.member == "":
		return usage(cmd, "--state is for --member")
	case !w.tasks() && (cmd.Flags().Changed("task") || cmd.Flags().Changed("progress")):
		return usage(cmd, "--task and --progress are for tasks, not for --member and --mail")
	}
	return nil
}

// await waits for a member or for mail.
func (a *app) await(ctx context.Context, t *tool.Team, c tool.Caller, w awaited, limit time.Duration) error {
	if limit == 0 {
		limit = forever
	}
	if w.mail {
		box, err := t.InboxNext(ctx, c, limit)
		if err == nil && len(box.Entries) == 0 {
			err = team.Errorf(team.CodeTimeout, "no mail for %s in %s", c.Name, limit)
		}
		if err == nil && !a.out.value(map[string]any{"inbox": box.Entries}) {
			a.out.line("%d unread", len(box.Entries))
			a.out.hint("teamctl inbox")
		}
		return err
	}
	if err := memberNames(ctx, t, []string{w.member}); err != nil {
		return err
	}
	m, err := t.AwaitMember(ctx, w.member, w.state, limit)
	if err == nil && !a.out.value(map[string]any{"member": m}) {
		a.out.line("%s is %s, %s", m.Name, m.Observed, activity(m))
	}
	return err
}
