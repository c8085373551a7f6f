package tool

import (
	"context"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// draftPrefix begins the names of the settings with drafts; the author and the purpose follow.
const draftPrefix = "draft "

// Draft is a text that its author has typed and not sent.
type Draft struct {
	Purpose string `json:"purpose"` // "message builder"
	// Approval is the number of the request that the text answers, 0 for none. The draft goes with it.
	Approval int64  `json:"approval,omitempty"`
	Text     string `json:"text"`
}

func draftsOf(c Caller) string { return draftPrefix + c.Name + " " }

// KeepDraft keeps a draft of the caller in place of the one with the same purpose. One without a
// text is removed. An answer to a request that is no longer pending is refused.
func (t *Team) KeepDraft(ctx context.Context, c Caller, d Draft) error {
	if err := t.may(ctx, c, OpSend); err != nil {
		return err
	}
	name := draftsOf(c) + d.Purpose
	if strings.TrimSpace(d.Text) == "" {
		there, err := t.Ledger.Setting(ctx, name, new(Draft))
		if err != nil || !there {
			return err
		}
		return t.as(c).Set(ctx, name, nil)
	}
	if d.Approval != 0 {
		a, err := t.Ledger.Approval(ctx, strconv.FormatInt(d.Approval, 10))
		switch {
		case err != nil:
			return err
		case a.State != ledger.ApprovalPending:
			return team.Errorf(team.CodeConflict, "%s %d of %s was already %s by %s", a.Kind, a.ID, a.Name, a.State, a.AnsweredBy).WithReason(team.ReasonAlreadyResolved)
		}
	}
	return t.as(c).Set(ctx, name, d)
}

// Drafts returns the texts of the caller's drafts by purpose, and removes those for requests that are
// no longer pending.
func (t *Team) Drafts(ctx context.Context, c Caller) (map[string]string, error) {
	names, err := t.Ledger.SettingNames(ctx, draftsOf(c))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		var d Draft
		there, err := t.Ledger.Setting(ctx, name, &d)
		if err != nil {
			return nil, err
		}
		if there && d.Approval != 0 {
			a, err := t.Ledger.Approval(ctx, strconv.FormatInt(d.Approval, 10))
			if err != nil && !team.IsCode(err, team.CodeNotFound) {
				return nil, err
			}
			if err != nil || a.State != ledger.ApprovalPending {
				d.Text = ""
				if err := t.KeepDraft(ctx, c, d); err != nil {
					return nil, err
				}
				continue
			}
		}
		if there {
			out[d.Purpose] = d.Text
		}
	}
	return out, nil
}
