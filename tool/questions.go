package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// withAnswers adds the answers to a permission request's questions to the input of its tool:
// {"answers": {QUESTION: ANSWER}}. An approval without them is refused: the agent would continue
// to wait.
func (in AnswerIn) withAnswers(a ledger.Approval) (AnswerIn, error) {
	var asked struct {
		Questions []team.Question `json:"questions"`
	}
	if a.Kind == ledger.ApprovePermission && len(a.Payload) > 0 {
		if err := json.Unmarshal(a.Payload, &asked); err != nil {
			return in, fmt.Errorf("read request %d: %w", a.ID, err)
		}
	}
	switch {
	case len(in.Answers) > 0 && (!in.Approve || len(asked.Questions) == 0):
		return in, team.Errorf(team.CodeInvalid, "%s %d contains no question, so it takes no answers", a.Kind, a.ID).WithHint("leave the answers out")
	case len(in.Answers) > 0 && len(in.UpdatedInput) > 0:
		return in, team.Errorf(team.CodeInvalid, "answers and an updated input exclude each other")
	case !in.Approve || len(asked.Questions) == 0 || len(in.UpdatedInput) > 0:
		return in, nil
	}
	texts := make([]string, len(asked.Questions))
	answers := make(map[string]string, len(asked.Questions))
	for i, q := range asked.Questions {
		texts[i] = q.String()
		if i < len(in.Answers) {
			answers[q.Text] = in.Answers[i]
		}
	}
	if len(in.Answers) != len(asked.Questions) {
		return in, team.Errorf(team.CodeInvalid, "%s %d asks %d question(s), but got %d answer(s): %s", a.Kind, a.ID,
			len(asked.Questions), len(in.Answers), strings.Join(texts, " ")).
			WithReason(team.ReasonQuestion).WithHint("--answer TEXT, once for each, or reject it with --feedback")
	}
	for i, text := range in.Answers {
		if strings.TrimSpace(text) == "" {
			return in, team.Errorf(team.CodeInvalid, "the answer to %q is empty", texts[i])
		}
	}
	var err error
	in.UpdatedInput, err = json.Marshal(map[string]any{"answers": answers})
	return in, err
}
