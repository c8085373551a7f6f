package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/internal/agentlab"
)

const rowBridge = "a burst over the bridge, which is killed amid it"

// nativeTeam is the native team of the program.
const nativeTeam = "alpha"

// overBridge sends a burst over the bridge to a native teammate of the program while it works, and
// kills and restarts the bridge meanwhile. Each message reaches the model once, and each receipt is
// true.
func overBridge(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	if !c.Native {
		return "-", nil
	}
	if err := w.makeNative(c); err != nil {
		return "", err
	}
	socket := filepath.Join(w.Sockets, "native")
	mode := "manual"
	if c.Older {
		mode = "default"
	}
	if _, err := w.Run(ctx, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "-c", w.Repo,
		"env", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", filepath.Join(w.Dir, "bin", c.Name),
		"--agent-id", "native@"+nativeTeam, "--agent-name", "native", "--team-name", nativeTeam, "--agent-color", "green",
		"--parent-session-id", "00000000-0000-4000-8000-000000000001", "--agent-type", "general-purpose", "--permission-mode", mode); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			screen, _ := exec.CommandContext(context.WithoutCancel(ctx), "tmux", "-S", socket, "capture-pane", "-p").Output()
			err = fmt.Errorf("%w; the teammate shows:\n%s", err, screen)
		}
		_, kerr := w.Run(context.WithoutCancel(ctx), "tmux", "-S", socket, "kill-server")
		err = errors.Join(err, kerr)
	}()
	b, err := w.bridge()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.kill()) }()
	if err := w.until(ctx, "bridged", func() (bool, error) { _, err := w.member(ctx, "native"); return err == nil, err }); err != nil {
		return "", err
	}
	if err := w.longOf(ctx, "native", w.busy, w.token("then")); err != nil {
		return "", err
	}
	// The program reacts to its own frame in a text.
	letters := slices.DeleteFunc(agentlab.Nasty(w.token("burst"), w.letters), func(l agentlab.Letter) bool { return strings.Contains(l.Text, "teammate-message") })
	if err := w.post(ctx, "native", letters[:len(letters)/2]); err != nil {
		return "", err
	}
	if err := b.kill(); err != nil {
		return "", err
	}
	if err := w.post(ctx, "native", letters[len(letters)/2:]); err != nil {
		return "", err
	}
	if b, err = w.bridge(); err != nil {
		return "", err
	}
	asItIs := func(text string) string { return text }
	t, err := w.settledAs(ctx, c, letters, asItIs)
	if err == nil {
		err = t.Err(true)
	}
	if err != nil {
		return t.String(), err
	}
	// What the program has taken twice is ahead of this one in its queue.
	last := agentlab.Nasty(w.token("last"), 1)
	if err := w.post(ctx, "native", last); err != nil {
		return t.String(), err
	}
	if after, err := w.settledAs(ctx, c, last, asItIs); err != nil || after.Err(false) != nil {
		return t.String(), errors.Join(err, after.Err(false))
	}
	t = c.Compare(letters, w.model.Requests(), asItIs)
	if err := t.Err(false); err != nil {
		return t.String(), err
	}
	if err := b.kill(); err != nil {
		return "", err
	}
	_, err = w.teamctl(ctx, w.bridgeArgs("--remove")...)
	return t.String(), err
}

// makeNative writes a native team, as its lead does.
func (w *world) makeNative(c agentlab.Client) error {
	lead := ""
	if !c.Older { // it records its lead
		lead = fmt.Sprintf(`"leadProcess":{"pid":%d},`, os.Getpid())
	}
	member := func(name, kind, pane string) string {
		return fmt.Sprintf(`{"agentId":"%s@%s","name":"%s","agentType":"%s","joinedAt":1795236000000,"tmuxPaneId":"%s","cwd":"%s","subscriptions":[],"backendType":"tmux","isActive":true}`,
			name, nativeTeam, name, kind, pane, w.Repo)
	}
	files := map[string]string{
		"teams/" + nativeTeam + "/config.json": fmt.Sprintf(`{"name":"%s","createdAt":1795236000000,"leadAgentId":"team-lead@%s","leadSessionId":"00000000-0000-4000-8000-000000000001",%s"members":[%s,%s]}`,
			nativeTeam, nativeTeam, lead, member("team-lead", "team-lead", ""), member("native", "general-purpose", "%0")),
		"teams/" + nativeTeam + "/inboxes/native.json": "[]",
		"tasks/" + nativeTeam + "/.lock":               "",
	}
	for name, text := range files {
		path := filepath.Join(w.User, ".claude", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// bridging is a bridge that runs until it is killed.
type bridging struct {
	cmd  *exec.Cmd
	said bytes.Buffer // its errors
	done bool
}

func (w *world) bridgeArgs(more ...string) []string {
	return append([]string{"bridge", "claude", "--team", "demo", "--native", nativeTeam, "--config-dir", filepath.Join(w.User, ".claude")}, more...)
}

func (w *world) bridge() (*bridging, error) {
	b := &bridging{cmd: exec.Command(w.exe, w.bridgeArgs()...)}
	b.cmd.Dir, b.cmd.Env, b.cmd.Stderr = w.Repo, w.Env, &b.said
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bridge: %w", err)
	}
	return b, nil
}

// kill kills the bridge once and waits for its end; a bridge that has exited before is an error.
func (b *bridging) kill() error {
	if b.done {
		return nil
	}
	b.done = true
	if err := b.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the bridge: %w", err)
	}
	if err := b.cmd.Wait(); err == nil || b.cmd.ProcessState.Exited() {
		return fmt.Errorf("the bridge has ended by itself: %s: %s", b.cmd.ProcessState, b.said.String())
	}
	return nil
}
