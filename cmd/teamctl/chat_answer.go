package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// answer answers a request: text is its number, then the answer to its question or the feedback.
func (ch *chat) answer(ctx context.Context, approve bool, text string) error {
	word, rest, _ := strings.Cut(text, " ")
	if _, err := strconv.ParseInt(word, 10, 64); err != nil {
		ch.out.line("Usage: /approve N [ANSWER], or /reject N WHY. Use /approvals to list.")
		return nil
	}
	in := tool.AnswerIn{ID: word, Approve: approve, Feedback: strings.TrimSpace(rest)}
	if approve {
		a, err := ch.team.Ledger.Approval(ctx, word)
		if err != nil {
			return err
		}
		if in, err = typedAnswer(in, a); err != nil {
			return err
		}
	}
	p, err := ch.team.Answer(ctx, ch.caller, in)
	if err == nil {
		ch.out.line("%d is %s.", p.ID, p.State)
	}
	return err
}

// typedAnswer makes the text behind the number of a request the answer to its question, if it has
// one. A line has room for one answer, and a word that is not among the options may be a slip:
// other answers are left to the approve command.
func typedAnswer(in tool.AnswerIn, a ledger.Approval) (tool.AnswerIn, error) {
	asked, err := tool.QuestionsOf(a)
	if err != nil || len(asked) == 0 {
		return in, err
	}
	command := fmt.Sprintf("teamctl approvals approve %d --answer TEXT", a.ID)
	if len(asked) > 1 {
		return in, team.Errorf(team.CodeInvalid, "request %d asks %d questions, and /approve takes one answer", a.ID, len(asked)).
			WithReason(team.ReasonQuestion).WithHint(command + ", with one --answer for each question")
	}
	q, text := asked[0], in.Feedback
	if text == "" {
		return in, team.Errorf(team.CodeInvalid, "request %d asks: %s", a.ID, q).
			WithReason(team.ReasonQuestion).WithHint(fmt.Sprintf("/approve %d ANSWER", a.ID))
	}
	chosen, ok := choice(q, text)
	if !ok {
		return in, team.Errorf(team.CodeInvalid, "%q is not one of the options of request %d: %s", text, a.ID, q).
			WithReason(team.ReasonQuestion).WithHint(command + " takes other answers, too")
	}
	in.Answers, in.Feedback = []string{chosen}, ""
	return in, nil
}

// choice returns the option of a question that a text names, or the options where several may be
// chosen, in any case of letters; a question without options takes any text.
func choice(q team.Question, text string) (string, bool) {
	if len(q.Options) == 0 {
		return text, true
	}
	option := func(word string) (string, bool) {
		for _, o := range q.Options {
			if strings.EqualFold(strings.TrimSpace(o), strings.TrimSpace(word)) {
				return o, true
			}
		}
		return "", false
	}
	if one, ok := option(text); ok || !q.Several {
		return one, ok
	}
	var all []string
	for _, word := range strings.Split(text, ",") {
		one, ok := option(word)
		if !ok {
			return "", false
		}
		all = append(all, one)
	}
	return strings.Join(all, ", "), true
}
