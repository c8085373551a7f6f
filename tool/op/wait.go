package op

import (
	"context"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func waitOps() []Op {
	return []Op{
		with(Op{Name: "Wait", Verb: "wait", ReadOnly: true, Idempotent: true, Long: true}, wait),
		with(Op{Name: "Events", Verb: "events", ReadOnly: true, Idempotent: true, Long: true}, events),
	}
}

// WaitIn selects what to wait for: tasks, a member's state, or a message; by default every task on
// the board.
type WaitIn struct {
	TeamRef
	TaskIDs        []string `json:"task_ids,omitempty" jsonschema:"Until these have ended."`
	Member         string   `json:"member,omitempty" jsonschema:"Until this member is in the state."`
	State          string   `json:"state,omitempty" jsonschema:"For member: ready (the default), running, stopped, idle, working, waiting, or a state such as exited or failed."`
	Message        bool     `json:"message,omitempty" jsonschema:"Until you have mail that is unread; it stays unread."`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty" jsonschema:"Give up after so long; an error then. 120 if left out."`
}

// WaitOut is the result of the wait. Error names finished tasks that did not complete.
type WaitOut struct {
	Done    bool              `json:"done"`
	Message string            `json:"message"`
	Tasks   []TaskSummary     `json:"tasks,omitempty"`
	Member  *MemberInfo       `json:"member,omitempty"`
	Inbox   []tool.InboxEntry `json:"inbox,omitempty"`
}

const defaultWait = 120

func wait(ctx context.Context, s *Session, in WaitIn) (WaitOut, error) {
	n := 0
	for _, on := range []bool{len(in.TaskIDs) > 0, in.Member != "", in.Message} {
		if on {
			n++
		}
	}
	if n > 1 {
		return WaitOut{}, team.Errorf(team.CodeInvalid, "wait for one thing: task_ids, member or message").WithReason(team.ReasonInput)
	}
	if in.State != "" && in.Member == "" {
		return WaitOut{}, team.Errorf(team.CodeInvalid, "state is for member").WithReason(team.ReasonInput)
	}
	if in.TimeoutSeconds == 0 {
		in.TimeoutSeconds = defaultWait
	}
	limit, err := seconds("timeout_seconds", in.TimeoutSeconds)
	if err != nil {
		return WaitOut{}, err
	}
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (WaitOut, error) {
		switch {
		case in.Member != "":
			progress(ctx, 0, 1, "waiting for %s", in.Member)
			m, err := t.AwaitMember(ctx, in.Member, in.State, limit)
			if err != nil {
				return WaitOut{}, err
			}
			info := memberInfo(m)
			return WaitOut{Done: true, Message: fmt.Sprintf("%s is %s, %s", m.Name, m.Observed, m.Activity), Member: &info}, nil
		case in.Message:
			progress(ctx, 0, 1, "waiting for mail")
			if err := s.acked(ctx, t, c, nil); err != nil { // the wait is for new mail
				return WaitOut{}, err
			}
			box, err := t.InboxNext(ctx, c, limit)
			if err == nil && len(box.Entries) == 0 {
				err = team.Errorf(team.CodeTimeout, "no mail for %s in %s", c.Name, limit)
			}
			return WaitOut{Done: err == nil, Message: fmt.Sprintf("%d unread", len(box.Entries)), Inbox: box.Entries}, err
		}
		return waitTasks(ctx, t, tool.WaitIn{Tasks: taskIDs(in.TaskIDs), Timeout: limit})
	})
}

func waitTasks(ctx context.Context, t *tool.Team, in tool.WaitIn) (WaitOut, error) {
	last := ""
	in.Each = func(p tool.Progress) {
		text := fmt.Sprintf("%d of %d completed, %d in work, %d failed", p.Counts.Completed, p.Counts.Total(), p.Counts.Claimed+p.Counts.InProgress, p.Counts.Failed)
		if text != last {
			progress(ctx, p.Counts.Completed+p.Counts.Failed, p.Counts.Total(), "%s", text)
			last = text
		}
	}
	p, err := t.Wait(ctx, in)
	if err != nil {
		return WaitOut{}, err
	}
	tasks := p.Tasks
	if len(in.Tasks) > 0 {
		tasks = slices.DeleteFunc(tasks, func(t ledger.Task) bool { return !slices.Contains(in.Tasks, t.ID) })
	}
	board, err := Board(ctx, t, tasks)
	return WaitOut{Done: true, Message: fmt.Sprintf("%d task(s) completed", len(tasks)), Tasks: board.Tasks}, err
}

// EventsIn selects events.
type EventsIn struct {
	TeamRef
	After       *int64 `json:"after,omitempty" jsonschema:"Sequence number to go on after, as in next; if left out the newest events are shown."`
	What        string `json:"what,omitempty" jsonschema:"Kind of event such as task.claimed, or task. for all that begin so."`
	Who         string `json:"who,omitempty" jsonschema:"Name of the member that did it."`
	ID          string `json:"id,omitempty" jsonschema:"Id of the task, member or message that it is about."`
	Limit       int    `json:"limit,omitempty" jsonschema:"At most so many; 100 if left out."`
	WaitSeconds int    `json:"wait_seconds,omitempty" jsonschema:"With after: where there is none, wait so long for one."`
}

// EventsOut is a part of the log, oldest first.
type EventsOut struct {
	Events []ledger.Event `json:"events"`
	Next   int64          `json:"next"` // the value of after for the next call
}

const defaultEvents = 100

func events(ctx context.Context, s *Session, in EventsIn) (EventsOut, error) {
	limit, err := seconds("wait_seconds", in.WaitSeconds)
	if err != nil {
		return EventsOut{}, err
	}
	if in.Limit < 0 {
		return EventsOut{}, team.Errorf(team.CodeInvalid, "limit must be 0 or more").WithReason(team.ReasonInput)
	}
	if in.WaitSeconds > 0 && in.After == nil {
		return EventsOut{}, team.Errorf(team.CodeInvalid, "wait_seconds needs after").WithReason(team.ReasonInput)
	}
	if in.Limit == 0 {
		in.Limit = defaultEvents
	}
	return on(ctx, s, in.TeamRef, func(t *tool.Team, _ tool.Caller) (EventsOut, error) {
		f := ledger.EventFilter{Who: in.Who, What: in.What, ID: in.ID}
		var list []ledger.Event
		if in.After == nil {
			list, err = t.Ledger.Events(ctx, 0, 0, f)
			if len(list) > in.Limit {
				list = list[len(list)-in.Limit:]
			}
		} else {
			list, err = t.AwaitEvents(ctx, *in.After, in.Limit, f, limit)
		}
		if err != nil {
			return EventsOut{}, err
		}
		out := EventsOut{Events: list}
		if list == nil {
			out.Events = []ledger.Event{}
		}
		switch {
		case len(list) > 0:
			out.Next = list[len(list)-1].Seq
		case in.After != nil:
			out.Next = *in.After
		default:
			out.Next, err = t.Ledger.LastEvent(ctx)
		}
		return out, err
	})
}
