package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool/op"
)

// operations returns the team's operations as tools: those available by role, mode and settings.
func (p *Program) operations(ctx context.Context) ([]llm.Tool, error) {
	offered, err := p.ops.Offered(ctx)
	if err != nil {
		return nil, err
	}
	var tools []llm.Tool
	for _, o := range offered {
		if o.Outside {
			continue
		}
		schema, err := o.InputSchema()
		if err != nil {
			return nil, err
		}
		delete(schema.Properties, "team_name") // only its own team is possible
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", o.Name, err)
		}
		t := llm.Tool{Tool: model.Tool{Name: o.Name, Description: o.Doc(), Schema: raw}, ReadOnly: o.ReadOnly}
		run := p.call
		switch o.Name {
		case "TaskClaim":
			run = p.claim
		case "TaskComplete":
			run = p.complete
		}
		t.Run = func(ctx context.Context, c llm.Call) (llm.Result, error) {
			r, err := run(ctx, c)
			r.Text = p.secrets.Hide(r.Text)
			return r, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// call carries out an operation of the team.
func (p *Program) call(ctx context.Context, c llm.Call) (llm.Result, error) {
	out, err := p.ops.CallJSON(ctx, c.Name, c.Input)
	if err != nil {
		return refused(err), nil
	}
	return llm.Result{Text: string(out)}, nil
}

// refused formats the error of an operation for the model.
func refused(err error) llm.Result {
	text := err.Error()
	if hint := team.HintOf(err); hint != "" {
		text += "\nhint: " + hint
	}
	return llm.Result{Text: text, Failed: true}
}

// claim claims a task and merges the work on which it depends into the worktree.
func (p *Program) claim(ctx context.Context, c llm.Call) (llm.Result, error) {
	out, err := p.ops.Call(ctx, c.Name, c.Input)
	if err != nil {
		return refused(err), nil
	}
	res := llm.Result{}
	if claimed, ok := out.(op.TaskClaimOut); ok && claimed.Task != nil {
		note, err := p.work.Claimed(ctx, claimed.Task.ID)
		if err != nil {
			return refused(err), nil
		}
		res.Text = note
	}
	o, err := op.Find(c.Name)
	if err != nil {
		return res, err
	}
	raw, err := o.Encode(out)
	res.Text = strings.TrimSpace(string(raw) + "\n" + res.Text)
	return res, err
}

// complete commits remaining work of a task and completes the task with that commit.
func (p *Program) complete(ctx context.Context, c llm.Call) (llm.Result, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return p.call(ctx, c) // which reports the error
	}
	id := strings.Trim(string(in["task_id"]), `"`)
	if _, given := in["commit"]; !given && id != "" {
		sha, files, err := p.work.Completing(ctx, id)
		if err != nil {
			return refused(err), nil
		}
		if sha != "" {
			in["commit"], _ = json.Marshal(sha)
			if len(files) > 0 && in["files"] == nil {
				in["files"], _ = json.Marshal(files)
			}
		}
		if c.Input, err = json.Marshal(in); err != nil {
			return llm.Result{}, err
		}
	}
	return p.call(ctx, c)
}
