package ledger

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// ApprovalKind is the subject of an approval.
type ApprovalKind string

// Kinds of approvals.
const (
	ApprovePermission ApprovalKind = "permission" // a member requests permission to use a tool
	ApprovePlan       ApprovalKind = "plan"       // a member in plan mode submits its plan
	ApproveReview     ApprovalKind = "review"     // a task is done and awaits review
	ApproveDelegation ApprovalKind = "delegation" // a member requests to delegate work, or to spawn
)

// ApprovalState is the state of an approval. It leaves pending once.
type ApprovalState string

// States of approvals.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved"
	ApprovalRejected ApprovalState = "rejected"
	// ApprovalExpired means that the approval ended without an answer through
	// the ledger: its deadline passed, or it was answered elsewhere.
	ApprovalExpired ApprovalState = "expired"
)

// AnswererPerson is the answerer of an approval that no role may answer.
const AnswererPerson = "person"

// Approval is a request that awaits a decision.
type Approval struct {
	ID         int64           `json:"id"`
	RequestID  string          `json:"requestId"`
	Run        int64           `json:"run"`
	Kind       ApprovalKind    `json:"kind"`
	State      ApprovalState   `json:"state"`
	Session    string          `json:"session"` // of the requester
	Name       string          `json:"name"`
	Answerer   string          `json:"answerer"` // AnswererPerson, or a role that may also answer
	Task       string          `json:"task,omitempty"`
	Attempt    int             `json:"attempt,omitempty"`
	Subject    string          `json:"subject"`
	Payload    json.RawMessage `json:"payload,omitempty"`
	Message    string          `json:"message,omitempty"` // id of the request's message
	Feedback   string          `json:"feedback,omitempty"`
	AnsweredBy string          `json:"answeredBy,omitempty"`
	// AnsweredVia is the screen by which a person answered: "page", "screen".
	AnsweredVia string `json:"answeredVia,omitempty"`
	CreatedAt   int64  `json:"createdAt"`
	Deadline    int64  `json:"deadline,omitempty"`
	AnsweredAt  int64  `json:"answeredAt,omitempty"`
}

// ApprovalFilter narrows Approvals. The zero value selects all of them.
type ApprovalFilter struct {
	State   ApprovalState
	Kind    ApprovalKind
	Session string
	Task    string
	IDs     []int64 // nil: all
}

const (
	approvalCols = `id, requestId, run, kind, state, session, name, answerer, task, attempt, subject, payload, message,
	feedback, answeredBy, answeredVia, createdAt, deadline, answeredAt`
	sqlApprovals   = `SELECT ` + approvalCols + ` FROM approvals WHERE true`
	sqlApprovalGet = sqlApprovals + ` AND id = ?`
	sqlApprovalReq = sqlApprovals + ` AND requestId = ?`
	sqlApprovalPut = `INSERT INTO approvals(requestId, run, kind, session, name, answerer, task, attempt, subject, payload, message, createdAt, deadline,
		state, feedback, answeredBy, answeredAt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`
	sqlApprovalEnd = `UPDATE approvals SET state = ?, feedback = ?, answeredBy = ?, answeredVia = ?, answeredAt = ? WHERE id = ?`
	sqlApprovalsOf = sqlApprovals + ` AND session = ? AND state = 'pending' AND kind <> 'review' ORDER BY id`
)

// Approvals returns the approvals that match the filter, oldest first.
func (l *Ledger) Approvals(ctx context.Context, f ApprovalFilter) ([]Approval, error) {
	q, args := sqlApprovals, []any(nil)
	for _, c := range []struct{ col, val string }{
		{"state", string(f.State)}, {"kind", string(f.Kind)}, {"session", f.Session}, {"task", f.Task},
	} {
		if c.val != "" {
			q, args = q+" AND "+c.col+" = ?", append(args, c.val)
		}
	}
	if f.IDs != nil {
		q, args = q+" AND id IN (SELECT value FROM json_each(?))", append(args, mustJSON(f.IDs))
	}
	return read(ctx, l.db, "read approvals", scanApproval, q+" ORDER BY id", args...)
}

// Approval returns one approval by its number or request id, or CodeNotFound
// (approval_not_found).
func (l *Ledger) Approval(ctx context.Context, id string) (Approval, error) {
	q := sqlApprovalReq
	if isNumber(id) {
		q = sqlApprovalGet
	}
	as, err := read(ctx, l.db, "read approval "+id, scanApproval, q, id)
	if err == nil && len(as) == 0 {
		err = errNoApproval(id)
	}
	if err != nil {
		return Approval{}, err
	}
	return as[0], nil
}

// approval reads one approval inside a transaction.
func (t *tx) approval(id int64) (a Approval, err error) {
	found, err := t.one(sqlApprovalGet, func(r *sql.Rows) (err error) {
		a, err = scanApproval(r)
		return err
	}, id)
	if err == nil && !found {
		err = errNoApproval(itoa(id))
	}
	return a, err
}

// settleApproval ends a pending approval and logs the event.
func (t *tx) settleApproval(a *Approval, state ApprovalState, by, feedback string) error {
	a.State, a.AnsweredBy, a.Feedback, a.AnsweredAt = state, by, feedback, t.now
	if by == t.who {
		a.AnsweredVia = t.via
	}
	if _, err := t.exec(sqlApprovalEnd, a.State, a.Feedback, a.AnsweredBy, a.AnsweredVia, a.AnsweredAt, a.ID); err != nil {
		return err
	}
	return t.event(Event{Who: by, What: team.ApprovalEvents + string(state), ID: itoa(a.ID), Before: string(ApprovalPending), After: string(state),
		Data: json.RawMessage(mustJSON(approvalData{a.Kind, a.RequestID, a.Name, a.Task, feedback}))})
}

type approvalData struct {
	Kind      ApprovalKind `json:"kind"`
	RequestID string       `json:"requestId"`
	Name      string       `json:"name"`
	Task      string       `json:"task,omitempty"`
	Feedback  string       `json:"feedback,omitempty"`
}

// rejectOf rejects the pending requests of a session that can no longer use the
// answer. A review stays, because its work is done.
func (t *tx) rejectOf(session, why string) error {
	var pending []Approval
	err := t.each(sqlApprovalsOf, func(r *sql.Rows) error {
		a, err := scanApproval(r)
		pending = append(pending, a)
		return err
	}, session)
	if err != nil {
		return err
	}
	for i := range pending {
		if err := t.settleApproval(&pending[i], ApprovalRejected, t.who, why); err != nil {
			return err
		}
	}
	return nil
}

func scanApproval(r *sql.Rows) (Approval, error) {
	var a Approval
	var payload sql.NullString
	err := r.Scan(&a.ID, &a.RequestID, &a.Run, &a.Kind, &a.State, &a.Session, &a.Name, &a.Answerer, &a.Task, &a.Attempt,
		&a.Subject, &payload, &a.Message, &a.Feedback, &a.AnsweredBy, &a.AnsweredVia, &a.CreatedAt, &a.Deadline, &a.AnsweredAt)
	a.Payload = rawJSON(payload)
	return a, err
}

func errNoApproval(id string) error {
	return team.Errorf(team.CodeNotFound, "no approval %q", id).WithReason(team.ReasonNoApproval).WithHint("teamctl approvals")
}
