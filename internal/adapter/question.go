package adapter

import (
	"encoding/json"
	"maps"

	"github.com/teamctl/teamctl/team"
)

// askQuestion is the tool with which Claude Code asks its user a question.
const askQuestion = "AskUserQuestion"

// Questions returns the questions of a tool call to the user; none for other tools.
func (in HookIn) Questions() []team.Question {
	if in.Tool != askQuestion {
		return nil
	}
	var args struct {
		Questions []struct {
			Question    string
			Options     []struct{ Label string }
			MultiSelect bool
		}
	}
	_ = json.Unmarshal(in.Input, &args) // of another shape: then there are none
	var out []team.Question
	for _, q := range args.Questions {
		if q.Question == "" {
			continue
		}
		one := team.Question{Text: q.Question, Several: q.MultiSelect}
		for _, o := range q.Options {
			one.Options = append(one.Options, o.Label)
		}
		out = append(out, one)
	}
	return out
}

// Granted returns the input with which an approved tool call runs: given if it is set, nil for its
// own. Claude Code keeps its dialog open and waits after a plain approval of a tool that asks the
// user: a plan counts as approved only with the tool's input, a question as answered only with the
// answers added. ok is false if the approval would have no effect: then the dialog is left to the
// user.
func (in HookIn) Granted(given json.RawMessage) (input json.RawMessage, ok bool) {
	switch {
	case in.Tool == askQuestion:
		return in.withAnswers(given)
	case len(given) > 0 || in.Tool != exitPlan:
		return given, true
	case len(in.Input) == 0:
		return json.RawMessage("{}"), true
	}
	return in.Input, true
}

// withAnswers returns the input of a question with the given answers added.
func (in HookIn) withAnswers(given json.RawMessage) (json.RawMessage, bool) {
	var more struct {
		Answers map[string]string
	}
	if json.Unmarshal(given, &more) != nil || len(more.Answers) == 0 {
		return nil, false
	}
	all, extra := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal(in.Input, &all) != nil || json.Unmarshal(given, &extra) != nil {
		return nil, false
	}
	maps.Copy(all, extra)
	out, err := json.Marshal(all)
	return out, err == nil
}
