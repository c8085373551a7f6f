package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// QuestionsOf returns the questions that an approval of a request must answer.
func QuestionsOf(a ledger.Approval) ([]team.Question, error) {
	if a.Kind != ledger.ApprovePermission || len(a.Payload) == 0 {
		return nil, nil
	}
	var asked struct {
		Questions []team.Question `json:"questions"`
	}
	if err := json.Unmarshal(a.Payload, &asked); err != nil {
		return nil, fmt.Errorf("read request %d: %w", a.ID, err)
	}
	return asked.Questions, nil
}

// withAnswers adds the answers to a permission request's questions to the input of its tool:
// {"answers": {QUESTION: ANSWER}}. An approval without them is refused: the agent would continue
// to wait.
func (in AnswerIn) withAnswers(a ledger.Approval) (AnswerIn, error) {
	asked, err := QuestionsOf(a)
	if err != nil {
		return in, err
	}
	switch {
	case len(in.Answers) > 0 && (!in.Approve || len(asked) == 0):
		return in, team.Errorf(team.CodeInvalid, "%s %d contains no question, so it takes no answers", a.Kind, a.ID).WithHint("leave the answers out")
	case len(in.Answers) > 0 && len(in.UpdatedInput) > 0:
		return in, team.Errorf(team.CodeInvalid, "answers and an updated input exclude each other")
	case !in.Approve || len(asked) == 0 || len(in.UpdatedInput) > 0:
		return in, nil
	}
	texts := make([]string, len(asked))
	answers := make(map[string]string, len(asked))
	for i, q := range asked {
		texts[i] = q.String()
		if i < len(in.Answers) {
			answers[q.Text] = in.Answers[i]
		}
	}
	if len(in.Answers) != len(asked) {
		return in, team.Errorf(team.CodeInvalid, "%s %d asks %d question(s), but got %d answer(s): %s", a.Kind, a.ID,
			len(asked), len(in.Answers), strings.Join(texts, " ")).
			WithReason(team.ReasonQuestion).WithHint("--answer TEXT, once for each, or reject it with --feedback")
	}
	for i, text := range in.Answers {
		if strings.TrimSpace(text) == "" {
			return in, team.Errorf(team.CodeInvalid, "the answer to %q is empty", texts[i])
		}
	}
	in.UpdatedInput, err = json.Marshal(map[string]any{"answers": answers})
	return in, err
}
