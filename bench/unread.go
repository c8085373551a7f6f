package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// unread: what a message and a task cost the processor, by what the lead has not read.
var unread = benchmark{name: "unread", title: "With mail that nobody reads", run: runUnread, note: unreadNote}

const unreadNote = "Of a message it is the sender's processor time and the supervisor's, of a task the worker's and the supervisor's: the task is " +
	"claimed, run, completed and told of, and the worker says that it is idle. What each round adds is marked as read before the next, so " +
	"that the sizes stay. A message is appended in place, whatever the mailbox holds; it is looked for among the last 32 KB, which a " +
	"mailbox of 10 does not have yet. `approvals` is the whole command; it reads what came since the last one."

const goalUnread = 1.2

func runUnread(ctx context.Context, e env) (_ string, err error) {
	rounds, each, sizes := max(e.rounds/4, 7), 25, []int{10, 1_000, 100_000}
	if e.quick {
		rounds, each = 5, 10
	}
	type line struct {
		*crew
		n                    int
		message, task, lists []float64 // ms of processor
	}
	var lines []*line
	defer func() {
		for _, l := range lines {
			err = errors.Join(err, l.close(ctx))
		}
	}()
	for i, n := range sizes {
		c, err := newCrew(ctx, e, fmt.Sprint("u", i), func(w *world) error { return w.unread(ctx, n) })
		if err != nil {
			return "", err
		}
		lines = append(lines, &line{crew: c, n: n})
	}
	for r := range rounds + 1 { // the first warms up
		for i := range lines {
			l := lines[(i+r)%len(lines)]
			message, err := l.messages(ctx, each)
			if err != nil {
				return "", err
			}
			task, err := l.tasks(ctx, each)
			if err != nil {
				return "", err
			}
			lists, err := l.approvals(ctx)
			if err != nil {
				return "", err
			}
			if r > 0 {
				l.message, l.task, l.lists = append(l.message, message), append(l.task, task), append(l.lists, lists)
			}
			if err := l.forget(ctx, l.n); err != nil {
				return "", err
			}
		}
	}
	var figures []figure
	for _, l := range lines[1:] {
		for _, f := range []struct {
			what        string
			bare, these []float64
		}{{"a message", lines[0].message, l.message}, {"a task", lines[0].task, l.task}, {"approvals", lines[0].lists, l.lists}} {
			figures = append(figures, figure{fmt.Sprintf("%s, %d unread", f.what, l.n), fmt.Sprint(sizes[0], " unread"),
				middle(f.bare), middle(f.these), "ms", ratioAtMost(goalUnread)})
		}
	}
	return table(rounds, fmt.Sprintf("Processor time; %d of each a round.", each), figures), nil
}

// messages is the processor time of one message to the lead, in ms.
func (c *crew) messages(ctx context.Context, n int) (float64, error) {
	if _, err := c.led.StartRun(ctx); err != nil { // a run has a cap
		return 0, err
	}
	if err := c.settled(ctx); err != nil {
		return 0, err
	}
	before, err := busy(c.pids)
	if err != nil {
		return 0, err
	}
	res, err := crowd(ctx, "post", 1, childArgs{Home: c.layout.Home.Dir, For: time.Minute, Most: n, Session: team.LeadName})
	if err != nil {
		return 0, err
	}
	if err := c.settled(ctx); err != nil {
		return 0, err
	}
	after, err := busy(c.pids)
	return millis(after-before+clientsCPU(res)) / float64(n), err
}

// tasks is the processor time of one small task, in ms.
func (c *crew) tasks(ctx context.Context, n int) (float64, error) {
	before, err := busy(c.pids)
	if err != nil {
		return 0, err
	}
	for range n {
		if err := c.task(ctx); err != nil {
			return 0, err
		}
	}
	if err := c.settled(ctx); err != nil {
		return 0, err
	}
	after, err := busy(c.pids)
	return millis(after-before) / float64(n), err
}

// approvals is the processor time of the command, in ms.
func (c *crew) approvals(ctx context.Context) (float64, error) {
	cmd := exec.CommandContext(ctx, c.bin, "approvals", "--team", c.layout.Key)
	cmd.Env = c.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("approvals: %w: %s", err, out)
	}
	return millis(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()), nil
}

// forget marks as read what the lead got after the first n entries.
func (c *crew) forget(ctx context.Context, n int) error {
	box, err := inbox.Open(c.layout.Inboxes(), c.layout.Locks(), team.LeadName)
	if err != nil {
		return err
	}
	entries, err := box.Unread(ctx)
	if err != nil {
		return err
	}
	var ids []string
	var marks []ledger.DeliveryMark
	for _, e := range entries[min(n, len(entries)):] {
		ids = append(ids, e.Key())
		marks = append(marks, ledger.DeliveryMark{MessageID: e.ID, Recipient: team.LeadName, State: team.Read, Evidence: "bench", IfKnown: true})
	}
	if _, err := c.led.MarkMany(ctx, marks); err != nil {
		return err
	}
	_, err = box.MarkRead(ctx, ids...)
	return err
}
