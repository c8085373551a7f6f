package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A plan is Markdown, and comments on its lines go with its rejection, as one answer. Until then
// they are drafts in the ledger, and belong to the request: once that is answered, no draft is
// written or sent any more.

// planFile is what stands for the path of a comment on a plan.
const planFile = "plan"

// planLines returns the lines of a requested plan, which comments count from 1.
func planLines(a ledger.Approval) []string {
	var p struct {
		Content string `json:"plan_content"` // of a member
		Plan    string `json:"plan"`         // of an agent's program
	}
	if a.Kind != ledger.ApprovePlan || json.Unmarshal(a.Payload, &p) != nil {
		return nil
	}
	return split(strings.TrimRight(strings.ReplaceAll(p.Content+p.Plan, "\r\n", "\n"), "\n"))
}

// planAsked returns the request of a plan that the caller may answer, by its number or request id.
func (t *Team) planAsked(ctx context.Context, c Caller, id string) (ledger.Approval, error) {
	a, err := t.Ledger.Approval(ctx, strings.TrimPrefix(strings.TrimSpace(id), "#"))
	switch {
	case err != nil:
		return a, err
	case a.Kind != ledger.ApprovePlan:
		return a, team.Errorf(team.CodeInvalid, "request %d is a %s: only the lines of a plan have comments", a.ID, a.Kind)
	}
	return a, t.mayAnswer(ctx, c, a)
}

// planAdd writes a draft of a comment on a plan.
func (t *Team) planAdd(ctx context.Context, c Caller, in ReviewAddIn) (ReviewComment, error) {
	if in.Member != "" || in.File != "" || in.Old || in.Reviewed != nil {
		return ReviewComment{}, team.Errorf(team.CodeInvalid, "a comment on a plan has a line, but no member and no file")
	}
	if err := t.may(ctx, c, OpAnswer); err != nil {
		return ReviewComment{}, err
	}
	a, err := t.planAsked(ctx, c, in.Plan)
	if err != nil {
		return ReviewComment{}, err
	}
	d := ledger.Comment{Session: ledger.OnPlan(a.RequestID), Author: c.Name, Text: strings.TrimRight(in.Text, " \n")}
	if in.Comment != "" {
		if d.Number, err = strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(in.Comment), "#")); err != nil || d.Number < 1 {
			return ReviewComment{}, team.Errorf(team.CodeInvalid, "invalid comment %q: a comment on a plan has a number, 2", in.Comment).WithHint(showPlan(a))
		}
	} else if strings.TrimSpace(d.Text) == "" {
		return ReviewComment{}, team.Errorf(team.CodeInvalid, "a comment needs a text")
	}
	if in.Lines != "" || in.Comment == "" {
		first, last, err := parseLines(in.Lines)
		lines := planLines(a)
		switch {
		case err != nil:
			return ReviewComment{}, err
		case first == 0:
			return ReviewComment{}, team.Errorf(team.CodeInvalid, "which line of the plan the comment is about has to be said")
		case last > len(lines):
			return ReviewComment{}, team.Errorf(team.CodeNotFound, "plan %d of %s has %d lines", a.ID, a.Name, len(lines)).WithHint(fmt.Sprintf("teamctl approvals show %d", a.ID))
		}
		d.Anchor = quoted(ledger.Anchor{Path: planFile}, lines, first, last)
	}
	d, err = t.as(c).PutDraft(ctx, d)
	return onPlan(a, d), err
}

func showPlan(a ledger.Approval) string { return fmt.Sprintf("teamctl review show --plan %d", a.ID) }

// onPlan is a comment on a plan, which has Changed if its lines are not those of the plan.
func onPlan(a ledger.Approval, d ledger.Comment) ReviewComment {
	x := ReviewComment{Comment: d, Name: d.Name(), Member: a.Name, Plan: a.ID, Line: d.First}
	lines := planLines(a)
	if d.First < 1 || d.Last > len(lines) || strings.Join(lines[d.First-1:d.Last], "\n") != d.Quote {
		x.Line, x.Changed = 0, true
	}
	return x
}

// PlanComments returns the comments on a plan, by its number or request id. Drafts are shown to
// their author only.
func (t *Team) PlanComments(ctx context.Context, c Caller, id string) (Review, error) {
	a, err := t.Ledger.Approval(ctx, strings.TrimPrefix(strings.TrimSpace(id), "#"))
	if err != nil {
		return Review{}, err
	}
	out := Review{Member: a.Name, Plan: a.ID, Comments: []ReviewComment{}}
	if a.Kind != ledger.ApprovePlan {
		return out, nil
	}
	list, err := t.Ledger.Comments(ctx, ledger.OnPlan(a.RequestID))
	for _, d := range list {
		if d.State != ledger.CommentDraft || d.Author == c.Name {
			out.Comments = append(out.Comments, onPlan(a, d))
		}
	}
	return out, err
}

// planAnswer is what a rejection says in addition to its reason.
type planAnswer struct {
	drafts map[int]string // as the ledger has to have them
	file   string         // is to be written with text, if the comments are too long for a message
	text   string
}

// withComments adds the caller's comments on the plan to the reason of its rejection. Of a plan
// that was answered, they are those that went with the answer: who repeats one has said the same.
func (t *Team) withComments(ctx context.Context, c Caller, in AnswerIn) (AnswerIn, planAnswer, error) {
	var out planAnswer
	if !in.Comments {
		return in, out, nil
	}
	if in.Approve {
		return in, out, team.Errorf(team.CodeInvalid, "comments go with a rejection: what is approved is done as it was planned")
	}
	a, err := t.Ledger.Approval(ctx, in.ID)
	if err != nil || a.Kind != ledger.ApprovePlan {
		return in, out, err
	}
	all, err := t.PlanComments(ctx, c, in.ID)
	if err != nil {
		return in, out, err
	}
	state := ledger.CommentOpen
	if a.State == ledger.ApprovalPending {
		state = ledger.CommentDraft
	}
	var b strings.Builder
	drafts := map[int]string{}
	for _, x := range all.Comments {
		if x.Author != c.Name || x.State != state {
			continue
		}
		if x.Changed && state == ledger.CommentDraft {
			return in, out, team.Errorf(team.CodeConflict, "plan %d of %s has changed since comment %s was written: no answer was given", a.ID, a.Name, x.Name).
				WithReason(team.ReasonDraftsChanged).WithHint(showPlan(a))
		}
		drafts[x.Number] = x.Text
		fmt.Fprintf(&b, "\n\n%s. %s:\n", x.Name, x.Lines())
		for l := range strings.SplitSeq(x.Quote, "\n") {
			b.WriteString("> " + l + "\n")
		}
		b.WriteString(x.Text)
	}
	if len(drafts) == 0 {
		return in, out, nil
	}
	text, reason := b.String(), strings.TrimSpace(in.Feedback)
	if len(text) > reviewMost {
		out.text = strings.TrimSpace(text)
		out.file = t.reviewPath(fmt.Sprintf("%s-plan-%d", a.Name, a.ID), out.text)
		text = "\n\nThey are in the file " + out.file + ": read it."
	}
	if state == ledger.CommentDraft {
		out.drafts = drafts
	}
	in.Feedback = strings.TrimSpace(reason + "\n\n" + comments(len(drafts)) + " on the plan:" + text)
	return in, out, nil
}

// unsent returns how many comments the caller has written on a plan and not sent.
func (t *Team) unsent(ctx context.Context, c Caller, a ledger.Approval) (n int, err error) {
	list, err := t.Ledger.Comments(ctx, ledger.OnPlan(a.RequestID))
	for _, d := range list {
		if d.State == ledger.CommentDraft && d.Author == c.Name {
			n++
		}
	}
	return n, err
}
