package inbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// The frames, with their keys in the order of real clients. Fields are strings
// as transmitted; Timestamp has the format of the function Timestamp.

// ShutdownRequest asks a member to end.
type ShutdownRequest struct {
	RequestID string `json:"requestId"`
	From      string `json:"from"`
	Reason    string `json:"reason,omitempty"`
	Timestamp string `json:"timestamp"`
}

// ShutdownApproved announces that a member is about to exit.
type ShutdownApproved struct {
	RequestID   string `json:"requestId"`
	From        string `json:"from"`
	Timestamp   string `json:"timestamp"`
	PaneID      string `json:"paneId,omitempty"`
	BackendType string `json:"backendType,omitempty"`
}

// ShutdownRejected gives the reason why a member continues.
type ShutdownRejected struct {
	RequestID string `json:"requestId"`
	From      string `json:"from"`
	Reason    string `json:"reason"`
	Timestamp string `json:"timestamp"`
}

// Reasons of an IdleNotification.
const (
	IdleAvailable   = "available"
	IdleInterrupted = "interrupted"
	IdleFailed      = "failed"
)

// IdleNotification reports the end of a member's turn.
type IdleNotification struct {
	From            string `json:"from"`
	Timestamp       string `json:"timestamp"`
	IdleReason      string `json:"idleReason,omitempty"`
	Summary         string `json:"summary,omitempty"`
	CompletedTaskID string `json:"completedTaskId,omitempty"`
	CompletedStatus string `json:"completedStatus,omitempty"`
	FailureReason   string `json:"failureReason,omitempty"`
	Result          string `json:"result,omitempty"` // the final output of the turn; recent clients only
}

// Fail marks the notice as that of a turn that failed with an error, in
// addition to what it says about tasks, and returns the text for a summary.
func (n *IdleNotification) Fail(words string) (summary string) {
	n.IdleReason, n.FailureReason = IdleFailed, strings.TrimPrefix(n.FailureReason+"; "+words, "; ")
	return "its turn failed: " + words
}

// TaskAssignment informs the recipient that it owns a task.
type TaskAssignment struct {
	TaskID      string `json:"taskId"`
	Subject     string `json:"subject"`
	Description string `json:"description"`
	AssignedBy  string `json:"assignedBy"`
	Timestamp   string `json:"timestamp"`
}

// TaskCompleted informs the lead that a task is completed.
type TaskCompleted struct {
	From        string `json:"from"`
	TaskID      string `json:"taskId"`
	TaskSubject string `json:"taskSubject"`
	Timestamp   string `json:"timestamp"`
	// ReadyTasks are the tasks that became ready as a result.
	ReadyTasks []string `json:"readyTasks,omitempty"`
}

// PermissionRequest asks the lead for permission to use a tool.
type PermissionRequest struct {
	RequestID   string          `json:"request_id"`
	AgentID     string          `json:"agent_id"` // the member's name, as recorded clients send it
	ToolName    string          `json:"tool_name"`
	ToolUseID   string          `json:"tool_use_id"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
}

// PermissionResponse answers a PermissionRequest. It is written with both the
// "approve" of some clients and the "subtype" of others, and accepts either
// when read.
type PermissionResponse struct {
	RequestID         string
	Approve           bool
	UpdatedInput      json.RawMessage // optional, for an approval
	PermissionUpdates json.RawMessage // optional, for an approval
	Error             string          // the reason of a refusal
}

// PlanApprovalRequest submits a member's plan to the lead.
type PlanApprovalRequest struct {
	From         string `json:"from"`
	Timestamp    string `json:"timestamp"`
	PlanFilePath string `json:"planFilePath"`
	PlanContent  string `json:"planContent"`
	RequestID    string `json:"requestId"`
}

// PlanApprovalResponse answers a PlanApprovalRequest.
type PlanApprovalResponse struct {
	RequestID      string `json:"requestId"`
	Approved       bool   `json:"approved"`
	Feedback       string `json:"feedback,omitempty"` // for a rejection
	Timestamp      string `json:"timestamp"`
	PermissionMode string `json:"permissionMode,omitempty"` // for an approval
}

// TeammateTerminated is the system's notice that a teammate has terminated.
// Recorded clients write only the message; the other keys are additions.
type TeammateTerminated struct {
	Message    string       `json:"message"`
	AgentID    string       `json:"agentId,omitempty"`
	Status     NoticeStatus `json:"status,omitempty"` // completed, failed or killed
	OutputFile string       `json:"outputFile,omitempty"`
}

// frameTypes lists every frame with its required and optional keys.
var frameTypes = []frameType{
	{team.KindShutdownRequest, []string{"requestId", "from", "timestamp"}, []string{"reason"}, parseAs[ShutdownRequest]},
	{team.KindShutdownApproved, []string{"requestId", "from", "timestamp"}, []string{"paneId", "backendType"}, parseAs[ShutdownApproved]},
	{team.KindShutdownRejected, []string{"requestId", "from", "reason", "timestamp"}, nil, parseAs[ShutdownRejected]},
	{team.KindIdle, []string{"from", "timestamp"}, []string{
		"idleReason", "summary", "completedTaskId", "completedStatus", "failureReason", "result",
	}, parseAs[IdleNotification]},
	{team.KindTaskAssignment, []string{"taskId", "subject", "assignedBy", "timestamp"}, []string{"description"}, parseAs[TaskAssignment]},
	{team.KindTaskCompleted, []string{"from", "taskId", "taskSubject", "timestamp"}, nil, parseAs[TaskCompleted]},
	{team.KindPermissionRequest, []string{"request_id", "agent_id", "tool_name"}, []string{
		"tool_use_id", "description", "input", "permission_suggestions",
	}, parseAs[PermissionRequest]},
	{team.KindPermissionResponse, []string{"request_id"}, []string{
		"approve", "subtype", "response", "error",
	}, parseAs[PermissionResponse]},
	{team.KindPlanApprovalRequest, []string{"requestId", "from", "timestamp"}, []string{"planFilePath", "planContent"}, parseAs[PlanApprovalRequest]},
	{team.KindPlanApprovalResponse, []string{"requestId", "approved", "timestamp"}, []string{"feedback", "permissionMode"}, parseAs[PlanApprovalResponse]},
	{team.KindTeammateTerminated, []string{"message"}, []string{"agentId", "status", "outputFile"}, parseAs[TeammateTerminated]},
}

// Kind implements Frame.
func (ShutdownRequest) Kind() team.Kind { return team.KindShutdownRequest }

// Kind implements Frame.
func (ShutdownApproved) Kind() team.Kind { return team.KindShutdownApproved }

// Kind implements Frame.
func (ShutdownRejected) Kind() team.Kind { return team.KindShutdownRejected }

// Kind implements Frame.
func (IdleNotification) Kind() team.Kind { return team.KindIdle }

// Kind implements Frame.
func (TaskAssignment) Kind() team.Kind { return team.KindTaskAssignment }

// Kind implements Frame.
func (TaskCompleted) Kind() team.Kind { return team.KindTaskCompleted }

// Kind implements Frame.
func (PermissionRequest) Kind() team.Kind { return team.KindPermissionRequest }

// Kind implements Frame.
func (PermissionResponse) Kind() team.Kind { return team.KindPermissionResponse }

// Kind implements Frame.
func (PlanApprovalRequest) Kind() team.Kind { return team.KindPlanApprovalRequest }

// Kind implements Frame.
func (PlanApprovalResponse) Kind() team.Kind { return team.KindPlanApprovalResponse }

// Kind implements Frame.
func (TeammateTerminated) Kind() team.Kind { return team.KindTeammateTerminated }

// Correlation implements Frame.
func (f ShutdownRequest) Correlation() string { return f.RequestID }

// Correlation implements Frame.
func (f ShutdownApproved) Correlation() string { return f.RequestID }

// Correlation implements Frame.
func (f ShutdownRejected) Correlation() string { return f.RequestID }

// Correlation implements Frame; it is always empty.
func (IdleNotification) Correlation() string { return "" }

// Correlation implements Frame; it is always empty.
func (TaskAssignment) Correlation() string { return "" }

// Correlation implements Frame; it is always empty.
func (TaskCompleted) Correlation() string { return "" }

// Correlation implements Frame.
func (f PermissionRequest) Correlation() string { return f.RequestID }

// Correlation implements Frame.
func (f PermissionResponse) Correlation() string { return f.RequestID }

// Correlation implements Frame.
func (f PlanApprovalRequest) Correlation() string { return f.RequestID }

// Correlation implements Frame.
func (f PlanApprovalResponse) Correlation() string { return f.RequestID }

// Correlation implements Frame; it is always empty.
func (TeammateTerminated) Correlation() string { return "" }

type permissionGrant struct {
	UpdatedInput      json.RawMessage `json:"updated_input,omitempty"`
	PermissionUpdates json.RawMessage `json:"permission_updates,omitempty"`
}

type permissionWire struct {
	RequestID string           `json:"request_id"`
	Approve   *bool            `json:"approve,omitempty"`
	Subtype   string           `json:"subtype,omitempty"`
	Response  *permissionGrant `json:"response,omitempty"`
	Error     string           `json:"error,omitempty"`
}

// MarshalJSON writes both forms at once.
func (f PermissionResponse) MarshalJSON() ([]byte, error) {
	w := permissionWire{RequestID: f.RequestID, Approve: &f.Approve, Subtype: "error", Error: f.Error}
	if f.Approve {
		w.Subtype, w.Error = "success", ""
		w.Response = &permissionGrant{f.UpdatedInput, f.PermissionUpdates}
	} else if w.Error == "" {
		w.Error = "refused"
	}
	return marshalPlain(w)
}

// marshalPlain is json.Marshal without HTML escapes.
func marshalPlain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON reads either form; if both are present they must agree.
func (f *PermissionResponse) UnmarshalJSON(data []byte) error {
	var w permissionWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	var says *bool
	switch w.Subtype {
	case "success", "error":
		ok := w.Subtype == "success"
		says = &ok
	case "":
	default:
		return errors.New("unknown subtype of a permission_response")
	}
	switch {
	case says == nil && w.Approve == nil:
		return errors.New("permission_response without an answer")
	case says == nil:
		says = w.Approve
	case w.Approve != nil && *w.Approve != *says:
		return errors.New("permission_response contradicts itself")
	}
	*f = PermissionResponse{RequestID: w.RequestID, Approve: *says, Error: w.Error}
	if w.Response != nil {
		f.UpdatedInput, f.PermissionUpdates = w.Response.UpdatedInput, w.Response.PermissionUpdates
	}
	return nil
}
