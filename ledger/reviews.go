package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

const (
	// An active reviewer is on the roster, and its process is wanted and has
	// not failed, or it is a program that has joined. No member reviews
	// its own work.
	sqlReviewers = `SELECT name FROM members WHERE removedAt IS NULL AND teamRole = 'reviewer' AND sessionKey <> ?
		AND (json_extract(spec, '$.agent') = '` + team.AgentExternal + `'
			OR desired = 'running' AND observed NOT IN ('failed', 'completed', 'killed'))
		ORDER BY joinedAt, rowid`
	sqlTaskReview = `UPDATE tasks SET status = 'in_progress', startedAt = coalesce(startedAt, ?), review = ?, leaseUntil = NULL WHERE id = ?`
	sqlTaskBack   = `UPDATE tasks SET status = 'pending', owner = ?, ownerName = ?, claimedAt = NULL, startedAt = NULL, completedAt = NULL,
		leaseUntil = NULL, result = NULL, notBefore = 0, review = NULL, metadata = ? WHERE id = ?`
	sqlReviewOver = `UPDATE tasks SET review = NULL WHERE id = ?`
)

// CompleteReviewed is Complete by a caller whose result needs no review. A
// verification command still runs.
func (l *Ledger) CompleteReviewed(ctx context.Context, ref TaskRef, res Result) (ready []string, err error) {
	return write[[]string](ctx, l, opTaskCompleteReviewed, endArgs{ref, res})
}

func completeReviewed(t *tx, a endArgs) ([]string, error) {
	task, err := t.fencedFor(a.TaskRef, true)
	if err != nil {
		return nil, err
	}
	if task.Review != 0 { // the caller's decision is the review
		ap, err := t.approval(task.Review)
		if err != nil {
			return nil, err
		}
		if err := t.settleApproval(&ap, ApprovalApproved, t.who, "completed by "+t.who); err != nil {
			return nil, err
		}
	}
	if err := notVerifying(task); err != nil {
		return nil, err
	}
	return t.handIn(task, a.Result, true)
}

// toReview submits a completed task for review; it returns false if there are
// no reviewers.
func (t *tx) toReview(task Task, res Result) (bool, error) {
	reviewers, err := column[string](t, sqlReviewers, task.Owner)
	if err != nil || len(reviewers) == 0 {
		return false, err
	}
	name := orDefault(task.OwnerName, task.Owner)
	ap, err := t.putApproval(Approval{
		RequestID: fmt.Sprintf("review-%d@task-%s-%d", t.now, task.ID, task.Attempt), Kind: ApproveReview,
		Session: task.Owner, Name: name, Answerer: string(team.RoleReviewer), Task: task.ID, Attempt: task.Attempt,
		Subject: fmt.Sprintf("task %s: %s", task.ID, task.Subject), Payload: json.RawMessage(mustJSON(res)),
	})
	if err != nil {
		return false, err
	}
	if _, err := t.exec(sqlTaskReview, t.now, ap.ID, task.ID); err != nil {
		return false, err
	}
	err = t.taskEvent(team.EventTaskReview, name, task.ID, task.Status, team.TaskInProgress, reviewData{ap.ID, reviewers})
	if err != nil {
		return false, err
	}
	for _, r := range reviewers {
		text := fmt.Sprintf("Task %s (%s) is done and waits for a review: %s\nteamctl approvals approve %d, or teamctl approvals reject %d --feedback TEXT",
			task.ID, task.Subject, orDefault(res.Summary, "no summary"), ap.ID, ap.ID)
		if err := t.tell(name, r, ap.RequestID, text, "task "+task.ID+" waits for a review"); err != nil {
			return false, err
		}
	}
	return true, nil
}

type reviewData struct {
	Approval  int64    `json:"approval"`
	Reviewers []string `json:"reviewers"`
}

// tell posts a system note in a member's name; nothing is sent if the sender is
// the recipient, or the recipient is unknown.
func (t *tx) tell(from, to, request, text, summary string) error {
	n := NewMessage{Kind: team.KindInfo, From: from, To: to, RequestID: request, Text: text, Summary: summary}
	_, err := t.approvalMail(n, team.NewUUID())
	if team.ReasonOf(err) == team.ReasonSelfSend || team.ReasonOf(err) == team.ReasonMemberNotFound {
		return nil
	}
	return err
}

// followReview completes an approved task and returns any other to its owner,
// with the feedback in metadata.review.
func (t *tx) followReview(ap Approval) error {
	task, err := t.task(ap.Task)
	if team.IsCode(err, team.CodeNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil || task.Review != ap.ID {
		return err
	}
	if ap.State == ApprovalApproved {
		var res Result
		if len(ap.Payload) > 0 {
			if err := json.Unmarshal(ap.Payload, &res); err != nil {
				return fmt.Errorf("read the result of task %s: %w", task.ID, err)
			}
		}
		_, err := t.handIn(task, res, true) // it may have got another command meanwhile
		return err
	}
	note := mustJSON(map[string]reviewNote{"review": {ap.Feedback, ap.AnsweredBy, t.now, ap.Attempt}})
	meta, err := mergeMetadata(task.Metadata, json.RawMessage(note))
	if err != nil {
		return err
	}
	owner, name := task.Owner, task.OwnerName
	m, err := t.memberBySession(owner)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	if err != nil || m.RemovedAt != 0 || m.over() {
		owner, name = "", "" // available to all
	}
	if _, err := t.exec(sqlTaskBack, orNull(owner), orNull(name), string(meta), task.ID); err != nil {
		return err
	}
	return t.taskEvent(team.EventTaskSentBack, ap.AnsweredBy, task.ID, task.Status, team.TaskPending,
		releaseData{task.OwnerName, task.Attempt, "review: " + ap.Feedback})
}

// over reports whether a supervised member has ended for good: a task assigned
// to it would wait for a start that is not requested.
func (m Member) over() bool {
	ended := m.Observed.Terminal() || m.Observed == team.Exited && m.Desired == team.WantStopped
	return ended && m.Name != team.LeadName && !team.KindOf(m.Spec.Agent).External
}

type reviewNote struct {
	Feedback string `json:"feedback"`
	By       string `json:"by"`
	At       int64  `json:"at"`
	Attempt  int    `json:"attempt"`
}
