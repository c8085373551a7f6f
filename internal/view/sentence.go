package view

import (
	"encoding/json"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Happened is an event of the ledger, for a sentence. Subject is that of its task, request or
// message, "" if unknown.
type Happened struct {
	Who, What, ID, Before, After string
	Subject                      string
}

// Sentence returns an event as a sentence: "lint finished 4 unit tests". It is "" for an event
// that people need not read about, because a list shows its effect or another event says the same.
func Sentence(e Happened) string {
	text, known := sentences[e.What]
	if !known { // from a newer ledger
		text = "{who}: " + e.What + " {it}"
	}
	switch e.What {
	case team.EventMemberAdded:
		if e.ID == team.LeadName {
			return ""
		}
	case team.EventMemberState:
		text = states[team.Observed(e.After)]
	case team.EventTaskAssigned:
		if e.Before, e.After = owner(e.Before), owner(e.After); e.After == "" {
			text = "{who} took {it} from {before}"
		}
	}
	it := e.ID
	if e.Subject != "" {
		it = strings.TrimSpace(e.ID + " " + e.Subject)
	}
	return strings.TrimSpace(strings.NewReplacer("{who}", e.Who, "{it}", it, "{id}", e.ID, "{subject}", e.Subject,
		"{before}", e.Before, "{after}", e.After).Replace(text))
}

// By says who did something, and by which screen if it was a person at one.
func By(who, via string) string {
	if via == "" {
		return who
	}
	return "person, by the " + via
}

// owner returns the owner among the changed fields of a task.
func owner(fields string) string {
	var f struct{ Owner string }
	_ = json.Unmarshal([]byte(fields), &f) // not an object: no owner
	return f.Owner
}

// states has the sentences about the state of a member's process.
var states = map[team.Observed]string{
	team.Running: "{it} runs",
	team.Exited:  "{it} exited",
	team.Killed:  "{it} was killed",
	team.Failed:  "{it} failed: it does not stay up",
	team.Backoff: "{it} ended and will be started again",
}

// sentences has each event; an empty sentence is not shown.
var sentences = map[string]string{
	team.EventTeamCreated:        "{who} created the team",
	team.EventTeamStatus:         "the team is {after}",
	team.EventTeamSetting:        "{who} changed the setting {it}",
	team.EventTeamEdge:           "{who} changed who may write to whom",
	team.EventTeamDirectory:      "the team moved to another directory",
	team.EventTeamRestored:       "the team's directory was put back from a copy",
	team.EventRoleBypassed:       "{who} passed a check of its role: {it}",
	team.EventPermissionsChanged: "{who} changed the permission rules",
	team.EventAutoClaimSet:       "{who} changed who is offered tasks",
	team.EventLedgerRepaired:     "the ledger was repaired: {it}",
	team.EventLedgerRecovered:    "the ledger was damaged and has been rebuilt",
	team.EventHistoryPruned:      "{who} deleted old history",
	team.EventConfigAside:        "a config.json that could not be read was moved aside",
	team.EventMailboxRepaired:    "a damaged mailbox was written again: {it}",
	team.EventSupervisorCalled:   "",
	team.EventNotifyFailed:       "a notification could not be delivered: {it}",

	team.EventMemberAdded:     "{it} joined",
	team.EventMemberRemoved:   "{it} left",
	team.EventMemberRenamed:   "{before} is now called {after}",
	team.EventMemberDesired:   "",
	team.EventMemberState:     "", // see states
	team.EventMemberReady:     "",
	team.EventMemberActivity:  "",
	team.EventMemberStalled:   "{it} works and has shown nothing for ten minutes",
	team.EventMemberRole:      "{it} is {after} now",
	team.EventMemberMode:      "{it} works in mode {after}",
	team.EventMemberRequested: "{who} requested to {after} {it}",
	team.EventAgentCreated:    "{who} added the agent {it}",
	team.EventAgentUpdated:    "{who} changed the agent {it}",
	team.EventAgentDeleted:    "{who} deleted the agent {it}",
	team.EventHookBlocked:     "a hook blocked {who}: {it}",
	team.EventHookStop:        "a hook stopped {it}",
	team.EventHookFailed:      "a hook did not run: {it}",

	team.EventTaskCreated:      "{who} added {it}",
	team.EventTaskImported:     "{who} imported {it}",
	team.EventTaskUpdated:      "{who} changed {it}",
	team.EventTaskAssigned:     "{who} gave {it} to {after}",
	team.EventTaskDeps:         "{who} changed what {it} depends on",
	team.EventTaskUnblocked:    "{it} is ready now",
	team.EventTaskClaimed:      "{who} took {it}",
	team.EventTaskStarted:      "", // it follows the claim
	team.EventTaskReleased:     "{it} is free again",
	team.EventTaskCompleted:    "{who} finished {it}",
	team.EventTaskFailed:       "{it} failed",
	team.EventTaskRetrying:     "an attempt at {it} failed; it will be tried again",
	team.EventTaskRetried:      "{who} gave {it} another try",
	team.EventTaskReview:       "{it} waits for a review",
	team.EventTaskSentBack:     "{who} sent {it} back",
	team.EventTaskVerify:       "",
	team.EventTaskVerifying:    "{it} is being verified",
	team.EventTaskVerified:     "{it} passed its verification",
	team.EventTaskVerifyFailed: "{it} failed its verification",
	team.EventTaskStranded:     "no member can take {it}, or any other ready task",
	team.EventTaskDeleted:      "{who} deleted {it}",
	team.EventLeaseTaken:       "{who} leased {it}",
	team.EventLeaseReleased:    "{who} gave up the lease of {it}",

	// The delivery state is shown beside a message, and its content when it is posted.
	team.EventMessagePosted:    "",
	team.EventMessageMailed:    "",
	team.EventMessageHeld:      "",
	team.EventMessageInjected:  "",
	team.EventMessageUnknown:   "nothing tells what became of a message that {who} was handed",
	team.EventMessageAccepted:  "",
	team.EventMessageRead:      "",
	team.EventMessageAnswered:  "",
	team.EventMessageDropped:   "",
	team.EventApprovalAsked:    "{who} asks: {subject}",
	team.EventApprovalApproved: "{who} approved {it}",
	team.EventApprovalRejected: "{who} rejected {it}",
	team.EventApprovalExpired:  "request {it} ended without an answer",
	team.EventIntentEnded:      "",

	team.EventWorktreeCheckout:    "",
	team.EventWorktreeSetup:       "the worktree of {it} is set up",
	team.EventWorktreeSetupFailed: "the set-up of the worktree of {it} failed",
	team.EventWorktreeOverlap:     "{it} changed files that another member changed too",
	team.EventReviewSent:          "{who} sent comments on the changes of {it}",
	team.EventReviewAsked:         "{who} asks back about comment {it}",
	team.EventReviewHandled:       "{who} handled comment {it}",
	team.EventMergeQueued:         "{who} queued a merge: {it}",
	team.EventMergeGating:         "the gates of merge {it} run",
	team.EventMergeLanding:        "",
	team.EventMergeLanded:         "merge {it} is done",
	team.EventMergeContained:      "merge {it} had nothing to add",
	team.EventMergeConflict:       "merge {it} has conflicts",
	team.EventMergeRed:            "a gate of merge {it} failed",
	team.EventMergeFailed:         "merge {it} failed",
	team.EventMergeCanceled:       "merge {it} was canceled",

	team.EventRunStarted:         "run {it} began",
	team.EventRunClosed:          "run {it} ended",
	team.EventScratchpadMerged:   "{who} wrote to the scratchpad",
	team.EventUsageCounted:       "",
	team.EventUsageLimited:       "{it} has reached a usage limit",
	team.EventUsageResumed:       "the usage limit of {it} has ended",
	team.EventUsageBudgetWarned:  "most of the budget is used: {it}",
	team.EventUsageBudgetUsedUp:  "the budget is used up: {it}",
	team.EventUsageBudgetChanged: "{who} changed a budget",

	team.EventSessionOpened:     "",
	team.EventSessionUpdated:    "",
	team.EventSessionClosed:     "",
	team.EventSessionBacklogged: "",
	team.EventSessionDrained:    "",
	team.EventSessionAnnounced:  "",
	team.EventSessionDropped:    "the result of a session reached nobody: {it}",
	team.EventTurnQueued:        "",
	team.EventTurnStarted:       "",
	team.EventTurnYielded:       "",
	team.EventTurnResumed:       "",
	team.EventTurnWaits:         "",
	team.EventTurnRecovered:     "turn {it} goes on in a new process",
	team.EventTurnDone:          "",
	team.EventTurnFailed:        "turn {it} failed",
	team.EventTurnCancelled:     "turn {it} was cancelled",
	team.EventTurnSteered:       "",
}
