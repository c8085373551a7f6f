package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/teamctl/teamctl/team"
)

const (
	verifyCols = `id, task, attempt, session, name, command, verifyBy, result, reviewed, state, generation, place, exitCode, error, createdAt, endedAt`

	sqlVerifyTodo = `SELECT ` + verifyCols + ` FROM verifications INDEXED BY idx_verifications_todo
		WHERE state = 'open' OR generation <> '' ORDER BY id`
	sqlVerifyGet = `SELECT ` + verifyCols + ` FROM verifications WHERE id = ?`
	sqlVerifyPut = `INSERT INTO verifications(task, attempt, session, name, command, verifyBy, result, reviewed, state, createdAt, endedAt)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`
	// The latest result of a command in an attempt.
	sqlVerifyPassed = `SELECT state FROM verifications WHERE task = ? AND attempt = ? AND command = ? ORDER BY id DESC LIMIT 1`
	sqlVerifyBegin  = `UPDATE verifications SET generation = ?, place = ? WHERE id = ? AND state = 'open' AND generation = ''`
	sqlVerifyEnd    = `UPDATE verifications SET state = ?, generation = '', place = '', exitCode = ?, error = ?, endedAt = ?
		WHERE id = ? AND state = 'open' AND generation = ?`
	sqlVerifyGone = `UPDATE verifications SET generation = '', place = '' WHERE id = ? AND generation = ?`
	sqlVerifyDrop = `UPDATE verifications SET state = 'dropped', endedAt = ? WHERE id = ? AND state = 'open'`

	sqlTaskVerify    = `UPDATE tasks SET status = 'in_progress', startedAt = coalesce(startedAt, ?), verification = ?, review = NULL WHERE id = ?`
	sqlMessagesAfter = `SELECT id FROM messages WHERE seq > ? ORDER BY seq`

	sqlVerifyOver = `UPDATE tasks SET verification = NULL WHERE id = ?`
	// A longer lease on the owner's tasks (the bridge's claims) applies here
	// too.
	sqlVerifyBack = `UPDATE tasks SET verification = NULL, leaseUntil = max(coalesce(leaseUntil, 0), ?) WHERE id = ?`
)

// VerifyState is the state of a verification.
type VerifyState string

// States of a verification. It is dropped if its task was released, given up,
// deleted or got another command before there was a result.
const (
	VerifyOpen    VerifyState = "open"
	VerifyPassed  VerifyState = "passed"
	VerifyFailed  VerifyState = "failed"
	VerifyDropped VerifyState = "dropped"
)

// Verification is one verification of the work on a task.
type Verification struct {
	ID      int64  `json:"id"`
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Session string `json:"session"` // of the owner of the work
	Name    string `json:"name"`
	Command string `json:"command"`
	By      string `json:"verifyBy"` // author of the command
	Result  Result `json:"result"`   // the owner's report of the task
	// Reviewed means that no review follows, because the work was completed by
	// a person or approved by the reviewer.
	Reviewed bool        `json:"reviewed,omitempty"`
	State    VerifyState `json:"state"`
	// Generation identifies the running processes, and Place is their control
	// group. They are set from before the first process starts until the last
	// has exited, even if the result is no longer awaited.
	Generation string `json:"generation,omitempty"`
	Place      string `json:"place,omitempty"`
	ExitCode   int    `json:"exitCode,omitempty"`
	Error      string `json:"error,omitempty"`
	CreatedAt  int64  `json:"createdAt"`
	EndedAt    int64  `json:"endedAt,omitempty"`
}

// VerifyEnd is the result of a verification.
type VerifyEnd struct {
	ID         int64  `json:"id"`
	Generation string `json:"generation"` // the generation with which it was begun
	Passed     bool   `json:"passed"`
	// Gone means that the owner's worktree no longer exists, so the owner
	// cannot continue. The task becomes available to all.
	Gone     bool   `json:"gone,omitempty"`
	ExitCode int    `json:"exitCode,omitempty"`
	Why      string `json:"why,omitempty"`  // of a failure, one line: "exit 1"
	Tail     string `json:"tail,omitempty"` // the end of its output, as text
	Log      string `json:"log,omitempty"`  // path of the complete output
}

// Verified is what EndVerification has changed.
type Verified struct {
	// Counts is false if the result belongs to an older attempt, another owner,
	// a task that was changed, or another run of the command: then nothing has
	// changed.
	Counts bool     `json:"counts"`
	Task   Task     `json:"task"`
	Ready  []string `json:"ready"` // ids of the tasks that became ready
	// Mail lists the messages posted with it: a failure to the owner, a review
	// to reviewers, a completion to the lead. The caller mails them.
	Mail []Mail `json:"mail,omitempty"`
}

// Mail is one message with its deliveries.
type Mail struct {
	Message    Message    `json:"message"`
	Deliveries []Delivery `json:"deliveries"`
}

// CompleteVerified is Complete by an owner that has itself run the command
// successfully in its worktree. A task whose command has changed is verified
// like any other.
func (l *Ledger) CompleteVerified(ctx context.Context, ref TaskRef, res Result, command string) (ready []string, err error) {
	return write[[]string](ctx, l, opTaskCompleteVerified, verifiedArgs{endArgs{ref, res}, command})
}

// Unverified returns the verifications that need action: the open ones, and
// those that may have processes left. Oldest first.
func (l *Ledger) Unverified(ctx context.Context) ([]Verification, error) {
	return read(ctx, l.db, "read verifications", scanVerification, sqlVerifyTodo)
}

// BeginVerification records the generation of a verification's processes before
// the first of them starts. A verification that is no longer awaited, or that
// was begun and not ended, is CodeConflict.
func (l *Ledger) BeginVerification(ctx context.Context, id int64, generation, place string) error {
	_, err := write[none](ctx, l, opVerifyBegin, verifyBegin{id, generation, place})
	return err
}

// AbandonVerification records that no process of this generation is left, and
// that there is no result: an open verification can be begun again.
func (l *Ledger) AbandonVerification(ctx context.Context, id int64, generation string) error {
	_, err := write[none](ctx, l, opVerifyAbandon, verifyBegin{ID: id, Generation: generation})
	return err
}

// EndVerification records the result of a verification, none of whose processes
// is left. If it has passed, the task goes to its review or is completed;
// otherwise it stays in_progress and [team.SystemName] notifies its owner. The
// task of a built-in worker fails instead, because workers do not read
// messages; the task of an owner that has ended or left becomes pending.
func (l *Ledger) EndVerification(ctx context.Context, in VerifyEnd) (Verified, error) {
	return write[Verified](ctx, l, opVerifyEnd, verifyEnd{in, team.NewUUID()})
}

type verifiedArgs struct {
	endArgs
	Command string `json:"command"`
}

type verifyBegin struct {
	ID         int64  `json:"id"`
	Generation string `json:"generation"`
	Place      string `json:"place,omitempty"`
}

type verifyEnd struct {
	VerifyEnd
	MessageID string `json:"messageId"`
}

// handIn processes work reported as done: it is verified, then reviewed, then
// completed.
func (t *tx) handIn(task Task, res Result, reviewed bool) ([]string, error) {
	if waits, err := t.toVerify(task, res, reviewed); waits || err != nil {
		return []string{}, err
	}
	if !reviewed {
		if waits, err := t.toReview(task, res); waits || err != nil {
			return []string{}, err
		}
	}
	return t.complete(task, res)
}

// toVerify starts a verification of a task; it returns false if the task has no
// command that may run, or its command has passed in this attempt.
func (t *tx) toVerify(task Task, res Result, reviewed bool) (bool, error) {
	if task.Verify == "" || task.VerifyBy == "" {
		return false, nil
	}
	last, _, err := value[VerifyState](t, sqlVerifyPassed, task.ID, task.Attempt, task.Verify)
	if err != nil || last == VerifyPassed {
		return false, err
	}
	id, err := t.putVerification(task, res, reviewed, VerifyOpen)
	if err != nil {
		return false, err
	}
	if _, err := t.exec(sqlTaskVerify, t.now, id, task.ID); err != nil {
		return false, err
	}
	return true, t.taskEvent(team.EventTaskVerify, orDefault(task.OwnerName, task.Owner), task.ID, task.Status, team.TaskInProgress,
		verifyData{Verification: id, Attempt: task.Attempt, Command: task.Verify, By: task.VerifyBy})
}

func (t *tx) putVerification(task Task, res Result, reviewed bool, state VerifyState) (int64, error) {
	ended := int64(0)
	if state != VerifyOpen {
		ended = t.now
	}
	id, _, err := value[int64](t, sqlVerifyPut, task.ID, task.Attempt, task.Owner, orDefault(task.OwnerName, task.Owner), task.Verify,
		task.VerifyBy, mustJSON(res), reviewed, state, t.now, ended)
	t.wrote = true
	return id, err
}

// verifyData is the data of a verification's events.
type verifyData struct {
	Verification int64  `json:"verification"`
	Attempt      int    `json:"attempt"`
	Command      string `json:"command"`
	By           string `json:"by,omitempty"`
	ExitCode     int    `json:"exitCode,omitempty"`
	Why          string `json:"why,omitempty"`
	Log          string `json:"log,omitempty"`
}

func completeVerified(t *tx, a verifiedArgs) ([]string, error) {
	task, err := t.fenced(a.TaskRef)
	if err != nil {
		return nil, err
	}
	if a.Command != "" && a.Command == task.Verify {
		id, err := t.putVerification(task, a.Result, false, VerifyPassed)
		if err != nil {
			return nil, err
		}
		err = t.taskEvent(team.EventTaskVerified, task.OwnerName, task.ID, task.Status, task.Status,
			verifyData{Verification: id, Attempt: task.Attempt, Command: task.Verify, By: task.VerifyBy})
		if err != nil {
			return nil, err
		}
	}
	return t.handIn(task, a.Result, false)
}

// notVerifying returns an error for operations of an owner that are not allowed
// during the verification of its work.
func notVerifying(task Task) error {
	if task.Verification == 0 {
		return nil
	}
	return team.Errorf(team.CodeConflict, "task %s is being verified", task.ID).WithReason(team.ReasonVerifying).
		WithHint("wait: its owner is notified if it fails; teamctl task release " + task.ID + " cancels it")
}

// verifyAgain handles a change of the command while it runs: the result of the
// old one no longer counts.
func (t *tx) verifyAgain(task Task) error {
	v, err := t.verification(task.Verification)
	if err != nil {
		return err
	}
	if _, err := t.exec(sqlVerifyDrop, t.now, v.ID); err != nil {
		return err
	}
	if _, err := t.exec(sqlVerifyOver, task.ID); err != nil {
		return err
	}
	task.Verification = 0
	_, err = t.handIn(task, v.Result, v.Reviewed)
	return err
}

func beginVerification(t *tx, a verifyBegin) (none, error) {
	v, err := t.verification(a.ID)
	if err != nil {
		return none{}, err
	}
	n, err := t.exec(sqlVerifyBegin, a.Generation, a.Place, a.ID)
	if err == nil && n == 0 {
		err = team.Errorf(team.CodeConflict, "verification %d is %s, or already running", v.ID, v.State).WithReason(team.ReasonBadStatus)
	}
	if err != nil {
		return none{}, err
	}
	return none{}, t.taskEvent(team.EventTaskVerifying, "", v.Task, team.TaskInProgress, team.TaskInProgress,
		verifyData{Verification: v.ID, Attempt: v.Attempt, Command: v.Command, By: v.By})
}

func abandonVerification(t *tx, a verifyBegin) (none, error) {
	_, err := t.exec(sqlVerifyGone, a.ID, a.Generation)
	return none{}, err
}

func endVerification(t *tx, a verifyEnd) (out Verified, err error) {
	out.Ready = []string{}
	v, err := t.verification(a.ID)
	if err != nil {
		return out, err
	}
	state, text := VerifyFailed, a.Why
	if a.Tail != "" {
		text += "\n" + a.Tail
	}
	if a.Passed {
		state, text = VerifyPassed, ""
	}
	n, err := t.exec(sqlVerifyEnd, state, a.ExitCode, text, t.now, a.ID, a.Generation)
	if err != nil {
		return out, err
	}
	if n == 0 {
		_, err := t.exec(sqlVerifyGone, a.ID, a.Generation)
		return out, err
	}
	task, err := t.task(v.Task)
	if err != nil {
		return out, err
	}
	if task.Verification != v.ID { // an open verification always has its task
		return out, fmt.Errorf("task %s waits for verification %d, not %d", task.ID, task.Verification, v.ID)
	}
	out.Counts = true
	mailed, _, err := value[int64](t, sqlLastMessage)
	if err != nil {
		return out, err
	}
	what := team.EventTaskVerifyFailed
	if a.Passed {
		what = team.EventTaskVerified
	}
	err = t.taskEvent(what, "", task.ID, task.Status, task.Status, verifyData{Verification: v.ID, Attempt: v.Attempt,
		Command: v.Command, By: v.By, ExitCode: a.ExitCode, Why: a.Why, Log: a.Log})
	if err != nil {
		return out, err
	}
	if a.Passed {
		if _, err := t.exec(sqlVerifyOver, task.ID); err != nil {
			return out, err
		}
		task.Verification = 0
		out.Ready, err = t.handIn(task, v.Result, v.Reviewed)
	} else {
		err = t.verifyFailed(a, v, task)
	}
	if err != nil {
		return out, err
	}
	if out.Mail, err = t.mailSince(mailed); err != nil {
		return out, err
	}
	out.Task, err = t.task(task.ID)
	return out, err
}

// verifyFailed returns a task to its owner, or to all.
func (t *tx) verifyFailed(a verifyEnd, v Verification, task Task) error {
	m, err := t.memberBySession(task.Owner)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return err
	}
	there := err == nil && m.RemovedAt == 0 && (m.Name == team.LeadName || team.KindOf(m.Spec.Agent).External || m.Observed.Alive())
	switch {
	case a.Gone || !there:
		return t.free(task, "", "verify failed: "+a.Why)
	case team.KindOf(m.Spec.Agent).Worker:
		res := v.Result
		res.ExitCode, res.Error = a.ExitCode, "verify failed: "+a.Why
		if a.Tail != "" {
			res.Error += "\n" + a.Tail
		}
		return t.fail(task, res)
	}
	if _, err := t.exec(sqlVerifyBack, t.now+Lease.Milliseconds(), task.ID); err != nil {
		return err
	}
	run, err := t.run()
	if team.ReasonOf(err) == team.ReasonTeamNotFound {
		return nil // no messages without a run
	}
	if err != nil {
		return err
	}
	_, err = t.insertMessage(Message{ID: a.MessageID, Run: run.ID, Kind: team.KindInfo, From: team.SystemName, To: m.Name,
		IdemKey: "verify:" + itoa(v.ID), Text: verifyText(a.VerifyEnd, v), Summary: "task " + task.ID + " did not pass its verification", At: t.now},
		[]Member{m})
	return err
}

// mailSince returns the messages that this transaction has posted after a
// message.
func (t *tx) mailSince(seq int64) (out []Mail, err error) {
	ids, err := column[string](t, sqlMessagesAfter, seq)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var m Mail
		if m.Message, _, err = t.message(sqlMessageGet, id); err != nil {
			return nil, err
		}
		if m.Deliveries, err = t.deliveries(id); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func verifyText(a VerifyEnd, v Verification) string {
	text := fmt.Sprintf("Task #%s is not completed: its verification failed (%s): %s\n"+
		"It is still yours and in progress. Put it right and complete it again (TaskComplete with task_id %q, or teamctl task complete %s).",
		v.Task, a.Why, v.Command, v.Task, v.Task)
	if a.Log != "" {
		text += "\nAll of its output is in " + a.Log + "."
	}
	if a.Tail != "" {
		text += "\nThe end of its output:\n" + a.Tail
	}
	return text
}

func (t *tx) verification(id int64) (v Verification, err error) {
	found, err := t.one(sqlVerifyGet, func(r *sql.Rows) (err error) {
		v, err = scanVerification(r)
		return err
	}, id)
	if err == nil && !found {
		err = team.Errorf(team.CodeNotFound, "no verification %d", id).WithReason(team.ReasonVerificationNotFound)
	}
	return v, err
}

func scanVerification(r *sql.Rows) (v Verification, err error) {
	var result string
	if err := r.Scan(&v.ID, &v.Task, &v.Attempt, &v.Session, &v.Name, &v.Command, &v.By, &result, &v.Reviewed, &v.State,
		&v.Generation, &v.Place, &v.ExitCode, &v.Error, &v.CreatedAt, &v.EndedAt); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(result), &v.Result)
}
