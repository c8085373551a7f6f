package ledger

import (
	"encoding/json"

	"github.com/teamctl/teamctl/team"
)

// opSpec is one operation. The result of a retryable operation is stored, so
// that repeating its id returns it; the others may be applied twice.
type opSpec struct {
	run       func(*tx, json.RawMessage) (any, error)
	retryable bool
	near      bool // concerns only the members that it names to tx.concern
}

func once[A, R any](fn func(*tx, A) (R, error)) opSpec {
	return opSpec{run: typed(fn), retryable: true}
}

func again[A, R any](fn func(*tx, A) (R, error)) opSpec {
	return opSpec{run: typed(fn)}
}

// near marks an operation that concerns only the members that it names to tx.concern.
func near(s opSpec) opSpec {
	s.near = true
	return s
}

func typed[A, R any](fn func(*tx, A) (R, error)) func(*tx, json.RawMessage) (any, error) {
	return func(t *tx, raw json.RawMessage) (any, error) {
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, team.Errorf(team.CodeInvalid, "decode arguments: %w", err)
		}
		return fn(t, a)
	}
}

// none is the result of an operation without one.
type none struct{}

const (
	opTeamCreate     = "team.create"
	opTeamUpdate     = "team.update"
	opRunStart       = "run.start"
	opScratchpad     = "scratchpad.merge"
	opTasksCreate    = "tasks.create"
	opTaskClaim      = "task.claim"
	opTaskStart      = "task.start"
	opTaskComplete   = "task.complete"
	opTaskFail       = "task.fail"
	opTaskRelease    = "task.release"
	opTaskUpdate     = "task.update"
	opTaskDepsAdd    = "task.deps.add"
	opTaskDepsRemove = "task.deps.remove"
	opTaskDelete     = "task.delete"
	opTaskRetry      = "task.retry"
	opTaskCancel     = "task.cancel"
	opOwnerRelease   = "owner.release"
	opLeasesRenew    = "leases.renew"
	opLeasesExpire   = "leases.expire"
	opMemberAdd      = "member.add"
	opMemberUpdate   = "member.update"
	opMemberRemove   = "member.remove"
	opMemberLeave    = "member.leave"
	opRenameBegin    = "rename.begin"
	opRenameApply    = "rename.apply"
	opRenameEnd      = "rename.end"
	opRenameDrop     = "rename.drop"
	opMessagePost    = "message.post"
	opDeliveryMark   = "delivery.mark"
	opEvent          = "event.append"
	opFileLeaseTake  = "filelease.take"
	opFileLeaseDrop  = "filelease.drop"
	opTouchedSet     = "touched.set"
	opOverlapTell    = "overlap.tell"
	opMergesAdd      = "merges.add"
	opMergesMove     = "merges.move"
	opSettingPut     = "setting.put"
	opSettingRevise  = "setting.revise"
	opPlace          = "place.set"

	opTaskCompleteReviewed = "task.complete.reviewed"
	opTaskCompleteVerified = "task.complete.verified"
	opVerifyBegin          = "verify.begin"
	opVerifyAbandon        = "verify.abandon"
	opVerifyEnd            = "verify.end"
	opApprovalAsk          = "approval.ask"
	opApprovalAnswer       = "approval.answer"
	opIntentFinish         = "intent.finish"
	opAutoClaim            = "autoclaim.set"
	opStranded             = "stranded.set"
	opRunClose             = "run.close"
	opTaskReassign         = "task.reassign"
	opTasksOffer           = "tasks.offer"
	opTasksImport          = "tasks.import"
	opPrune                = "history.prune"
	opRepair               = "ledger.repair"

	opSpecPut       = "agentspec.put"
	opSpecDelete    = "agentspec.delete"
	opSessionOpen   = "session.open"
	opSessionUpdate = "session.update"
	opSessionClose  = "session.close"
	opSessionTakeIn = "session.takein"
	opTurnQueue     = "turn.queue"
	opTurnClaim     = "turn.claim"
	opTurnNote      = "turn.note"
	opTurnYield     = "turn.yield"
	opTurnResume    = "turn.resume"
	opTurnRenew     = "turn.renew"
	opTurnCancel    = "turn.cancel"
	opTurnAnswer    = "turn.answer"
	opTurnEnd       = "turn.end"
	opTurnSteer     = "turn.steer"
	opTurnRecover   = "turn.recover"
	opCallBegin     = "call.begin"
	opCallsEnd      = "calls.end"

	opCommentPut    = "comment.put"
	opCommentAnswer = "comment.answer"
	opRoundSend     = "round.send"
	opFileReviewed  = "file.reviewed"

	opMirror       = "mirror.note"
	opMirrorMember = "mirror.member"
	opMirrorTask   = "mirror.task"
	opMirrorMail   = "mirror.mail"
)

// ops lists every operation.
var ops = map[string]opSpec{
	opTeamCreate:     once(createTeam),
	opTeamUpdate:     once(updateTeam),
	opRunStart:       once(startRun),
	opScratchpad:     once(mergeScratchpad),
	opTasksCreate:    once(createTasks),
	opTaskClaim:      once(claimTask),
	opTaskStart:      once(startTask),
	opTaskComplete:   once(completeTask),
	opTaskFail:       once(failTask),
	opTaskRelease:    once(releaseTask),
	opTaskUpdate:     once(updateTask),
	opTaskDepsAdd:    once(addDeps),
	opTaskDepsRemove: once(removeDeps),
	opTaskDelete:     once(deleteTask),
	opTaskRetry:      once(retryTask),
	opTaskCancel:     once(cancelTask),
	opOwnerRelease:   once(releaseOwner),
	opLeasesRenew:    near(again(renewLeases)),
	opLeasesExpire:   once(expireLeases),
	opMemberAdd:      once(addMember),
	opMemberUpdate:   near(once(updateMember)),
	opMemberRemove:   once(removeMember),
	opMemberLeave:    once(leave),
	opRenameBegin:    once(beginRename),
	opRenameApply:    once(applyRename),
	opRenameEnd:      once(endRename),
	opRenameDrop:     once(dropRename),
	opMessagePost:    near(once(postMessage)),
	opDeliveryMark:   near(again(markDeliveries)),
	opEvent:          once(appendEvent),
	opFileLeaseTake:  once(takeFileLease),
	opFileLeaseDrop:  once(dropFileLeases),
	opTouchedSet:     again(setTouched),
	opOverlapTell:    once(tellOverlap),
	opMergesAdd:      once(enqueueMerges),
	opMergesMove:     once(moveMerges),
	opSettingPut:     again(putSetting),
	opSettingRevise:  once(reviseSetting),
	opPlace:          again(setPlace),

	opTaskCompleteReviewed: once(completeReviewed),
	opTaskCompleteVerified: once(completeVerified),
	opVerifyBegin:          once(beginVerification),
	opVerifyAbandon:        again(abandonVerification),
	opVerifyEnd:            once(endVerification),
	opApprovalAsk:          once(askApproval),
	opApprovalAnswer:       once(answerApproval),
	opIntentFinish:         once(finishIntent),
	opAutoClaim:            once(setAutoClaim),
	opStranded:             once(setStranded),
	opRunClose:             once(closeRun),
	opTaskReassign:         once(reassignTask),
	opTasksOffer:           once(offerTasks),
	opTasksImport:          once(importTasks),
	opPrune:                once(prune),
	opRepair:               once(repairLedger),

	opSpecPut:       once(putSpec),
	opSpecDelete:    once(deleteSpec),
	opSessionOpen:   once(openSession),
	opSessionUpdate: once(updateSession),
	opSessionClose:  once(closeSession),
	opSessionTakeIn: near(once(takeIn)),
	opTurnQueue:     near(once(queueTurn)),
	opTurnClaim:     near(once(claimTurn)),
	opTurnNote:      near(again(noteTurn)),
	opTurnYield:     near(again(yieldTurn)),
	opTurnResume:    near(again(resumeTurn)),
	opTurnRenew:     near(again(renewTurns)),
	opTurnCancel:    once(cancelTurn),
	opTurnAnswer:    near(once(answerTurn)),
	opTurnEnd:       near(once(endTurn)),
	opTurnSteer:     near(once(steerTurn)),
	opTurnRecover:   once(recoverTurns),
	opCallBegin:     near(once(beginCall)),
	opCallsEnd:      near(once(endCalls)),

	opCommentPut:    once(putDraft),
	opCommentAnswer: once(answerComment),
	opRoundSend:     once(sendRound),
	opFileReviewed:  again(markReviewed),

	opMirror:       again(mirror),
	opMirrorMember: once(mirrorMember),
	opMirrorTask:   once(mirrorTask),
	opMirrorMail:   once(mirrorMail),
}
