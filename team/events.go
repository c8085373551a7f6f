package team

import "slices"

// Prefixes of event names: what follows is often the new state.
const (
	TaskEvents     = "task."
	MessageEvents  = "message."
	ApprovalEvents = "approval."
	MergeEvents    = "merge."
	TurnEvents     = "turn."
	MemberEvents   = "member."
)

// Events: the team and its ledger.
const (
	EventTeamCreated        = "team.created"
	EventTeamStatus         = "team.status"
	EventTeamSetting        = "team.setting"
	EventTeamEdge           = "team.edge"
	EventTeamDirectory      = "team.directory"
	EventTeamRestored       = "team.restored"
	EventRoleBypassed       = "role.bypassed"
	EventPermissionsChanged = "permissions.changed"
	EventAutoClaimSet       = "autoclaim.set"
	EventLedgerRepaired     = "ledger.repaired"
	EventLedgerRecovered    = "ledger.recovered"
	EventHistoryPruned      = "history.pruned"
	EventConfigAside        = "config.aside"
	EventMailboxRepaired    = "mailbox.repaired"
	EventSupervisorCalled   = "supervisor.called"
	EventNotifyFailed       = "notify.failed"
)

// Events: members.
const (
	EventMemberAdded     = "member.added"
	EventMemberRemoved   = "member.removed"
	EventMemberRenamed   = "member.renamed"
	EventMemberDesired   = "member.desired"
	EventMemberState     = "member.state"
	EventMemberReady     = "member.ready"
	EventMemberActivity  = "member.activity"
	EventMemberStalled   = "member.stalled"
	EventMemberRole      = "member.role"
	EventMemberMode      = "member.mode"
	EventMemberRequested = "member.requested"
	EventAgentCreated    = "agent.created"
	EventAgentUpdated    = "agent.updated"
	EventAgentDeleted    = "agent.deleted"
	EventHookBlocked     = "hook.blocked"
	EventHookStop        = "hook.stop"
	EventHookFailed      = "hook.failed"
)

// Events: tasks.
const (
	EventTaskCreated      = "task.created"
	EventTaskImported     = "task.imported"
	EventTaskUpdated      = "task.updated"
	EventTaskAssigned     = "task.assigned"
	EventTaskDeps         = "task.deps"
	EventTaskUnblocked    = "task.unblocked"
	EventTaskClaimed      = "task.claimed"
	EventTaskStarted      = "task.started"
	EventTaskReleased     = "task.released"
	EventTaskCompleted    = "task.completed"
	EventTaskFailed       = "task.failed"
	EventTaskRetrying     = "task.retrying"
	EventTaskRetried      = "task.retried"
	EventTaskReview       = "task.review"
	EventTaskSentBack     = "task.sent_back"
	EventTaskVerify       = "task.verify"
	EventTaskVerifying    = "task.verifying"
	EventTaskVerified     = "task.verified"
	EventTaskVerifyFailed = "task.verify_failed"
	EventTaskStranded     = "task.stranded"
	EventTaskDeleted      = "task.deleted"
	EventLeaseTaken       = "lease.taken"
	EventLeaseReleased    = "lease.released"
)

// Events: messages and approvals.
const (
	EventMessagePosted    = "message.posted"
	EventMessageMailed    = "message.mailed"
	EventMessageHeld      = "message.held"
	EventMessageInjected  = "message.injected"
	EventMessageUnknown   = "message.unknown"
	EventMessageAccepted  = "message.accepted"
	EventMessageRead      = "message.read"
	EventMessageAnswered  = "message.answered"
	EventMessageDropped   = "message.dropped"
	EventApprovalAsked    = "approval.asked"
	EventApprovalApproved = "approval.approved"
	EventApprovalRejected = "approval.rejected"
	EventApprovalExpired  = "approval.expired"
	EventIntentEnded      = "intent.ended"
)

// Events: work trees and merges.
const (
	EventWorktreeCheckout    = "worktree.checkout"
	EventWorktreeSetup       = "worktree.setup"
	EventWorktreeSetupFailed = "worktree.setup_failed"
	EventWorktreeOverlap     = "worktree.overlap"
	EventReviewSent          = "review.sent"
	EventReviewAsked         = "review.asked"
	EventReviewHandled       = "review.handled"
	EventMergeQueued         = "merge.queued"
	EventMergeGating         = "merge.gating"
	EventMergeLanding        = "merge.landing"
	EventMergeLanded         = "merge.landed"
	EventMergeContained      = "merge.contained"
	EventMergeConflict       = "merge.conflict"
	EventMergeRed            = "merge.red"
	EventMergeFailed         = "merge.failed"
	EventMergeCanceled       = "merge.canceled"
)

// Events: runs and usage.
const (
	EventRunStarted         = "run.started"
	EventRunClosed          = "run.closed"
	EventScratchpadMerged   = "scratchpad.merged"
	EventUsageCounted       = "usage.counted"
	EventUsageLimited       = "usage.limited"
	EventUsageResumed       = "usage.resumed"
	EventUsageBudgetWarned  = "usage.budget_warned"
	EventUsageBudgetUsedUp  = "usage.budget_used_up"
	EventUsageBudgetChanged = "usage.budget_changed"
)

// Events: sessions and turns of built-in agents.
const (
	EventSessionOpened     = "session.opened"
	EventSessionUpdated    = "session.updated"
	EventSessionClosed     = "session.closed"
	EventSessionBacklogged = "session.backlogged"
	EventSessionDrained    = "session.drained"
	EventSessionAnnounced  = "session.announced"
	EventSessionDropped    = "session.dropped"
	EventTurnQueued        = "turn.queued"
	EventTurnStarted       = "turn.started"
	EventTurnYielded       = "turn.yielded"
	EventTurnResumed       = "turn.resumed"
	EventTurnWaits         = "turn.waits"
	EventTurnRecovered     = "turn.recovered"
	EventTurnDone          = "turn.done"
	EventTurnFailed        = "turn.failed"
	EventTurnCancelled     = "turn.cancelled"
	EventTurnSteered       = "turn.steered"
)

// Word is a name that programs compare with, and its meaning in one sentence.
type Word struct {
	Name, Means string
}

var events = []Word{
	{EventTeamCreated, "The team was created."},
	{EventTeamStatus, "The state of the team changed, to active or shutdown."},
	{EventTeamSetting, "A setting of the team changed."},
	{EventTeamEdge, "A rule about who may write to whom was added or removed."},
	{EventTeamDirectory, "The ledger moved to another directory."},
	{EventTeamRestored, "The directory of the team was put back from a copy; members of the copy that still ran were ended."},
	{EventRoleBypassed, "An operator passed a gate that its role does not open."},
	{EventPermissionsChanged, "The permission rules of the team changed."},
	{EventAutoClaimSet, "The claiming of offered tasks was turned on or off, for the team or a member."},
	{EventLedgerRepaired, "A derived value of the ledger was wrong and was computed again."},
	{EventLedgerRecovered, "A damaged ledger was replaced by a rebuilt one."},
	{EventHistoryPruned, "Old rows of the history were deleted."},
	{EventConfigAside, "A config.json could not be read and was renamed; a new one was written beside it."},
	{EventMailboxRepaired, "A damaged mailbox was moved aside and written again."},
	{EventSupervisorCalled, "A client asked the supervisor to look at its socket."},
	{EventNotifyFailed, "A notification could not be delivered to a sink."},
	{EventMemberAdded, "A member joined the team."},
	{EventMemberRemoved, "A member was removed from the team."},
	{EventMemberRenamed, "A member has another name."},
	{EventMemberDesired, "The state that is wanted of a member changed."},
	{EventMemberState, "The observed state of a member's process changed."},
	{EventMemberReady, "A member became ready for input, or is so no longer."},
	{EventMemberActivity, "The activity of a member changed: working, idle, waiting or unknown."},
	{EventMemberStalled, "A working member has given no sign for ten minutes: no output and no new activity."},
	{EventMemberRole, "The role of a member changed."},
	{EventMemberMode, "The permission mode of a member changed."},
	{EventMemberRequested, "Somebody requested to start, restart, stop, kill, pause, resume or interrupt a member: `after` says which."},
	{EventAgentCreated, "An agent specification was added."},
	{EventAgentUpdated, "An agent specification changed."},
	{EventAgentDeleted, "An agent specification was deleted."},
	{EventHookBlocked, "A hook blocked an action and gave feedback."},
	{EventHookStop, "A hook stopped a member."},
	{EventHookFailed, "A hook failed, or was not run because nobody allowed it."},
	{EventTaskCreated, "A task was created."},
	{EventTaskImported, "A task was imported."},
	{EventTaskUpdated, "Fields of a task changed."},
	{EventTaskAssigned, "A task has another assignee."},
	{EventTaskDeps, "The dependencies of a task changed."},
	{EventTaskUnblocked, "The last open dependency of a task is complete, or no longer a dependency."},
	{EventTaskClaimed, "A member claimed a task."},
	{EventTaskStarted, "The owner of a task started it."},
	{EventTaskReleased, "A task lost its owner and is pending again."},
	{EventTaskCompleted, "A task is complete."},
	{EventTaskFailed, "A task failed, with no retry left."},
	{EventTaskRetrying, "An attempt at a task failed; another is allowed after a wait."},
	{EventTaskRetried, "A failed task was made pending again by hand."},
	{EventTaskReview, "A finished task waits for its reviewers."},
	{EventTaskSentBack, "A reviewer rejected a task, and it is pending again."},
	{EventTaskVerify, "A finished task waits for its verification command."},
	{EventTaskVerifying, "The verification command of a task started."},
	{EventTaskVerified, "The verification command of a task passed."},
	{EventTaskVerifyFailed, "The verification command of a task failed."},
	{EventTaskStranded, "No member can take any of the ready tasks; the id is that of the first one."},
	{EventTaskDeleted, "A task was deleted."},
	{EventLeaseTaken, "A member leased the files that match a pattern."},
	{EventLeaseReleased, "A member gave up a lease of files."},
	{EventMessagePosted, "A message was posted; the ledger has it."},
	{EventMessageMailed, "A message was written to its recipient's mailbox."},
	{EventMessageHeld, "The delivery of a message waits until its recipient can take it."},
	{EventMessageInjected, "A message was handed to the recipient's agent."},
	{EventMessageUnknown, "Nothing tells what became of a message that was handed to the recipient's agent."},
	{EventMessageAccepted, "The recipient's agent took a message into a turn."},
	{EventMessageRead, "The recipient read a message."},
	{EventMessageAnswered, "The recipient answered a message."},
	{EventMessageDropped, "A message will not be delivered."},
	{EventApprovalAsked, "An approval was requested."},
	{EventApprovalApproved, "A request was approved."},
	{EventApprovalRejected, "A request was rejected."},
	{EventApprovalExpired, "A request ended without an answer."},
	{EventIntentEnded, "An approved operation was carried out, or failed."},
	{EventWorktreeCheckout, "A checkout is in progress; the data has how far it is."},
	{EventWorktreeSetup, "The worktree of a member was set up."},
	{EventWorktreeSetupFailed, "The set-up of a member's worktree failed."},
	{EventWorktreeOverlap, "Two members changed the same files."},
	{EventReviewSent, "Comments on the changes of a member were sent to it."},
	{EventReviewAsked, "A member asks back about a comment on its changes."},
	{EventReviewHandled, "A member has handled a comment on its changes."},
	{EventMergeQueued, "A branch waits to be merged."},
	{EventMergeGating, "The gates of a merge are running."},
	{EventMergeLanding, "A merge passed its gates and its target is being moved."},
	{EventMergeLanded, "A merge is done."},
	{EventMergeContained, "The target of a merge already contained the branch."},
	{EventMergeConflict, "A merge has conflicts."},
	{EventMergeRed, "A gate of a merge failed."},
	{EventMergeFailed, "A merge failed for another reason than a gate or a conflict."},
	{EventMergeCanceled, "A merge was canceled."},
	{EventRunStarted, "A run of the team started."},
	{EventRunClosed, "A run of the team ended."},
	{EventScratchpadMerged, "Text was merged into the scratchpad of a run."},
	{EventUsageCounted, "A turn or a task of a member ended; the data has the running totals of what the member has used."},
	{EventUsageLimited, "The provider of an agent kind reached a usage limit."},
	{EventUsageResumed, "A usage limit ended."},
	{EventUsageBudgetWarned, "The larger part of a budget is used."},
	{EventUsageBudgetUsedUp, "A budget is used up."},
	{EventUsageBudgetChanged, "A budget changed."},
	{EventSessionOpened, "A session was opened."},
	{EventSessionUpdated, "Fields of a session changed."},
	{EventSessionClosed, "A session was closed."},
	{EventSessionBacklogged, "An input waits for the end of the session's turn."},
	{EventSessionDrained, "The waiting inputs of a session became one entry."},
	{EventSessionAnnounced, "The result of a session was reported to its parent."},
	{EventSessionDropped, "The result of a session could not be reported to its parent."},
	{EventTurnQueued, "A turn was queued."},
	{EventTurnStarted, "A turn started."},
	{EventTurnYielded, "A turn gave up its place while it waits."},
	{EventTurnResumed, "A turn has its place again."},
	{EventTurnWaits, "A turn was put back into the queue by its process."},
	{EventTurnRecovered, "A turn was put back into the queue because its process ended."},
	{EventTurnDone, "A turn is done."},
	{EventTurnFailed, "A turn failed."},
	{EventTurnCancelled, "A turn was cancelled."},
	{EventTurnSteered, "A turn became part of another one."},
}

// Events returns every event that a ledger can hold.
func Events() []Word { return slices.Clone(events) }
