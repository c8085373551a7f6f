package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// What is so already is not an error: a caller that repeats a call, because the answer was lost or
// the program was killed, gets the same result, with an Outcome that begins with Already. It takes
// evidence for that: a task that was never there, or that another member has completed, is refused
// as before.

// Already begins every outcome of a call that changed nothing, because its effect was there.
const Already = "already_"

// Outcomes of members.
const (
	AlreadyRunning = Already + "running"
	AlreadyPaused  = Already + "paused"
	AlreadySet     = Already + "set"
	AlreadyDeleted = Already + "deleted"
	AlreadyRemoved = Already + "removed"
	AlreadyClosed  = Already + "closed"
)

// TaskDone is a task after a change.
type TaskDone struct {
	ledger.Task
	Outcome string `json:"outcome,omitempty"` // already_completed, already_failed, already_pending, already_in_progress or already_claimed
}

// done is the result of a verb on a task, or of one that was repeated.
func (t *Team) done(ctx context.Context, c Caller, task ledger.Task, id string, attempt int, to team.TaskStatus, err error) (TaskDone, error) {
	if err != nil {
		return t.settled(ctx, c, id, attempt, to, err)
	}
	return TaskDone{Task: task}, nil
}

// settled turns the refusal of a verb into success if the task already has the status that the verb
// sets, and the caller has set it or the task is on the board. A named attempt must be the current one.
func (t *Team) settled(ctx context.Context, c Caller, id string, attempt int, to team.TaskStatus, err error) (TaskDone, error) {
	if !team.IsCode(err, team.CodeConflict) {
		return TaskDone{}, err
	}
	task, rerr := t.Ledger.Task(ctx, id)
	if rerr != nil || task.Status != to || attempt != 0 && attempt != task.Attempt {
		return TaskDone{}, err
	}
	if to != team.TaskPending && !c.Person && task.Owner != c.Session {
		return TaskDone{}, err
	}
	return TaskDone{task, Already + string(to)}, nil
}

// TaskDeleted is what became of a task that was to be deleted.
type TaskDeleted struct {
	ID      string   `json:"deleted"`
	Ready   []string `json:"ready"`             // tasks that waited for nothing else
	Outcome string   `json:"outcome,omitempty"` // already_deleted

	Was team.TaskStatus `json:"-"` // with an Outcome: its status when it was deleted
}

// deletedTask turns the refusal to delete a task into success if its history ends with a deletion.
func (t *Team) deletedTask(ctx context.Context, id string, err error) (TaskDeleted, error) {
	if team.ReasonOf(err) != team.ReasonTaskNotFound {
		return TaskDeleted{}, err
	}
	events, rerr := t.Ledger.Events(ctx, 0, 0, ledger.EventFilter{ID: id, What: team.EventTaskDeleted})
	if rerr != nil || len(events) == 0 {
		return TaskDeleted{}, err
	}
	was := team.TaskStatus(events[len(events)-1].Before)
	return TaskDeleted{ID: id, Ready: []string{}, Outcome: AlreadyDeleted, Was: was}, nil
}

// Answered is an approval after an answer.
type Answered struct {
	ledger.Approval
	Outcome string               `json:"outcome,omitempty"` // already_approved or already_rejected
	Rule    *team.PermissionRule `json:"rule,omitempty"`    // that allows it from now on, if the answer was for always
	Unsent  int                  `json:"unsent,omitempty"`  // comments of the answerer on the plan that did not go with the answer
}

// answered forgives an answer that was given before with the same contents. Where they differ it
// is refused: the caller would take its input, mode or feedback for what was given.
func (t *Team) answered(ctx context.Context, in AnswerIn, a ledger.Approval, err error) (Answered, error) {
	if team.ReasonOf(err) != team.ReasonAlreadyResolved {
		return Answered{Approval: a}, err
	}
	want := ledger.ApprovalRejected
	if in.Approve {
		want = ledger.ApprovalApproved
	}
	x, rerr := t.Ledger.Approval(ctx, in.ID)
	if rerr != nil || x.State != want {
		return Answered{Approval: a}, err
	}
	other, rerr := t.differs(ctx, in, x)
	switch {
	case rerr != nil:
		return Answered{Approval: x}, rerr
	case other != "":
		return Answered{Approval: x}, team.Errorf(team.CodeConflict, "%s %d was already %s by %s, with another %s", x.Kind, x.ID, x.State, x.AnsweredBy, other).
			WithReason(team.ReasonAlreadyResolved).WithHint(fmt.Sprintf("teamctl approvals show %d", x.ID))
	}
	return Answered{Approval: x, Outcome: Already + string(x.State)}, nil
}

// differs names the first part of an answer that is not as it was given before; "" if none is.
// What an answer leaves out is as it was given, but for the input: without one, a call is
// approved as it was asked for.
func (t *Team) differs(ctx context.Context, in AnswerIn, was ledger.Approval) (string, error) {
	in, err := in.withAnswers(was)
	if err != nil {
		return "", err
	}
	granted, err := t.GrantedWith(ctx, was)
	if err != nil {
		return "", err
	}
	mode, err := team.ParseMode(in.Mode)
	if err != nil {
		return "", err
	}
	switch {
	case !sameValue(in.UpdatedInput, granted.Input):
		return "input", nil
	case len(in.Updates) > 0 && !sameValue(in.Updates, granted.Updates):
		return "list of permission updates", nil
	case in.Approve && in.Mode != "" && granted.Mode != mode:
		return "mode", nil
	case in.Feedback != "" && in.Feedback != was.Feedback:
		return "feedback", nil
	}
	return "", nil
}

// sameValue reports whether two JSON texts, which may be empty, have the same value.
func sameValue(a, b json.RawMessage) bool {
	value := func(raw json.RawMessage) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&v); err != nil && len(raw) > 0 {
			return string(raw)
		}
		return v
	}
	return reflect.DeepEqual(value(a), value(b))
}

// Ruled is a member after start, restart, pause or resume.
type Ruled struct {
	ledger.Member
	Outcome string `json:"outcome"` // started, restarted, paused, resumed, already_running or already_paused
}

// Outcomes of members that were ruled.
const (
	verbStarted   = "started"
	verbRestarted = "restarted"
	verbPaused    = "paused"
	verbResumed   = "resumed"
)

// requests are what was requested for an outcome.
var requests = map[string]string{verbStarted: "start", verbRestarted: "restart", verbPaused: "pause", verbResumed: "resume"}

// noteRequest records who requested something of a member: what the supervisor then does is recorded
// as its own.
func (t *Team) noteRequest(ctx context.Context, c Caller, request, name string) error {
	_, err := t.as(c).Event(ctx, ledger.Event{What: team.EventMemberRequested, ID: name, After: request})
	return err
}

// compared rules members, compares them with what they were before and records who did it.
func (t *Team) compared(ctx context.Context, c Caller, verb string, rule func() ([]ledger.Member, error)) ([]Ruled, error) {
	before, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, err
	}
	after, err := rule()
	out := ruled(verb, before, after)
	for _, m := range out {
		if m.Outcome == verb {
			err = errors.Join(err, t.noteRequest(ctx, c, requests[verb], m.Name))
		}
	}
	return out, err
}

// ruled compares members with what they were before a verb.
func ruled(verb string, before, after []ledger.Member) []Ruled {
	out := make([]Ruled, len(after))
	for i, m := range after {
		out[i] = Ruled{m, verb}
		at := slices.IndexFunc(before, func(b ledger.Member) bool { return b.SessionKey == m.SessionKey })
		if at < 0 {
			continue
		}
		b := before[at]
		wasPaused := b.Reason == team.WhyPaused
		switch {
		case verb == verbStarted && b.Observed == team.Running && b.Generation == m.Generation,
			verb == verbResumed && b.Observed == team.Running && !wasPaused:
			out[i].Outcome = AlreadyRunning
		case verb == verbPaused && wasPaused:
			out[i].Outcome = AlreadyPaused
		}
	}
	return out
}

// leftBefore takes the names of members that have left the team out of a request to stop. They
// are stopped; nothing needs a supervisor.
func (t *Team) leftBefore(ctx context.Context, in team.StopRequest) (team.StopRequest, []team.Stopped, error) {
	if len(in.Names) == 0 {
		return in, nil, nil
	}
	all, err := t.Ledger.Members(ctx, true)
	if err != nil {
		return in, nil, err
	}
	outcome := team.StopAlready
	if in.Remove {
		outcome = team.StopAlreadyLeft
	}
	var names []string
	var out []team.Stopped
	for _, n := range in.Names {
		of := func(left bool) bool {
			return slices.ContainsFunc(all, func(m ledger.Member) bool { return m.Name == n && (m.RemovedAt != 0) == left })
		}
		if of(false) || !of(true) {
			names = append(names, n)
		} else {
			out = append(out, team.Stopped{Name: n, Outcome: outcome, Reason: "it has left the team"})
		}
	}
	in.Names = names
	return in, out, nil
}

// RunsDone is the runs that were closed.
type RunsDone struct {
	ledger.RunsClosed
	Outcome string `json:"outcome,omitempty"` // already_closed
}

// closedBefore forgives the closing of a run that is closed.
func (t *Team) closedBefore(ctx context.Context, err error) (RunsDone, error) {
	if team.ReasonOf(err) != team.ReasonRunClosed {
		return RunsDone{}, err
	}
	now, err := t.Ledger.CurrentRun(ctx)
	return RunsDone{ledger.RunsClosed{Closed: []int64{}, Current: now}, AlreadyClosed}, err
}
