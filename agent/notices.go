package agent

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// noticeTries bounds how long a notice may delay the work. The ledger has the facts in any case.
const noticeTries = 5

// reasonOtherRun is the ledger's reason for refusing a parent from a closed run.
const reasonOtherRun = "parent_of_other_run"

// post posts a message of the worker; if that fails, it reports the failure and drops the message.
// It is not interrupted by the end of ctx.
func (w *worker) post(ctx context.Context, what string, m ledger.NewMessage) {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	m.From = w.id.Name
	try := func() error {
		_, err := w.env.Post(c, m)
		return err
	}
	err := w.few(c, try)
	if team.ReasonOf(err) == reasonOtherRun && m.Kind != team.KindTaskResponse {
		m.Parent = "" // the answer matters more than the link to its question
		err = w.few(c, try)
	}
	if err != nil {
		w.out.line("%s not sent: %v", what, err)
	}
}

// few calls fn until it succeeds, fails permanently, or has failed noticeTries times.
func (w *worker) few(ctx context.Context, fn func() error) error {
	wait := retryFirst
	for i := 1; ; i++ {
		err := fn()
		if err == nil || !transient(err) || i == noticeTries {
			return err
		}
		if pause.For(ctx, wait) != nil {
			return err
		}
		wait *= 2
	}
}

// frame returns the text of a protocol message. Frames hold plain strings, which can always be
// encoded.
func (w *worker) frame(f inbox.Frame) string {
	s, err := inbox.Encode(f)
	if err != nil {
		w.out.line("%v", err)
	}
	return s
}

func (w *worker) timestamp() string { return inbox.Timestamp(w.env.Now()) }

// announce notifies the lead of a task's result, once per attempt even if it is repeated.
func (w *worker) announce(ctx context.Context, o outcome) {
	t := o.task
	if o.status == team.TaskCompleted {
		w.post(ctx, "task_completed", ledger.NewMessage{
			Kind: team.KindTaskCompleted, To: team.LeadName, IdemKey: ledger.TaskCompletedKey(t.ID, t.Attempt),
			Text: w.frame(inbox.TaskCompleted{
				From: w.id.Name, TaskID: t.ID, TaskSubject: t.Subject, Timestamp: w.timestamp(),
			}),
			Summary: cut("completed task "+t.ID+": "+oneLine(t.Subject), maxSummary),
		})
		return
	}
	text := fmt.Sprintf("task %s (%s) failed: %s", t.ID, oneLine(t.Subject), o.why)
	if rest, ok := strings.CutPrefix(o.res.Error, o.why); ok && strings.TrimSpace(rest) != "" {
		text += "\n" + strings.Trim(rest, "\n")
	}
	w.post(ctx, "the failure", ledger.NewMessage{
		Kind: team.KindError, To: team.LeadName, IdemKey: "task_failed:" + t.ID + ":" + strconv.Itoa(t.Attempt),
		Text: text, Summary: cut(fmt.Sprintf("task %s failed: %s", t.ID, o.why), maxSummary),
	})
}

// idle notifies once per idle period that there is nothing to do.
func (w *worker) idle(ctx context.Context) {
	w.setActivity(ctx, team.Idle)
	if w.notified {
		return
	}
	w.notified = true
	if w.id.Name == team.LeadName { // it is who is told
		w.save(ctx)
		return
	}
	w.periods++
	w.unsaved = cmp.Or(w.unsaved, "idle")
	w.save(ctx)
	w.out.line("%s: idle, waiting for tasks and mail", w.id.AgentID)
	f := inbox.IdleNotification{From: w.id.Name, Timestamp: w.timestamp(), IdleReason: inbox.IdleAvailable}
	if w.broken {
		f.IdleReason = inbox.IdleInterrupted
	}
	did := w.did(ctx) // a retried task has not ended: only this process knows that attempt
	f.CompletedTaskID, f.CompletedStatus, f.FailureReason, f.Summary = did.Task, string(did.Status), did.Why, did.Peers
	if o := w.last; o != nil {
		f.CompletedTaskID, f.CompletedStatus = o.task.ID, string(o.status)
		if o.status == team.TaskFailed {
			f.FailureReason = o.why
		}
		w.last = nil // it was reported
	}
	summary := "idle and ready for new work"
	if w.failed != "" {
		summary = cut(f.Fail(w.failed), maxSummary)
	}
	w.post(ctx, "idle_notification", ledger.NewMessage{
		Kind: team.KindIdle, To: team.LeadName, Text: w.frame(f), Summary: summary,
		IdemKey: "idle:" + w.life + ":" + strconv.Itoa(w.periods),
	})
}

// did returns what was done since the last call. Facts that the ledger cannot provide now are
// omitted.
func (w *worker) did(ctx context.Context) ledger.Did {
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	d, err := w.env.Ledger.DidSince(c, ledger.Member{Name: w.id.Name, SessionKey: w.id.Session}, w.mark)
	if err == nil {
		w.mark = d.Next
	}
	return d
}

// setActivity writes a changed activity to the ledger. If that fails, the next call writes it.
func (w *worker) setActivity(ctx context.Context, a team.Activity) {
	if w.activity == a || w.id.Session == "" {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	_, err := w.env.Ledger.UpdateMember(c, ledger.MemberPatch{SessionKey: w.id.Session, Activity: &a, TurnError: &w.failed})
	if err != nil {
		w.again = max(w.again, time.Second)
		return
	}
	w.activity = a
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}
