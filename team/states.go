package team

// Desired is what the person wants of a member.
type Desired string

// Desired states.
const (
	WantRunning Desired = "running"
	WantStopped Desired = "stopped"
)

// Observed is what the supervisor sees of a member's process.
type Observed string

// Observed states. Backoff is waiting for the next start; Failed means that the
// supervisor gave up; Completed that the agent said it is done (status 0 after an
// approved shutdown, or status 125); Killed that a person ended it by force.
const (
	Pending   Observed = "pending"
	Starting  Observed = "starting"
	Running   Observed = "running"
	Exited    Observed = "exited"
	Backoff   Observed = "backoff"
	Failed    Observed = "failed"
	Completed Observed = "completed"
	Killed    Observed = "killed"
)

// observedEdges is the one transition table of a member (docs/states.md).
var observedEdges = map[Observed][]Observed{
	Pending:   {Starting, Killed, Completed, Failed},
	Starting:  {Running, Exited, Failed, Killed},
	Running:   {Exited, Killed},
	Exited:    {Backoff, Starting, Failed, Completed, Killed},
	Backoff:   {Starting, Killed, Completed, Failed},
	Failed:    {Starting, Killed, Completed},
	Completed: {Starting, Killed},
	Killed:    {Starting},
}

// CanMove reports whether the table has the edge.
func (o Observed) CanMove(to Observed) bool {
	for _, s := range observedEdges[o] {
		if s == to {
			return true
		}
	}
	return false
}

// Move checks the edge and returns to; an illegal one is an error naming both states.
func (o Observed) Move(to Observed) (Observed, error) {
	if !o.CanMove(to) {
		return o, Errorf(CodeInternal, "member cannot go from %s to %s", o, to)
	}
	return to, nil
}

// Alive reports whether a process of the member lives or is about to.
func (o Observed) Alive() bool { return o == Starting || o == Running }

// Terminal reports whether the supervisor does nothing more by itself.
func (o Observed) Terminal() bool { return o == Failed || o == Completed || o == Killed }

// ObservedStates lists every observed state with its successors, in order of life.
func ObservedStates() []Observed {
	return []Observed{Pending, Starting, Running, Exited, Backoff, Failed, Completed, Killed}
}

// Next are the states that the table allows after o.
func (o Observed) Next() []Observed { return append([]Observed(nil), observedEdges[o]...) }

// Activity is what a running agent does. Unknown is never shown or used as idle.
type Activity string

// Activities.
const (
	ActivityUnknown Activity = "unknown"
	Working         Activity = "working"
	Idle            Activity = "idle"
	Waiting         Activity = "waiting"
	Limited         Activity = "limited"
)

// TaskStatus is the state of a task.
type TaskStatus string

// Task states.
const (
	TaskPending    TaskStatus = "pending"
	TaskClaimed    TaskStatus = "claimed"
	TaskInProgress TaskStatus = "in_progress"
	TaskCompleted  TaskStatus = "completed"
	TaskFailed     TaskStatus = "failed"
)

// TaskStatuses lists every task state.
func TaskStatuses() []TaskStatus {
	return []TaskStatus{TaskPending, TaskClaimed, TaskInProgress, TaskCompleted, TaskFailed}
}

var taskEdges = map[TaskStatus][]TaskStatus{
	TaskPending:    {TaskClaimed, TaskFailed},
	TaskClaimed:    {TaskInProgress, TaskCompleted, TaskFailed, TaskPending},
	TaskInProgress: {TaskCompleted, TaskFailed, TaskPending},
	TaskCompleted:  nil,
	TaskFailed:     {TaskPending},
}

// CanMove reports whether a task may go from s to to. Back to pending is a
// release, an expired lease, the owner's death or a retry of a failed task.
func (s TaskStatus) CanMove(to TaskStatus) bool {
	for _, t := range taskEdges[s] {
		if t == to {
			return true
		}
	}
	return false
}

// ParseTaskStatus checks a status given by a person or program.
func ParseTaskStatus(s string) (TaskStatus, error) {
	for _, t := range TaskStatuses() {
		if string(t) == s {
			return t, nil
		}
	}
	return "", Errorf(CodeInvalid, "unknown task status %q", s).
		WithHint("use one of pending, claimed, in_progress, completed, failed")
}

// Role says what a member may do.
type Role string

// Roles. A spawned member is an executor unless told otherwise; operator passes
// every gate, which is logged.
const (
	RoleLeader   Role = "leader"
	RoleExecutor Role = "executor"
	RoleReviewer Role = "reviewer"
	RoleObserver Role = "observer"
	RoleOperator Role = "operator"
)

// ParseRole checks a role; empty is executor.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case "":
		return RoleExecutor, nil
	case RoleLeader, RoleExecutor, RoleReviewer, RoleObserver, RoleOperator:
		return r, nil
	}
	return "", Errorf(CodeInvalid, "unknown role %q", s).
		WithHint("use one of leader, executor, reviewer, observer, operator")
}

// TakesTasks reports whether a member with the role may work on tasks.
func (r Role) TakesTasks() bool {
	return r == RoleLeader || r == RoleExecutor || r == RoleOperator
}

// RestartPolicy says when an exited member is started again.
type RestartPolicy string

// Restart policies. Exit status 125 means done under every policy.
const (
	RestartNever     RestartPolicy = "never"
	RestartOnFailure RestartPolicy = "on-failure"
	RestartAlways    RestartPolicy = "always"
)

// ParseRestartPolicy checks a policy; empty is on-failure.
func ParseRestartPolicy(s string) (RestartPolicy, error) {
	switch p := RestartPolicy(s); p {
	case "":
		return RestartOnFailure, nil
	case RestartNever, RestartOnFailure, RestartAlways:
		return p, nil
	}
	return "", Errorf(CodeInvalid, "unknown restart policy %q", s).
		WithHint("use never, on-failure or always")
}

// Servers is with which MCP servers an agent starts.
type Servers string

// Choices of servers. teamctl's own server is among them in any case.
const (
	ServersAll  Servers = "all"  // those that the program is configured with, under the program's own consent
	ServersTeam Servers = "team" // teamctl's only
)

// ParseServers checks a choice; empty is all.
func ParseServers(s string) (Servers, error) {
	switch c := Servers(s); c {
	case "":
		return ServersAll, nil
	case ServersAll, ServersTeam:
		return c, nil
	}
	return "", Errorf(CodeInvalid, "unknown choice of MCP servers %q", s).WithHint("use all or team")
}

// Mode is a permission mode.
type Mode string

// Permission modes (document 001, section 12).
const (
	ModeDefault     Mode = "default"
	ModeAcceptEdits Mode = "acceptEdits"
	ModeBypass      Mode = "bypassPermissions"
	ModePlan        Mode = "plan"
	ModeDelegate    Mode = "delegate"
	ModeDontAsk     Mode = "dontAsk"
)

// ParseMode checks a mode; empty is default.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeDefault, nil
	case ModeDefault, ModeAcceptEdits, ModeBypass, ModePlan, ModeDelegate, ModeDontAsk:
		return m, nil
	}
	return "", Errorf(CodeInvalid, "unknown permission mode %q", s).
		WithHint("use one of default, acceptEdits, bypassPermissions, plan, delegate, dontAsk")
}

// TakesTasks reports whether a member in the mode may work on tasks.
func (m Mode) TakesTasks() bool { return m != ModePlan && m != ModeDelegate }

// Kind is the kind of a message in the ledger.
type Kind string

// Message kinds. The second block travels as JSON inside a mailbox entry's text.
const (
	KindMessage      Kind = "message"
	KindBroadcast    Kind = "broadcast"
	KindTaskRequest  Kind = "task_request"
	KindTaskResponse Kind = "task_response"
	KindInfo         Kind = "info"
	KindError        Kind = "error"

	KindShutdownRequest      Kind = "shutdown_request"
	KindShutdownApproved     Kind = "shutdown_approved"
	KindShutdownRejected     Kind = "shutdown_rejected"
	KindIdle                 Kind = "idle_notification"
	KindTaskAssignment       Kind = "task_assignment"
	KindTaskCompleted        Kind = "task_completed"
	KindPermissionRequest    Kind = "permission_request"
	KindPermissionResponse   Kind = "permission_response"
	KindPlanApprovalRequest  Kind = "plan_approval_request"
	KindPlanApprovalResponse Kind = "plan_approval_response"
	// KindTeammateTerminated is a notice of the system: no member sends it.
	KindTeammateTerminated Kind = "teammate_terminated"
)

// DeliveryState is how far one message has come to one recipient.
type DeliveryState string

// Delivery states. Accepted needs evidence that the agent has the message. Unknown was
// injected, and nothing has told what became of it for longer than that takes; evidence
// that comes later still counts.
const (
	Posted   DeliveryState = "posted"
	Mailed   DeliveryState = "mailed"
	Held     DeliveryState = "held"
	Injected DeliveryState = "injected"
	Unknown  DeliveryState = "unknown"
	Accepted DeliveryState = "accepted"
	Read     DeliveryState = "read"
	Answered DeliveryState = "answered"
	Dropped  DeliveryState = "dropped"
)

// HandedOver reports whether the message was handed to the agent and is not known to have
// arrived.
func (s DeliveryState) HandedOver() bool { return s == Injected || s == Unknown }

// Limits (REQUIREMENTS, "where the documents disagree").
const (
	MaxMessagesPerRun = 1000
	MaxMessageBytes   = 100 * 1024
	MaxSubject        = 200
	MaxDescription    = 10_000
	MaxActiveForm     = 100
	MaxHops           = 3
)
