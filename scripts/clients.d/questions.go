package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
)

// questioned checks that an agent's question to its person is queued in its words, that an approval
// without an answer is refused, and that the answer reaches the model, which continues.
func questioned(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if c.Asks == "" {
		return "-", nil
	}
	if _, err := w.another(ctx, c, "asker"); err != nil {
		return "", err
	}
	if err := w.idle(ctx, "asker"); err != nil {
		return "", err
	}
	question, after := w.token("which")+"?", w.token("after-question")
	input, err := json.Marshal(map[string]any{"questions": []any{map[string]any{
		"question": question, "header": "Pick", "multiSelect": false,
		"options": []any{map[string]string{"label": "Alpha", "description": "the first"}, map[string]string{"label": "Beta", "description": "the second"}},
	}}})
	if err != nil {
		return "", err
	}
	if _, err := w.sendTo(ctx, "asker", fmt.Sprintf("@@call %s %s\n@@say %s", c.Asks, input, after)); err != nil {
		return "", err
	}
	id, err := w.inQueue(ctx, "permission", question)
	if err != nil {
		return "", err
	}
	if _, err := w.teamctl(ctx, "approvals", "approve", id); err == nil {
		return "", fmt.Errorf("a yes without an answer was taken")
	}
	if _, err := w.teamctl(ctx, "approvals", "approve", id, "--answer", "Beta"); err != nil {
		return "", err
	}
	r, err := w.answered(ctx, after)
	if err != nil {
		return "", err
	}
	if !strings.Contains(r.New, "Beta") {
		return "", fmt.Errorf("the model is told %q", r.New)
	}
	return "", w.enough(ctx, "asker")
}

// another starts a further teammate for one row, and returns its first request.
func (w *world) another(ctx context.Context, c agentlab.Client, name string, flags ...string) (first fakemodel.Request, err error) {
	token := w.token(name)
	args := append([]string{"spawn", name, "--agent", c.Name, "--session", "--prompt", "@@say " + token}, flags...)
	if _, err := w.teamctl(ctx, args...); err != nil {
		return first, err
	}
	if err := w.trustsNew(ctx, c, name); err != nil {
		return first, err
	}
	return w.answered(ctx, token)
}

// trustsNew trusts the worktree of a new teammate of the team demo, where a program asks for that.
func (w *world) trustsNew(ctx context.Context, c agentlab.Client, name string) error {
	if !c.AsksInWorktree {
		return nil
	}
	return w.trusts(ctx, "demo", name)
}

// enough stops a further teammate once it is idle.
func (w *world) enough(ctx context.Context, name string) error {
	if err := w.idle(ctx, name); err != nil {
		return err
	}
	_, err := w.teamctl(ctx, "stop", name, "--wait", "1s")
	return err
}

// inQueue waits for an open approval of a kind whose subject has the text, and returns its id.
func (w *world) inQueue(ctx context.Context, kind, text string) (id string, err error) {
	err = w.until(ctx, "in the queue as a "+kind, func() (bool, error) {
		out, err := w.teamctl(ctx, "approvals", "--json")
		if err != nil {
			return false, err
		}
		var open struct {
			Approvals []struct {
				ID            int64
				Kind, Subject string
			}
		}
		if err := json.Unmarshal([]byte(out), &open); err != nil {
			return false, fmt.Errorf("read the queue: %w", err)
		}
		for _, a := range open.Approvals {
			if a.Kind == kind && strings.Contains(a.Subject, text) {
				id = strconv.FormatInt(a.ID, 10)
				return true, nil
			}
		}
		return false, fmt.Errorf("the queue is %s", out)
	})
	return id, err
}
