package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// beginsAnew checks an agent whose conversation its program has lost: it begins another one, and
// gets the mail that it has not had. Claude Code 2.1.329 had recorded nothing of a conversation when
// it was killed on a busy machine, and refused to resume it at every start.
func beginsAnew(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	first, later := w.token("anew"), w.token("later")
	if _, err := w.teamctl(ctx, "spawn", "anew", "--agent", c.Name, "--session", "--restart", "always", "--prompt", "@@say "+first); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			w.show(ctx, os.Stderr) // while it is there
		}
		_, kerr := w.teamctl(context.WithoutCancel(ctx), "kill", "anew")
		err = errors.Join(err, kerr)
	}()
	if err := w.trustsNew(ctx, c, "anew"); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, first); err != nil {
		return "", err
	}
	if err := w.idle(ctx, "anew"); err != nil {
		return "", err
	}
	lost, err := w.conversation("anew")
	if err != nil {
		return "", err
	}
	m, err := w.member(ctx, "anew")
	if err != nil {
		return "", err
	}
	if err := syscall.Kill(m.PID, syscall.SIGSTOP); err != nil { // so that it writes nothing more
		return "", fmt.Errorf("stop the agent %d: %w", m.PID, err)
	}
	n, err := w.forget(lost)
	if err = errors.Join(err, syscall.Kill(m.PID, syscall.SIGKILL)); err != nil {
		return "", err
	}
	if n == 0 {
		return "-", nil // it keeps its conversations in one database
	}
	if _, err := w.sendTo(ctx, "anew", later); err != nil {
		return "", err
	}
	if _, err := w.asked(ctx, later); err != nil { // it may come with the prompt
		return "", err
	}
	if now, err := w.conversation("anew"); err != nil || now == lost {
		return "", errors.Join(err, fmt.Errorf("it goes on with %q", now))
	}
	return "", nil
}

// forget removes the files of a conversation, and returns their number. Gemini CLI names them by
// the first digits of the id.
func (w *world) forget(conversation string) (n int, err error) {
	err = filepath.WalkDir(w.User, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a running program removes files
			return nil
		}
		ends, _, _ := strings.Cut(conversation, "-")
		named := strings.Contains(d.Name(), conversation) || strings.HasSuffix(strings.TrimSuffix(d.Name(), filepath.Ext(path)), "-"+ends)
		if err != nil || d.IsDir() || !named {
			return err
		}
		n++
		return os.Remove(path)
	})
	return n, err
}

// conversation is the CLI's own id of a member's conversation.
func (w *world) conversation(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(w.Teams, "teams/demo/members", name, "conversation.json"))
	var c struct{ ID string }
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err == nil && c.ID == "" {
		err = fmt.Errorf("%s has no conversation: %s", name, b)
	}
	return c.ID, err
}
