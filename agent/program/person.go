package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/tools"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const (
	askTool    = "ask_person"
	notifyTool = "notify_person"
)

type askPersonIn struct {
	Question string   `json:"question" jsonschema:"what the person is to answer, in full"`
	Options  []string `json:"options,omitempty" jsonschema:"answers to choose from; another one may be given"`
}

type notifyPersonIn struct {
	Text string `json:"text" jsonschema:"what the person is to know, in a sentence or two"`
}

// personTools returns the tools of a session that reach the person.
func (p *Program) personTools(session string) []llm.Tool {
	notify := tools.Typed(notifyTool, "Notify the person outside the team, if the person has turned that on for this conversation. Nobody answers.", tools.Team, false, nil,
		func(ctx context.Context, _ tools.Call, in notifyPersonIn) (tools.Out, error) {
			n, err := p.Team.NotifyPerson(ctx, session, p.secrets.Hide(in.Text))
			if err != nil {
				return tools.Out{Text: refused(err).Text, Failed: true}, nil
			}
			return tools.Out{Text: fmt.Sprintf("Delivered to %d of the person's sinks.", n)}, nil
		})
	ask := func(desk llm.Desk) tools.Tool {
		return tools.Typed(askTool, "Ask the person a question, and wait for the answer. Other work of the team goes on meanwhile.", tools.Team, true, nil,
			func(ctx context.Context, c tools.Call, in askPersonIn) (tools.Out, error) {
				return p.askPerson(ctx, desk, c, in)
			})
	}
	asks := ask(nil) // for its schema
	return []llm.Tool{
		{Tool: asks.Tool, ReadOnly: true, Run: func(ctx context.Context, c llm.Call) (llm.Result, error) {
			return p.result(ask(c.Desk).Run(ctx, tools.Call{ID: c.ID, Input: c.Input}))
		}},
		{Tool: notify.Tool, Run: func(ctx context.Context, c llm.Call) (llm.Result, error) {
			return p.result(notify.Run(ctx, tools.Call{ID: c.ID, Input: c.Input}))
		}},
	}
}

func (p *Program) result(out tools.Out, err error) (llm.Result, error) {
	return llm.Result{Text: p.secrets.Hide(out.Text), Failed: out.Failed}, err
}

// askPerson puts a question into the queue of approvals, where only an answer approves it.
func (p *Program) askPerson(ctx context.Context, desk llm.Desk, c tools.Call, in askPersonIn) (tools.Out, error) {
	if strings.TrimSpace(in.Question) == "" {
		return tools.Out{Text: "question is empty", Failed: true}, nil
	}
	rules, err := p.rules(ctx)
	if err != nil {
		return tools.Out{}, err
	}
	if rules.Mode == team.ModeDontAsk {
		return tools.Out{Text: "Nothing was asked: your mode is dontAsk.", Failed: true}, nil
	}
	q := team.Question{Text: p.secrets.Hide(in.Question), Options: in.Options}
	raw, err := json.Marshal(askPersonIn{q.Text, q.Options})
	if err != nil {
		return tools.Out{}, err
	}
	_, given, refusal, err := p.request(ctx, desk, team.WaitQuestion, q.String(), tool.PermissionIn{
		ToolName: askTool, ToolUseID: c.ID, Description: q.String(), Input: raw, Questions: []team.Question{q},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return tools.Out{}, ctx.Err() // the next process asks again
	case err != nil || refusal != "":
		return tools.Out{Text: refusal, Failed: true}, err
	}
	var got struct {
		Answers map[string]string `json:"answers"`
	}
	if err := json.Unmarshal(given, &got); err != nil || got.Answers[q.Text] == "" {
		return tools.Out{Text: "The person has approved the question without an answer.", Failed: true}, nil
	}
	return tools.Out{Text: "The person answers: " + got.Answers[q.Text]}, nil
}
