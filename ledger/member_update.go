package ledger

import (
	"context"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

const sqlMemberSet = `UPDATE members SET teamRole = ?, spec = ?, color = ?, desired = ?, observed = ?, activity = ?,
	activityAt = ?, ready = ?, generation = ?, pid = ?, paneId = ?, startedAt = ?, restarts = ?, failures = ?,
	nextStart = ?, exitText = ?, reason = ?, worktree = ?, branch = ?, base = ?,
	activityFor = ?, activityUntil = ?, stopOrder = ?, endedAt = ?, turnError = ? WHERE sessionKey = ?`

// MemberPatch changes those fields of a member that are set. ActivityAt follows
// a change of Activity unless it is set, and EndedAt the end of a process. A
// new Generation drops the unanswered shutdown requests of the previous one.
type MemberPatch struct {
	SessionKey   string  `json:"sessionKey"`
	IfGeneration *string `json:"ifGeneration,omitempty"` // change nothing if the member has another generation
	TokenHash    *string `json:"tokenHash,omitempty"`    // HashToken of the secret of the new generation

	Role       *team.Role       `json:"role,omitempty"`
	Spec       *team.MemberSpec `json:"spec,omitempty"`
	Mode       *team.Mode       `json:"mode,omitempty"` // in the spec, whose other fields are unchanged
	Color      *string          `json:"color,omitempty"`
	Desired    *team.Desired    `json:"desired,omitempty"`
	Observed   *team.Observed   `json:"observed,omitempty"` // checked by the transition table
	Activity   *team.Activity   `json:"activity,omitempty"`
	ActivityAt *int64           `json:"activityAt,omitempty"`
	WaitsFor   *team.WaitFor    `json:"waitsFor,omitempty"`
	LimitedTo  *int64           `json:"limitedTo,omitempty"`
	TurnError  *string          `json:"turnError,omitempty"` // of the last turn, while idle
	Ready      *bool            `json:"ready,omitempty"`
	Generation *string          `json:"generation,omitempty"`
	PID        *int             `json:"pid,omitempty"`
	PaneID     *string          `json:"paneId,omitempty"`
	StartedAt  *int64           `json:"startedAt,omitempty"`
	EndedAt    *int64           `json:"endedAt,omitempty"`
	Restarts   *int             `json:"restarts,omitempty"`
	Failures   *int             `json:"failures,omitempty"`
	NextStart  *int64           `json:"nextStart,omitempty"`
	ExitText   *string          `json:"exitText,omitempty"`
	Reason     *string          `json:"reason,omitempty"`
	Worktree   *string          `json:"worktree,omitempty"`
	Branch     *string          `json:"branch,omitempty"`
	Base       *string          `json:"base,omitempty"`
	StopOrder  *StopOrder       `json:"stopOrder,omitempty"` // cleared when the member is no longer to be stopped

	// Notice notifies the lead of the change, in its transaction. One of
	// team.KindIdle without a key is sent once per idle period.
	Notice *Notice `json:"notice,omitempty"`
}

// UpdateMember changes a member and returns it. Errors: CodeNotFound
// (member_not_found), CodeConflict stale_generation, CodeInternal for a
// transition that is not in the table.
func (l *Ledger) UpdateMember(ctx context.Context, p MemberPatch) (Member, error) {
	if p.Notice != nil {
		n := *p.Notice
		n.fill()
		p.Notice = &n
	}
	return write[Member](ctx, l, opMemberUpdate, p)
}

func updateMember(t *tx, p MemberPatch) (Member, error) {
	m, err := t.memberBySession(p.SessionKey)
	if err != nil {
		return m, err
	}
	if p.IfGeneration != nil && *p.IfGeneration != m.Generation {
		return m, team.Errorf(team.CodeConflict, "%s is of generation %q, not %q", m.Name, m.Generation, *p.IfGeneration).
			WithReason(team.ReasonStaleGeneration)
	}
	before := m
	if p.Observed != nil && *p.Observed != m.Observed {
		if m.Observed, err = m.Observed.Move(*p.Observed); err != nil {
			return before, team.Errorf(team.CodeInternal, "%s: %w", m.Name, err).WithReason(team.ReasonIllegalTransition)
		}
	}
	p.apply(&m, before.Observed.Alive(), t.now)
	if _, err := t.exec(sqlMemberSet, m.Role, mustJSON(m.Spec), m.Color, m.Desired, m.Observed, m.Activity,
		m.ActivityAt, m.Ready, m.Generation, m.PID, m.PaneID, m.StartedAt, m.Restarts, m.Failures,
		m.NextStart, m.ExitText, m.Reason, m.Worktree, m.Branch, m.Base,
		m.WaitsFor, m.LimitedTo, m.StopOrder.text(), m.EndedAt, m.TurnError, m.SessionKey); err != nil {
		return before, err
	}
	if m.Generation != before.Generation {
		if err := t.dropShutdowns(m); err != nil {
			return before, err
		}
	}
	switch {
	case m.Role != before.Role: // others may be led by it
		t.reach.everyone()
	case t.who != m.Name: // otherwise it knows
		t.concern(m.SessionKey)
	}
	if p.TokenHash != nil {
		if err := t.setToken(m.SessionKey, *p.TokenHash); err != nil {
			return before, err
		}
	}
	if err := t.memberEvents(before, m); err != nil {
		return m, err
	}
	return m, t.tellOfMember(before, m, p.Notice)
}

// apply changes a member whose Observed has already been updated; alive is that
// of the old state.
func (p MemberPatch) apply(m *Member, alive bool, now int64) {
	if p.Activity != nil && *p.Activity != m.Activity {
		m.ActivityAt = now
	}
	switch {
	case m.Observed.Alive():
		m.EndedAt = 0
	case alive:
		m.EndedAt = now
	}
	set(&m.Role, p.Role)
	set(&m.Spec, p.Spec)
	set(&m.Spec.Mode, p.Mode)
	set(&m.Color, p.Color)
	set(&m.Desired, p.Desired)
	set(&m.Activity, p.Activity)
	set(&m.ActivityAt, p.ActivityAt)
	set(&m.WaitsFor, p.WaitsFor)
	set(&m.LimitedTo, p.LimitedTo)
	if m.Activity != team.Waiting {
		m.WaitsFor = ""
	}
	if m.Activity != team.Limited {
		m.LimitedTo = 0
	}
	set(&m.TurnError, p.TurnError)
	if m.Activity != team.Idle {
		m.TurnError = ""
	}
	set(&m.Ready, p.Ready)
	set(&m.Generation, p.Generation)
	set(&m.PID, p.PID)
	set(&m.PaneID, p.PaneID)
	set(&m.StartedAt, p.StartedAt)
	set(&m.EndedAt, p.EndedAt)
	set(&m.Restarts, p.Restarts)
	set(&m.Failures, p.Failures)
	set(&m.NextStart, p.NextStart)
	set(&m.ExitText, p.ExitText)
	set(&m.Reason, p.Reason)
	set(&m.Worktree, p.Worktree)
	set(&m.Branch, p.Branch)
	set(&m.Base, p.Base)
	if p.StopOrder != nil {
		m.StopOrder = p.StopOrder
	}
	if m.Desired != team.WantStopped {
		m.StopOrder = nil
	}
}

// text returns the order as it is stored.
func (o *StopOrder) text() string {
	if o == nil {
		return ""
	}
	return mustJSON(*o)
}

func (t *tx) memberEvents(before, after Member) error {
	for _, c := range []struct{ what, before, after string }{
		{team.EventMemberDesired, string(before.Desired), string(after.Desired)},
		{team.EventMemberState, string(before.Observed), string(after.Observed)},
		{team.EventMemberReady, readyText(before.Ready), readyText(after.Ready)},
		{team.EventMemberActivity, activityText(before), activityText(after)},
		{team.EventMemberRole, string(before.Role), string(after.Role)},
		{team.EventMemberMode, string(before.Spec.Mode), string(after.Spec.Mode)},
	} {
		if c.before == c.after {
			continue
		}
		e := Event{What: c.what, ID: after.Name, Before: c.before, After: c.after}
		if c.what == team.EventMemberState {
			e.Data = json.RawMessage(mustJSON(stateData{after.Generation, after.PID, after.ExitText, after.Reason}))
		}
		if err := t.event(e); err != nil {
			return err
		}
	}
	return nil
}

// activityText returns an agent's activity for the log: "waiting" includes what
// it waits for.
func activityText(m Member) string {
	if m.WaitsFor != "" {
		return string(m.Activity) + "(" + string(m.WaitsFor) + ")"
	}
	return string(m.Activity)
}

type stateData struct {
	Generation string `json:"generation,omitempty"`
	PID        int    `json:"pid,omitempty"`
	ExitText   string `json:"exitText,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

func readyText(ready bool) string {
	if ready {
		return "ready"
	}
	return "not ready"
}
