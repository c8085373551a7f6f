package tool

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// bounded returns ctx with a deadline, if there is a limit. The deadline bounds only the wait:
// setup and reads use ctx, so that an early limit ends in a proper result and not in the middle of
// a read.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// over reports whether the limit of a bounded context was reached, as opposed to the end of its
// parent. The state is then to be read once more: what is waited for may have come before the limit,
// as in a process that was stopped.
func over(parent, ctx context.Context, limit time.Duration) bool {
	return limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) && parent.Err() == nil
}

// InboxNext is InboxTake, and waits up to limit if there is no mail. An empty mailbox after that,
// or at once with limit 0, is not an error.
func (t *Team) InboxNext(ctx context.Context, c Caller, limit time.Duration) (_ InboxOut, err error) {
	if limit <= 0 {
		return t.InboxTake(ctx, c)
	}
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	wait, cancel := bounded(ctx, limit)
	defer cancel()
	w, err := inbox.Watch(wait, t.Layout.Inboxes())
	if err != nil {
		return InboxOut{}, err
	}
	defer func() { _ = w.Close() }() // it never fails
	mail := w.Changes(c.Name)
	for {
		in, err := t.InboxTake(ctx, c) // not bounded by limit
		if err != nil || len(in.Entries) > 0 {
			return in, err
		}
		select {
		case <-mail:
		case <-w.Done():
			if err := w.Err(); err != nil {
				return in, err
			}
			if over(ctx, wait, limit) {
				return t.InboxTake(ctx, c)
			}
			return in, context.Cause(ctx)
		}
	}
}

// AwaitMember waits until a member is in a state: ready (also ""), stopped, an observed state or
// an activity. CodeConflict (not_running) if the member will not reach it by itself, CodeTimeout
// after limit.
func (t *Team) AwaitMember(ctx context.Context, name, state string, limit time.Duration) (_ ledger.Member, err error) {
	if state == "" {
		state = "ready"
	}
	in, err := memberState(state)
	if err != nil {
		return ledger.Member{}, err
	}
	m, err := t.Member(ctx, name)
	if err != nil {
		return m, err
	}
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	wait, cancel := bounded(ctx, limit)
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return m, err
	}
	defer stop()
	dead, ended := false, time.NewTimer(startUnderWay)
	ended.Stop()
	defer ended.Stop()
	late, last := false, false // startUnderWay or the limit has passed
	for {
		if m, err = t.Ledger.MemberBySession(ctx, m.SessionKey); err != nil {
			return m, err
		}
		never := team.Errorf(team.CodeConflict, "%s is not running (%s) and will not be %s", m.Name, m.Observed, state).
			WithReason(team.ReasonNotRunning).WithHint("teamctl start " + m.Name)
		switch {
		case in(m):
			return m, nil
		case m.RemovedAt != 0 || m.Observed.Terminal() && m.Desired == team.WantStopped:
			return m, never
		}
		// Nothing will change by itself, unless a start has just been requested.
		before := dead
		switch dead = m.Observed.Terminal() && m.NextStart == 0; {
		case dead && late:
			return m, never
		case !dead:
			late = false
			ended.Stop()
		case !before:
			ended.Reset(startUnderWay)
		}
		if last {
			return m, team.Errorf(team.CodeTimeout, "%s is not %s after %s (%s, %s)", m.Name, state, limit, m.Observed, m.Activity).
				WithHint("teamctl capture " + m.Name + " shows its screen")
		}
		select {
		case <-changes:
		case <-ended.C:
			late = true
		case <-wait.Done():
			if last = over(ctx, wait, limit); !last {
				return m, context.Cause(ctx)
			}
		}
	}
}

// startUnderWay is the maximum time from a request to start a member until its state shows the
// start.
const startUnderWay = time.Second

// memberState returns the test for a named state.
func memberState(state string) (func(ledger.Member) bool, error) {
	switch state {
	case "ready":
		return func(m ledger.Member) bool { return m.Ready && m.Observed == team.Running }, nil
	case "stopped":
		return func(m ledger.Member) bool { return !m.Observed.Alive() && m.Desired == team.WantStopped }, nil
	}
	for _, o := range team.ObservedStates() {
		if string(o) == state {
			return func(m ledger.Member) bool { return m.Observed == o }, nil
		}
	}
	for _, a := range []team.Activity{team.ActivityUnknown, team.Working, team.Idle, team.Waiting, team.Limited} {
		if string(a) == state {
			return func(m ledger.Member) bool { return m.Activity == a && m.Observed == team.Running }, nil
		}
	}
	return nil, team.Errorf(team.CodeInvalid, "unknown state %q", state).
		WithHint("ready, stopped, idle, working, waiting, limited, running, exited, failed, completed or killed")
}

// AwaitEvents returns at most most events after a sequence number. If there are none it waits up
// to limit; an empty result is not an error.
func (t *Team) AwaitEvents(ctx context.Context, after int64, most int, f ledger.EventFilter, limit time.Duration) (list []ledger.Event, err error) {
	list, err = t.Ledger.Events(ctx, after, most, f)
	if err != nil || len(list) > 0 || limit <= 0 {
		return list, err
	}
	ctx, leave := t.Attended(ctx)
	defer leave(&err)
	wait, cancel := bounded(ctx, limit)
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	for {
		select {
		case <-changes:
		case <-wait.Done():
			if over(ctx, wait, limit) {
				return t.Ledger.Events(ctx, after, most, f)
			}
			return nil, context.Cause(ctx)
		}
		if list, err = t.Ledger.Events(ctx, after, most, f); err != nil || len(list) > 0 {
			return list, err
		}
	}
}
