package adapter

import (
	"encoding/json"
	"maps"

	"github.com/teamctl/teamctl/team"
)

// askQuestion is the tool with which Claude Code asks its person something.
const askQuestion = "AskUserQuestion"

// Questions are what a tool call asks the agent's person; none for any other tool.
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
	_ = json.Unmarshal(in.Input, &args) // of another shape: then there is none
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

// Granted is the input with which a tool call runs that was approved, given an input to
// use instead or none; nil: with its own. Claude Code leaves its dialogs open over a plain
// yes to a tool that asks its person, and waits: a plan counts as approved only with the
// tool's input, a question as answered only with the answers beside it. It is false where
// the yes would be none: then its dialog is for its person.
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

// withAnswers is the input of a question with what was given beside it.
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
