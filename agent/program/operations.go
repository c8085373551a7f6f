package program

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
	"github.com/teamctl/teamctl/tool/op"
)

// operations returns the team's operations as tools of a session: those available by role, mode
// and settings.
func (p *Program) operations(ctx context.Context, session string) ([]llm.Tool, error) {
	ops := p.opsOf(session)
	offered, err := ops.Offered(ctx)
	if err != nil {
		return nil, err
	}
	described, err := descriptions()
	if err != nil {
		return nil, err
	}
	var tools []llm.Tool
	for _, o := range offered {
		if o.Outside {
			continue
		}
		t := llm.Tool{Tool: described[o.Name], ReadOnly: o.ReadOnly}
		run := p.call
		switch o.Name {
		case "TaskClaim":
			run = p.claim
		case "TaskComplete":
			run = p.complete
		case op.Oneshot:
			run = p.oneshot
		case "Wait":
			run = p.wait
		}
		t.Run = func(ctx context.Context, c llm.Call) (llm.Result, error) {
			r, err := run(tool.WithPause(ctx, c.Desk.Pause), ops, c)
			r.Text = p.secrets.Hide(r.Text)
			return r, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// descriptions returns the operations by name as a model sees them. They are the same for every turn.
var descriptions = sync.OnceValues(func() (map[string]model.Tool, error) {
	schemas, err := op.ModelSchemas()
	if err != nil {
		return nil, err
	}
	all := make(map[string]model.Tool, len(schemas))
	for _, o := range op.All() {
		if o.Outside {
			continue
		}
		raw, ok := schemas[o.Name]
		if !ok {
			return nil, team.Errorf(team.CodeInternal, "operation %s has no schema", o.Name).WithHint("go run ./scripts/gen")
		}
		all[o.Name] = model.Tool{Name: o.Name, Description: o.Doc(), Schema: raw}
	}
	return all, nil
})

// call carries out an operation of the team.
func (p *Program) call(ctx context.Context, ops *op.Session, c llm.Call) (llm.Result, error) {
	out, err := ops.CallJSON(ctx, c.Name, c.Input)
	if err != nil {
		return refused(err), nil
	}
	return llm.Result{Text: string(out)}, nil
}

// opsOf returns a session's access to the team's operations. It acts as the member; the caller's
// own session is this one.
func (p *Program) opsOf(session string) *op.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.ops[session]; s != nil {
		return s
	}
	who := func(ctx context.Context, t *tool.Team) (c tool.Caller, err error) {
		if p.Who != nil {
			c, err = p.Who(ctx, t)
		} else {
			c, err = t.Identify(ctx, p.id.AgentID, p.Token)
		}
		c.Conversation = session
		return c, err
	}
	s := op.NewSession(p.Tools, p.id.Team, who, func() tool.Caller { return tool.Caller{Name: p.id.Name} })
	s.Place = p.Place
	p.ops[session] = s
	return s
}

// wait waits for something in the team and releases the place in the lane meanwhile.
func (p *Program) wait(ctx context.Context, ops *op.Session, c llm.Call) (llm.Result, error) {
	resume, err := c.Desk.Pause(ctx, "", "Wait")
	if err != nil {
		return llm.Result{}, err
	}
	out, err := p.call(ctx, ops, c)
	return out, errors.Join(err, resume(ctx))
}

// oneshot waits for a child. Its result collects the announce, so no further turn reports it.
func (p *Program) oneshot(ctx context.Context, ops *op.Session, c llm.Call) (llm.Result, error) {
	out, err := ops.Call(ctx, c.Name, c.Input)
	if err != nil {
		if ctx.Err() != nil {
			return llm.Result{}, ctx.Err()
		}
		return refused(err), nil
	}
	o, err := op.Find(c.Name)
	if err != nil {
		return llm.Result{}, err
	}
	raw, err := o.Encode(out)
	res := llm.Result{Text: string(raw)}
	if got, ok := out.(tool.Oneshot); ok {
		child, err := p.Team.Ledger.Session(ctx, got.SessionKey)
		if err != nil {
			return res, err
		}
		res.Collects = []string{ledger.AnnounceKey(child.Owner, child.Key, got.RunID)}
	}
	return res, err
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
func (p *Program) claim(ctx context.Context, ops *op.Session, c llm.Call) (llm.Result, error) {
	out, err := ops.Call(ctx, c.Name, c.Input)
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
func (p *Program) complete(ctx context.Context, ops *op.Session, c llm.Call) (llm.Result, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return p.call(ctx, ops, c) // which reports the error
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
	return p.call(ctx, ops, c)
}
