package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
)

type fakemodelRequest = fakemodel.Request

// mixedTeam is the column of a team of all programs.
const mixedTeam = "mixed team"

// runMixed has one team of all programs finish a plan of three tasks: claude leads by messages,
// codex and gemini do a task each, opencode looks at the board and reports to claude, and the
// built-in worker runs the task that depends on the others.
func runMixed(ctx context.Context, o options, clients []agentlab.Client, t *table) (err error) {
	w, err := newWorld(ctx, o, clients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(o.keep)) }()
	began := time.Now()
	note, merr := mixed(ctx, w, clients)
	t.add(result{"a mixed team finishes a plan", mixedTeam, note, merr, time.Since(began)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

func mixed(ctx context.Context, w *world, clients []agentlab.Client) (string, error) {
	for _, c := range clients {
		if _, err := w.teamctl(ctx, "spawn", c.Name, "--agent", c.Name, "--session", "--prompt", "@@say here-"+c.Name); err != nil {
			return "", err
		}
		if _, err := w.asked(ctx, "here-"+c.Name); err != nil { // one after another: four at once take minutes on a small machine
			return "", err
		}
	}
	var ids []string
	for _, args := range [][]string{{"one"}, {"two"}, {"three", "--run", "true", "--depends-on", "1", "--depends-on", "2"}} {
		out, err := w.teamctl(ctx, append([]string{"task", "add"}, args...)...)
		if err != nil {
			return "", err
		}
		ids = append(ids, strings.TrimSpace(out))
	}
	// Tasks for the models are assigned: the worker takes free ones, and fails those without a
	// command.
	for i, c := range clients[1:3] {
		if _, err := w.teamctl(ctx, "task", "assign", ids[i], c.Name); err != nil {
			return "", err
		}
	}
	if _, err := w.teamctl(ctx, "spawn", "worker", "--session"); err != nil {
		return "", err
	}
	// The lead assigns by message; the recipient claims its task and completes it.
	script := func(c agentlab.Client, id string) string {
		return fmt.Sprintf(`@@call %sTaskClaim {"task_id":"%s"}\n@@call %sTaskComplete {"task_id":"%s","summary":"done"}\n@@say finished`, c.Tool, id, c.Tool, id)
	}
	lead := clients[0]
	for i, c := range clients[1:3] {
		order := fmt.Sprintf(`@@call %sSendMessage {"type":"message","recipient":"%s","content":"%s"}`,
			lead.Tool, c.Name, strings.ReplaceAll(script(c, ids[i]), `"`, `\"`))
		if _, err := w.teamctl(ctx, "send", lead.Name, order); err != nil {
			return "", err
		}
	}
	// opencode looks at the board and reports to the lead.
	last := clients[3]
	look := fmt.Sprintf(`@@call %sTaskList {}\n@@call %sSendMessage {\"type\":\"message\",\"recipient\":\"%s\",\"content\":\"@@say board-seen\"}`, last.Tool, last.Tool, lead.Name)
	order := fmt.Sprintf(`@@call %sSendMessage {"type":"message","recipient":"%s","content":"%s"}`, lead.Tool, last.Name, look)
	if _, err := w.teamctl(ctx, "send", lead.Name, order); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, "say board-seen"); err != nil {
		return "", err
	}
	if out, err := w.teamctl(ctx, "wait", "--timeout", w.limit.String()); err != nil {
		return "", errors.Join(err, errors.New(out))
	}
	out, err := w.teamctl(ctx, "task", "ls", "--json")
	if err != nil {
		return "", err
	}
	var board struct {
		Tasks []struct{ Subject, Status, OwnerName string }
	}
	if err := json.Unmarshal([]byte(out), &board); err != nil {
		return "", fmt.Errorf("read the board: %w", err)
	}
	for i, want := range []string{clients[1].Name, clients[2].Name, "worker"} {
		if i >= len(board.Tasks) || board.Tasks[i].Status != "completed" || board.Tasks[i].OwnerName != want {
			return "", fmt.Errorf("task %d was not completed by %s: %+v", i+1, want, board.Tasks)
		}
	}
	return "", nil
}
