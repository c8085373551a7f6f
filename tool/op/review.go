package op

import (
	"context"

	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

func reviewOps() []Op {
	review := []tool.Operation{tool.OpReview}
	return []Op{
		with(Op{Name: "ReviewShow", Verb: "review show", ReadOnly: true, Idempotent: true}, reviewShow),
		with(Op{Name: "ReviewAdd", Verb: "review add", Gates: review}, reviewAdd),
		with(Op{Name: "ReviewSend", Verb: "review send", Gates: review}, reviewSend),
		with(Op{Name: "ReviewAnswer", Verb: "review answer", Idempotent: true}, reviewAnswer),
	}
}

// ReviewShowIn names the member whose changes the comments are about.
type ReviewShowIn struct {
	TeamRef
	Member string `json:"member,omitempty" jsonschema:"Name of the member whose changes they are about; all that have comments if left out."`
	Plan   string `json:"plan,omitempty" jsonschema:"Request id or number of a plan instead: the comments on its lines."`
}

// ReviewShowOut has the comments by member.
type ReviewShowOut struct {
	Reviews []tool.Review `json:"reviews"`
}

func reviewShow(ctx context.Context, s *Session, in ReviewShowIn) (ReviewShowOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ReviewShowOut, error) {
		if in.Plan != "" {
			if in.Member != "" {
				return ReviewShowOut{}, team.Errorf(team.CodeInvalid, "either a member or a plan")
			}
			one, err := t.PlanComments(ctx, c, in.Plan)
			return ReviewShowOut{[]tool.Review{one}}, err
		}
		list, err := t.ReviewShow(ctx, c, in.Member)
		if list == nil {
			list = []tool.Review{}
		}
		return ReviewShowOut{list}, err
	})
}

// ReviewAddIn is a comment that is written, changed or deleted.
type ReviewAddIn struct {
	TeamRef
	Member   string `json:"member,omitempty" jsonschema:"Name of the member whose changes it is about."`
	Plan     string `json:"plan,omitempty" jsonschema:"Request id or number of the plan that it is about, instead of member and file."`
	File     string `json:"file,omitempty" jsonschema:"Path of the file in the repository. It may be left out where comment names a draft."`
	Lines    string `json:"lines,omitempty" jsonschema:"The line or lines, counted from 1: 41 or 40-44; the whole file if left out."`
	Old      bool   `json:"old,omitempty" jsonschema:"The lines are those that the member has removed, counted as they were before."`
	Text     string `json:"text,omitempty" jsonschema:"The comment. Of a draft that comment names, an empty one deletes it."`
	Comment  string `json:"comment,omitempty" jsonschema:"A comment of yours that was not sent yet, 3.2 or on a plan 2, to change it."`
	Reviewed *bool  `json:"reviewed,omitempty" jsonschema:"Instead of a comment: marks the file as reviewed until it changes, or takes the mark away."`
}

// ReviewOut is one comment.
type ReviewOut struct {
	Success bool               `json:"success"`
	Comment tool.ReviewComment `json:"comment"`
}

func reviewAdd(ctx context.Context, s *Session, in ReviewAddIn) (ReviewOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ReviewOut, error) {
		x, err := t.ReviewAdd(ctx, c, tool.ReviewAddIn{
			Member: in.Member, File: in.File, Lines: in.Lines, Old: in.Old, Text: in.Text, Comment: in.Comment, Reviewed: in.Reviewed, Plan: in.Plan,
		})
		return ReviewOut{err == nil, x}, err
	})
}

// ReviewSendIn names the member that gets the comments.
type ReviewSendIn struct {
	TeamRef
	Member string `json:"member" jsonschema:"Name of the member whose changes they are about."`
	Task   bool   `json:"task,omitempty" jsonschema:"Make a task of the member of them, rather than a message."`
}

func reviewSend(ctx context.Context, s *Session, in ReviewSendIn) (tool.SentReview, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (tool.SentReview, error) {
		return t.ReviewSend(ctx, c, in.Member, in.Task)
	})
}

// ReviewAnswerIn answers one comment.
type ReviewAnswerIn struct {
	TeamRef
	Comment string `json:"comment" jsonschema:"Name of the comment, 3.2."`
	Handled bool   `json:"handled,omitempty" jsonschema:"true: what it asks for is done."`
	Text    string `json:"text,omitempty" jsonschema:"What was done; or, where it is not handled, the question to its author."`
	Member  string `json:"member,omitempty" jsonschema:"Whose changes the comment is about; yours if left out."`
}

func reviewAnswer(ctx context.Context, s *Session, in ReviewAnswerIn) (ReviewOut, error) {
	return on(ctx, s, in.TeamRef, func(t *tool.Team, c tool.Caller) (ReviewOut, error) {
		x, err := t.ReviewAnswer(ctx, c, tool.ReviewAnswerIn{Member: in.Member, Comment: in.Comment, Handled: in.Handled, Text: in.Text})
		return ReviewOut{err == nil, x}, err
	})
}
