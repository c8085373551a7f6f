package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

const (
	commentCols = `session, round, number, author, path, first, last, old, quote, above, below, text, state, answer, at, answeredAt`

	sqlComments    = `SELECT ` + commentCols + ` FROM review_comments WHERE session = ? ORDER BY round, number`
	sqlCommentGet  = `SELECT ` + commentCols + ` FROM review_comments WHERE session = ? AND round = ? AND number = ?`
	sqlDrafts      = `SELECT ` + commentCols + ` FROM review_comments WHERE session = ? AND author = ? AND state = 'draft' ORDER BY number`
	sqlCommentDrop = `DELETE FROM review_comments WHERE session = ? AND round = ? AND number = ?`
	sqlCommentPut  = `INSERT OR REPLACE INTO review_comments(` + commentCols + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlRoundNext   = `SELECT 1 + max((SELECT coalesce(max(round), 0) FROM review_comments WHERE session = ?1), (SELECT coalesce(max(round), 0) FROM review_rounds WHERE session = ?1))`
	sqlNumberNext  = `SELECT 1 + coalesce(max(number), 0) FROM review_comments WHERE session = ? AND round = ?`

	roundCols   = `session, round, author, message, task, tip, at`
	sqlRounds   = `SELECT ` + roundCols + ` FROM review_rounds WHERE session = ? ORDER BY round`
	sqlRoundGet = `SELECT ` + roundCols + ` FROM review_rounds WHERE session = ? AND round = ?`
	sqlRoundPut = `INSERT INTO review_rounds(` + roundCols + `) VALUES (?, ?, ?, ?, ?, ?, ?)`

	sqlReviewed     = `SELECT path, hash FROM reviewed_files WHERE session = ? AND author = ?`
	sqlReviewedPut  = `INSERT OR REPLACE INTO reviewed_files(session, author, path, hash, at) VALUES (?, ?, ?, ?, ?)`
	sqlReviewedDrop = `DELETE FROM reviewed_files WHERE session = ? AND author = ? AND path = ?`
)

// CommentState is the state of a comment on a member's changes.
type CommentState string

// States of a comment. A draft has not been sent; asked is a comment that the member has
// answered with a question.
const (
	CommentDraft   CommentState = "draft"
	CommentOpen    CommentState = "open"
	CommentAsked   CommentState = "asked"
	CommentHandled CommentState = "handled"
)

// Anchor is the place of a comment: lines of a file as they were when it was written.
// First and Last are 0 for the file as a whole.
type Anchor struct {
	Path  string `json:"path"`
	First int    `json:"first,omitempty"` // from 1
	Last  int    `json:"last,omitempty"`
	Old   bool   `json:"old,omitempty"` // lines of the base, which the member has removed
	Quote string `json:"quote,omitempty"`
	Above string `json:"above,omitempty"` // some lines before the quote
	Below string `json:"below,omitempty"` // and after it
}

// Comment is a remark on the changes of a member, or on its plan.
type Comment struct {
	Anchor
	Session    string       `json:"session"` // of the member, or OnPlan
	Round      int          `json:"round"`   // 0 on a plan
	Number     int          `json:"number"`  // in the round, from 1
	Author     string       `json:"author"`
	Text       string       `json:"text"`
	State      CommentState `json:"state"`
	Answer     string       `json:"answer,omitempty"`
	At         int64        `json:"at"`
	AnsweredAt int64        `json:"answeredAt,omitempty"`
}

// Name is what the comment is called: "3.2" is the second of round 3, "2" the second on a plan.
func (c Comment) Name() string {
	if _, ok := planRequest(c.Session); ok {
		return strconv.Itoa(c.Number)
	}
	return fmt.Sprintf("%d.%d", c.Round, c.Number)
}

// planPrefix begins what stands for the session of a comment on a plan.
const planPrefix = "plan:"

// OnPlan is what stands for the session of comments on a plan: they belong to the request, which
// is answered once.
func OnPlan(requestID string) string { return planPrefix + requestID }

// planRequest is the reverse of OnPlan.
func planRequest(session string) (requestID string, ok bool) {
	return strings.CutPrefix(session, planPrefix)
}

// Where is the place of the comment: "cart.go:41", "cart.go:40-44", "cart.go".
func (a Anchor) Where() string {
	switch {
	case a.First == 0:
		return a.Path
	case a.Last > a.First:
		return fmt.Sprintf("%s:%d-%d", a.Path, a.First, a.Last)
	}
	return fmt.Sprintf("%s:%d", a.Path, a.First)
}

// Lines says which lines the comment is about: "line 41", "lines 40 to 44".
func (a Anchor) Lines() string {
	if a.Last > a.First {
		return fmt.Sprintf("lines %d to %d", a.First, a.Last)
	}
	return fmt.Sprintf("line %d", a.First)
}

// ParseCommentName is the reverse of Name.
func ParseCommentName(name string) (round, number int, err error) {
	a, b, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(name), "#"), ".")
	round, err1 := strconv.Atoi(a)
	number, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || round < 1 || number < 1 {
		return 0, 0, team.Errorf(team.CodeInvalid, "invalid comment %q: it has a round and a number, 3.2", name).WithHint("teamctl review show")
	}
	return round, number, nil
}

// Round is a set of comments that was sent to a member, as a message or as a task.
type Round struct {
	Session string `json:"session"`
	Round   int    `json:"round"`
	Author  string `json:"author"`
	Message string `json:"message,omitempty"` // its id
	Task    string `json:"task,omitempty"`    // its id
	Tip     string `json:"tip,omitempty"`     // commit of what the author saw
	At      int64  `json:"at"`
}

// Comments returns all comments on the changes of a member, or OnPlan, in order.
func (l *Ledger) Comments(ctx context.Context, session string) ([]Comment, error) {
	return read(ctx, l.db, "read the comments", scanComment, sqlComments, session)
}

// Rounds returns the rounds of comments that were sent to a member, in order.
func (l *Ledger) Rounds(ctx context.Context, session string) ([]Round, error) {
	return read(ctx, l.db, "read the rounds of comments", scanRound, sqlRounds, session)
}

// Reviewed returns the files of a member that an author has marked as reviewed, each with
// the hash of what was reviewed.
func (l *Ledger) Reviewed(ctx context.Context, session, author string) (map[string]string, error) {
	out := map[string]string{}
	_, err := read(ctx, l.db, "read the reviewed files", func(r *sql.Rows) (none, error) {
		var path, hash string
		err := r.Scan(&path, &hash)
		out[path] = hash
		return none{}, err
	}, sqlReviewed, session, author)
	return out, err
}

// PutDraft writes a comment that has not been sent. With Number 0 it is a new one; else its
// text and, where it has a path, its place replace those of that draft. One whose text is
// empty is deleted. One on a plan is refused once the plan was answered. Errors: CodeNotFound
// (comment_not_found, approval_not_found), CodeConflict (comment_sent, already_resolved).
func (l *Ledger) PutDraft(ctx context.Context, c Comment) (Comment, error) {
	return write[Comment](ctx, l, opCommentPut, c)
}

// RoundIn is a round of comments that is sent. It has exactly the Drafts, by number, with
// these texts; if there are others, nothing is sent.
type RoundIn struct {
	Session string         `json:"session"`
	Author  string         `json:"author"`
	Drafts  map[int]string `json:"drafts"`
	Tip     string         `json:"tip,omitempty"`
	Message *NewMessage    `json:"message"`
	// Task, if set, is made and assigned to the member; its id takes the place of Mark in
	// the message.
	Task *NewTask `json:"task,omitempty"`
	Mark string   `json:"mark,omitempty"`
}

// SentRound is a round that was sent, and its message.
type SentRound struct {
	Round      Round      `json:"round"`
	Message    *Message   `json:"message,omitempty"`
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// SendRound sends an author's drafts: they become open and their message or task is made,
// or neither. Errors: CodeConflict (drafts_changed), and those of Post.
func (l *Ledger) SendRound(ctx context.Context, in RoundIn) (SentRound, error) {
	return write[SentRound](ctx, l, opRoundSend, roundArgs{in, team.NewUUID()})
}

// CommentAnswer is a member's answer to a comment: it is handled, or the answer is a
// question. Message, if set, is posted with it.
type CommentAnswer struct {
	Session string      `json:"session"`
	Round   int         `json:"round"`
	Number  int         `json:"number"`
	Handled bool        `json:"handled"`
	Text    string      `json:"text,omitempty"`
	Message *NewMessage `json:"message,omitempty"`
}

// AnsweredComment is an answered comment and the message of the answer.
type AnsweredComment struct {
	Comment    Comment    `json:"comment"`
	Deliveries []Delivery `json:"deliveries,omitempty"`
}

// AnswerComment records the answer to a comment that was sent. The same answer again
// changes nothing. Errors: CodeNotFound (comment_not_found), CodeConflict (comment_draft).
func (l *Ledger) AnswerComment(ctx context.Context, in CommentAnswer) (AnsweredComment, error) {
	return write[AnsweredComment](ctx, l, opCommentAnswer, commentAnswerArgs{in, team.NewUUID()})
}

// ReviewedFile marks a file as reviewed; an empty hash takes the mark away.
type ReviewedFile struct {
	Session string `json:"session"`
	Author  string `json:"author"`
	Path    string `json:"path"`
	Hash    string `json:"hash,omitempty"`
}

// MarkReviewed marks a file of a member as reviewed.
func (l *Ledger) MarkReviewed(ctx context.Context, f ReviewedFile) error {
	_, err := write[none](ctx, l, opFileReviewed, f)
	return err
}

type roundArgs struct {
	RoundIn
	MessageID string `json:"messageId"`
}

type commentAnswerArgs struct {
	CommentAnswer
	MessageID string `json:"messageId"`
}

func (t *tx) comment(session string, round, number int) (c Comment, err error) {
	found, err := t.one(sqlCommentGet, func(r *sql.Rows) (err error) {
		c, err = scanComment(r)
		return err
	}, session, round, number)
	if err == nil && !found {
		err = team.Errorf(team.CodeNotFound, "no comment %d.%d", round, number).WithReason(team.ReasonCommentNotFound).WithHint("teamctl review show")
	}
	return c, err
}

func (t *tx) putComment(c Comment) error {
	_, err := t.exec(sqlCommentPut, c.Session, c.Round, c.Number, c.Author, c.Path, c.First, c.Last, c.Old, c.Quote, c.Above, c.Below,
		c.Text, string(c.State), c.Answer, c.At, c.AnsweredAt)
	return err
}

func (t *tx) drafts(session, author string) (out []Comment, err error) {
	err = t.each(sqlDrafts, func(r *sql.Rows) error {
		c, err := scanComment(r)
		out = append(out, c)
		return err
	}, session, author)
	return out, err
}

func putDraft(t *tx, in Comment) (Comment, error) {
	if in.Session == "" || in.Author == "" {
		return in, team.Errorf(team.CodeInvalid, "a comment needs a member and an author")
	}
	plan, onPlan := planRequest(in.Session)
	if onPlan {
		in.Round = 0
		if err := t.openPlan(plan); err != nil {
			return in, err
		}
	}
	c := in
	if in.Number != 0 {
		was, err := t.comment(in.Session, in.Round, in.Number)
		switch {
		case err != nil:
			return in, err
		case was.State != CommentDraft || was.Author != in.Author:
			return was, team.Errorf(team.CodeConflict, "comment %s of %s is %s", was.Name(), was.Author, was.State).WithReason(team.ReasonCommentSent)
		}
		if c = was; in.Path != "" {
			c.Anchor = in.Anchor
		}
		c.Text = in.Text
	}
	if strings.TrimSpace(c.Text) == "" {
		if in.Number != 0 {
			_, err := t.exec(sqlCommentDrop, c.Session, c.Round, c.Number)
			return c, err
		}
		return in, team.Errorf(team.CodeInvalid, "a comment needs a text")
	}
	if c.Path == "" || c.First < 0 || c.Last < c.First || c.First == 0 && c.Last != 0 {
		return in, team.Errorf(team.CodeInvalid, "a comment needs a file, and its lines are counted from 1")
	}
	if in.Number == 0 {
		list, err := t.drafts(in.Session, in.Author)
		if err != nil {
			return in, err
		}
		if onPlan {
			c.Round = 0
		} else if len(list) > 0 {
			c.Round = list[0].Round
		} else if c.Round, _, err = value[int](t, sqlRoundNext, in.Session); err != nil {
			return in, err
		}
		if c.Number, _, err = value[int](t, sqlNumberNext, in.Session, c.Round); err != nil {
			return in, err
		}
	}
	c.State, c.At, c.Answer, c.AnsweredAt = CommentDraft, t.now, "", 0
	return c, t.putComment(c)
}

// openPlan refuses a request that is not a plan, or is not pending.
func (t *tx) openPlan(requestID string) error {
	var a Approval
	found, err := t.one(sqlApprovalReq, func(r *sql.Rows) (err error) {
		a, err = scanApproval(r)
		return err
	}, requestID)
	switch {
	case err != nil:
		return err
	case !found:
		return errNoApproval(requestID)
	case a.Kind != ApprovePlan:
		return team.Errorf(team.CodeInvalid, "request %d is a %s: only the lines of a plan have comments", a.ID, a.Kind)
	case a.State != ApprovalPending:
		return team.Errorf(team.CodeConflict, "plan %d was already %s by %s", a.ID, a.State, a.AnsweredBy).WithReason(team.ReasonAlreadyResolved)
	}
	return nil
}

// theDrafts returns an author's drafts, and refuses if they are not those that the author has read.
func (t *tx) theDrafts(session, author string, read map[int]string) ([]Comment, error) {
	list, err := t.drafts(session, author)
	if err != nil {
		return nil, err
	}
	same := len(list) == len(read) && len(list) > 0
	for _, c := range list {
		same = same && read[c.Number] == c.Text
	}
	if !same {
		return nil, team.Errorf(team.CodeConflict, "the comments have changed meanwhile: nothing was sent").WithReason(team.ReasonDraftsChanged).
			WithHint("teamctl review show, then send again")
	}
	return list, nil
}

// sentDrafts records that drafts were sent.
func (t *tx) sentDrafts(list []Comment) error {
	for _, c := range list {
		c.State, c.At = CommentOpen, t.now
		if err := t.putComment(c); err != nil {
			return err
		}
	}
	return nil
}

func sendRound(t *tx, a roundArgs) (out SentRound, err error) {
	list, err := t.theDrafts(a.Session, a.Author, a.Drafts)
	if err != nil {
		return out, err
	}
	out.Round = Round{Session: a.Session, Round: list[0].Round, Author: a.Author, Tip: a.Tip, At: t.now}
	if a.Message == nil {
		return out, team.Errorf(team.CodeInvalid, "a round of comments needs its message")
	}
	message := *a.Message
	if a.Task != nil {
		if out.Round.Task, err = t.taskFor(a.Session, *a.Task); err != nil {
			return out, err
		}
		if a.Mark != "" {
			message.Text = strings.ReplaceAll(message.Text, a.Mark, out.Round.Task)
			message.Summary = strings.ReplaceAll(message.Summary, a.Mark, out.Round.Task)
		}
	}
	p, err := postMessage(t, postArgs{message, a.MessageID})
	if err != nil {
		return out, err
	}
	out.Round.Message, out.Message, out.Deliveries = p.Message.ID, &p.Message, p.Deliveries
	if err := t.sentDrafts(list); err != nil {
		return out, err
	}
	r := out.Round
	if _, err := t.exec(sqlRoundPut, r.Session, r.Round, r.Author, r.Message, r.Task, r.Tip, r.At); err != nil {
		return out, err
	}
	m, err := t.memberBySession(a.Session)
	if err != nil {
		return out, err
	}
	data := mustJSON(map[string]any{"round": r.Round, "comments": len(list), "message": r.Message, "task": r.Task})
	return out, t.event(Event{What: team.EventReviewSent, ID: m.Name, Data: json.RawMessage(data)})
}

func answerComment(t *tx, a commentAnswerArgs) (out AnsweredComment, err error) {
	c, err := t.comment(a.Session, a.Round, a.Number)
	if err != nil {
		return out, err
	}
	out.Comment = c
	if c.State == CommentDraft {
		return out, team.Errorf(team.CodeConflict, "comment %s was not sent yet", c.Name()).WithReason(team.ReasonCommentDraft)
	}
	state := CommentAsked
	if a.Handled {
		state = CommentHandled
	} else if strings.TrimSpace(a.Text) == "" {
		return out, team.Errorf(team.CodeInvalid, "a question needs a text")
	}
	if c.State == state && c.Answer == a.Text {
		return out, nil
	}
	before := c.State
	c.State, c.Answer, c.AnsweredAt = state, a.Text, t.now
	if err := t.putComment(c); err != nil {
		return out, err
	}
	if a.Message != nil {
		p, err := postMessage(t, postArgs{*a.Message, a.MessageID})
		if err != nil {
			return out, err
		}
		out.Deliveries = p.Deliveries
	}
	out.Comment = c
	what := team.EventReviewAsked
	if a.Handled {
		what = team.EventReviewHandled
	}
	return out, t.event(Event{What: what, ID: c.Name(), Before: string(before), After: string(state)})
}

func markReviewed(t *tx, f ReviewedFile) (none, error) {
	if f.Session == "" || f.Author == "" || f.Path == "" {
		return none{}, team.Errorf(team.CodeInvalid, "a reviewed file needs a member, an author and a path")
	}
	var err error
	if f.Hash == "" {
		_, err = t.exec(sqlReviewedDrop, f.Session, f.Author, f.Path)
	} else {
		_, err = t.exec(sqlReviewedPut, f.Session, f.Author, f.Path, f.Hash, t.now)
	}
	return none{}, err
}

func scanComment(r *sql.Rows) (c Comment, err error) {
	err = r.Scan(&c.Session, &c.Round, &c.Number, &c.Author, &c.Path, &c.First, &c.Last, &c.Old, &c.Quote, &c.Above, &c.Below,
		&c.Text, &c.State, &c.Answer, &c.At, &c.AnsweredAt)
	return c, err
}

func scanRound(r *sql.Rows) (x Round, err error) {
	err = r.Scan(&x.Session, &x.Round, &x.Author, &x.Message, &x.Task, &x.Tip, &x.At)
	return x, err
}
