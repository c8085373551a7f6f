package tool

import (
	"context"
	"errors"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// bounded is ctx with a deadline, where there is one. It bounds the waiting alone:
// what is set up for it and read in it runs on ctx, so that a limit that comes early
// ends in the answer to it, and not in the middle of a read.
func bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// over reports that the limit of a bounded context has come, and not the end of
// the one that it was made from.
func over(ctx context.Context, limit time.Duration) bool {
	return limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded)
}

// InboxNext is InboxTake. Where there is no mail it waits up to limit for some, by
// event; then, or at once with a limit of 0, the mailbox is empty and that is no error.
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
	defer func() { _ = w.Close() }() // it has no error to give
	mail := w.Changes(c.Name)
	for {
		in, err := t.InboxTake(ctx, c) // not bounded by the wait
		if err != nil || len(in.Entries) > 0 {
			return in, err
		}
		select {
		case <-mail:
		case <-w.Done():
			if err := w.Err(); err != nil {
				return in, err
			}
			if over(wait, limit) && ctx.Err() == nil {
				return in, nil
			}
			return in, context.Cause(ctx)
		}
	}
}

// AwaitMember waits until a member is in a state: ready (also ""), stopped, an
// observed state or an activity. It wakes by event. CodeConflict (not_running)
// where it will not come by itself, CodeTimeout after limit.
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
		// Nothing follows by itself, unless it is being started just now.
		if before := dead; m.Observed.Terminal() && m.NextStart == 0 {
			if dead = true; !before {
				ended.Reset(startUnderWay)
			}
		} else {
			dead = false
			ended.Stop()
		}
		select {
		case <-changes:
		case <-ended.C:
			return m, never
		case <-wait.Done():
			if over(wait, limit) && ctx.Err() == nil {
				return m, team.Errorf(team.CodeTimeout, "%s is not %s after %s (%s, %s)", m.Name, state, limit, m.Observed, m.Activity).
					WithHint("teamctl capture " + m.Name + " shows its screen")
			}
			return m, context.Cause(ctx)
		}
	}
}

// startUnderWay is how long an order to start a member takes, at the most, until its state
// shows that there is one.
const startUnderWay = time.Second

// memberState is the test for a state by its name.
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

// AwaitEvents returns at most most events after a sequence number. Where there is
// none it waits up to limit for one, by event; then there is none, which is no error.
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
			if over(wait, limit) && ctx.Err() == nil {
				return nil, nil
			}
			return nil, context.Cause(ctx)
		}
		if list, err = t.Ledger.Events(ctx, after, most, f); err != nil || len(list) > 0 {
			return list, err
		}
	}
}
