package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// hookSwitches say how a person turns all hooks of a program off: a file, and the text to insert
// after its first brace.
var hookSwitches = map[string]struct{ file, off string }{
	"claude": {".claude/settings.json", `"disableAllHooks":true,`},
	"gemini": {".gemini/settings.json", `"hooksConfig":{"enabled":false},`},
}

// withoutHooks checks that a message to a teammate whose hooks are off costs one turn of the model,
// and that the missing hooks are reported to the person.
func withoutHooks(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	s, ok := hookSwitches[c.Name]
	if !ok {
		return "-", nil // it has a server
	}
	path := filepath.Join(w.User, s.file)
	was, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(was), "{", "{"+s.off, 1)), 0o600); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, was, 0o600)) }()
	first := w.token("deaf")
	if _, err := w.teamctl(ctx, "spawn", "deaf", "--agent", c.Name, "--session", "--prompt", "@@say "+first); err != nil {
		return "", err
	}
	defer func() {
		_, kerr := w.teamctl(context.WithoutCancel(ctx), "kill", "deaf")
		err = errors.Join(err, kerr)
	}()
	if err := w.trustsNew(ctx, c, "deaf"); err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, first); err != nil {
		return "", err
	}
	before := w.turns()
	token := w.token("heard")
	id, err := w.sendTo(ctx, "deaf", "@@say "+token)
	if err != nil {
		return "", err
	}
	if _, err := w.answered(ctx, token); err != nil {
		return "", err
	}
	if err := w.delivered(ctx, id); err != nil {
		return "", err
	}
	if err := w.idle(ctx, "deaf"); err != nil {
		return "", err
	}
	if n := w.turns() - before; n != 1 {
		return "", fmt.Errorf("one message cost %d turns", n)
	}
	return "in one turn", w.until(ctx, "told", func() (bool, error) {
		out, err := w.teamctl(ctx, "ps")
		if err == nil && !strings.Contains(out, "runs no hooks") {
			err = fmt.Errorf("ps says:\n%s", out)
		}
		return err == nil, err
	})
}

// turns counts the requests of conversations that the model has received.
func (w *world) turns() (n int) {
	for _, r := range w.model.Requests() {
		if !r.Side {
			n++
		}
	}
	return n
}
