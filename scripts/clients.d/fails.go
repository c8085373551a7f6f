package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// fails checks a teammate whose first turn the model refuses: it is reported to the lead as failed,
// with the model's words, and shown so. It may have been reported idle before the turn began. The
// script of a refused request stays the next step, so this is a teammate of its own. It is told of
// no task: an open task on the board would begin another turn, whose end is reported to the lead,
// too.
func fails(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if c.NoFailures {
		return "-", nil
	}
	if _, err := w.teamctl(ctx, "task", "auto", "off"); err != nil {
		return "", err
	}
	words := w.token("refused")
	if _, err := w.teamctl(ctx, "spawn", "unlucky", "--agent", c.Name, "--session", "--prompt", "@@fail 400 "+words); err != nil {
		return "", err
	}
	return "", w.until(ctx, "told as failed", func() (bool, error) {
		told, err := w.notices(ctx, "unlucky")
		if err != nil || len(told) == 0 {
			return false, err
		}
		if n := told[len(told)-1]; n.IdleReason != "failed" || !strings.Contains(n.FailureReason, words) {
			return false, fmt.Errorf("told as %+v", told)
		}
		out, err := w.teamctl(ctx, "ps")
		if err == nil && !strings.Contains(out, "its turn failed") {
			err = fmt.Errorf("shown as:\n%s", out)
		}
		return err == nil, err
	})
}

// notice has the used fields of an idle notification.
type notice struct {
	IdleReason    string `json:"idleReason"`
	FailureReason string `json:"failureReason"`
}

// notices are those of one member, oldest first.
func (w *world) notices(ctx context.Context, from string) (out []notice, err error) {
	text, err := w.teamctl(ctx, "message", "ls", "--kind", "idle_notification", "--json")
	if err != nil {
		return nil, err
	}
	var all struct {
		Messages []struct{ From, Text string }
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	for _, m := range all.Messages {
		if m.From != from {
			continue
		}
		var n notice
		if err := json.Unmarshal([]byte(m.Text), &n); err != nil {
			return nil, fmt.Errorf("read %q: %w", m.Text, err)
		}
		out = append(out, n)
	}
	return out, nil
}
