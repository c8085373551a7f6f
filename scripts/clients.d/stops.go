package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/team"
)

// shutsDown checks that an agent at rest with a task is told to stop, with the default deadline. It
// is asked by mail, and its approval ends it by its own means; its task is free again, and its last
// words can be read.
func shutsDown(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	task, last, err := w.holdsTask(ctx, c)
	if err != nil {
		return "", err
	}
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	reason := fmt.Sprintf("enough\n@@call %sSendMessage {\"type\":\"shutdown_response\",\"request_id\":\"$REQUEST\",\"approve\":true}", c.Tool)
	args := []string{"stop", "mate", "--reason", reason, "--json"}
	if w.wait > 0 {
		args = append(args, "--wait", w.wait.String())
	}
	out, err := w.teamctl(ctx, args...)
	if err != nil {
		return "", err
	}
	var all struct{ Members []team.Stopped }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Members) != 1 {
		return "", errors.Join(err, fmt.Errorf("stop says %s", out))
	}
	st := all.Members[0]
	if st.Outcome != "approved" || st.Exit == "signal SIGKILL" || len(st.Tasks) != 1 || st.Tasks[0] != task {
		return "", fmt.Errorf("it had task %s and ended so: %+v", task, st)
	}
	if err := syscall.Kill(m.PID, 0); err == nil {
		return "", fmt.Errorf("process %d is there after: %s", m.PID, out)
	}
	if err := w.showed(ctx, "mate", last); err != nil {
		return "", err
	}
	return fmt.Sprintf("in %s, %s", st.Took.Round(100*time.Millisecond), st.Exit), nil
}

// holdsTask has the agent claim a task and say a last word.
func (w *world) holdsTask(ctx context.Context, c agentlab.Client) (task, last string, err error) {
	out, err := w.teamctl(ctx, "task", "add", "left behind")
	if err != nil {
		return "", "", err
	}
	task, last = strings.TrimSpace(out), w.token("last")
	if _, err := w.teamctl(ctx, "task", "assign", task, "mate"); err != nil {
		return "", "", err
	}
	if _, err := w.send(ctx, fmt.Sprintf("@@call %sTaskClaim {\"task_id\":\"%s\"}\n@@say %s", c.Tool, task, last)); err != nil {
		return "", "", err
	}
	if _, err := w.answered(ctx, last); err != nil {
		return "", "", err
	}
	out, err = w.teamctl(ctx, "task", "ls", "--json")
	if err != nil {
		return "", "", err
	}
	var board struct {
		Tasks []struct{ ID, Status, OwnerName string }
	}
	if err := json.Unmarshal([]byte(out), &board); err != nil {
		return "", "", fmt.Errorf("read the board: %w", err)
	}
	for _, t := range board.Tasks {
		if t.ID == task && t.OwnerName == "mate" && t.Status != "pending" {
			return task, last, nil
		}
	}
	return "", "", fmt.Errorf("it has not claimed task %s: %+v", task, board.Tasks)
}

// showed replays the output of a member that has ended, as a person does with teamctl logs: a
// program draws its screen in pieces, so only the drawn screen has its words.
func (w *world) showed(ctx context.Context, name, word string) (err error) {
	raw, err := w.teamctl(ctx, "logs", name, "--raw")
	if err != nil {
		return err
	}
	conf, file := filepath.Join(w.Dir, "replay.conf"), filepath.Join(w.Dir, "replay")
	// What a program shows on the alternate screen must remain when it leaves that.
	err = errors.Join(os.WriteFile(conf, []byte("set -wg alternate-screen off\nset -g history-limit 20000\n"), 0o600), os.WriteFile(file, []byte(raw), 0o600))
	if err != nil {
		return err
	}
	tmux := []string{"tmux", "-S", filepath.Join(w.Sockets, "replay"), "-f", conf}
	if _, err := w.Run(ctx, append(tmux, "new-session", "-d", "-x", "200", "-y", "49", "cat "+file+"; exec cat")...); err != nil {
		return err
	}
	defer func() {
		_, kerr := w.Run(context.WithoutCancel(ctx), append(tmux, "kill-server")...)
		err = errors.Join(err, kerr)
	}()
	return w.until(ctx, "shown again", func() (bool, error) {
		screen, err := w.Run(ctx, append(tmux, "capture-pane", "-p", "-S", "-")...)
		if err == nil && !strings.Contains(screen, word) {
			err = fmt.Errorf("%s is not in what %s has put out:\n%s", word, name, screen)
		}
		return err == nil, err
	})
}
