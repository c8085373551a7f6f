package main

import (
	"context"
	"fmt"
	"regexp"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// planFile matches the path where a program tells its model to write the plan, in a request.
var planFile = regexp.MustCompile(`/[^"\\\s]*/plans/[a-z0-9-]+\.md`)

// planned checks a teammate that was started to plan: its plan is queued as one, a rejection
// carries its words, and after an approval it continues by itself, in another mode.
func planned(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if c.Plan == "" {
		return "-", nil
	}
	first, err := w.another(ctx, c, "planner", "--permission-mode", "plan")
	if err != nil {
		return "", err
	}
	for _, approve := range []bool{false, true} {
		if err := w.idle(ctx, "planner"); err != nil {
			return "", err
		}
		plan, after := w.token("plan"), w.token("after-plan")
		script := fmt.Sprintf("@@call %s {\"plan\":\"%s\"}\n@@say %s", c.Plan, plan, after)
		if path := planFile.FindString(first.Body); path != "" { // this program reads the plan from there
			script = fmt.Sprintf("@@call Write {\"file_path\":\"%s\",\"content\":\"%s\"}\n%s", path, plan, script)
		}
		if _, err := w.sendTo(ctx, "planner", script); err != nil {
			return "", err
		}
		id, err := w.inQueue(ctx, "plan", plan)
		if err != nil {
			return "", err
		}
		answer := []string{"approvals", "reject", id, "--feedback", "no-" + plan}
		if approve {
			answer = []string{"approvals", "approve", id}
		}
		if _, err := w.teamctl(ctx, answer...); err != nil {
			return "", err
		}
		if !approve {
			if _, err := w.asked(ctx, "no-"+plan); err != nil {
				return "", err
			}
		}
		if _, err := w.answered(ctx, after); err != nil {
			return "", err
		}
	}
	return "", w.enough(ctx, "planner")
}
