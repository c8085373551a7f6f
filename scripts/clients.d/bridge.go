package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/mkdirlock"
	"github.com/teamctl/teamctl/team"
)

const (
	rowBridge = "a burst over the bridge, which is killed amid it"
	rowStarts = "mail over the bridge for a teammate that starts"
	rowByHand = "mail over the bridge for a teammate that a person starts"
)

// nativeTeam is the native team of the program.
const nativeTeam = "alpha"

// overBridge sends a burst over the bridge to a native teammate of the program while it works, and
// kills and restarts the bridge meanwhile. Each message reaches the model once, and each receipt is
// true.
func overBridge(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	if !c.Native {
		return "-", nil
	}
	if err := w.makeNative(c, time.UnixMilli(1795236000000)); err != nil {
		return "", err
	}
	end, err := w.startNative(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = end(err) }()
	b, err := w.bridge(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.kill()) }()
	if err := w.longOf(ctx, "native", w.busy, w.token("then")); err != nil {
		return "", err
	}
	letters := withoutFrames(agentlab.Nasty(w.token("burst"), w.letters))
	if err := w.post(ctx, "native", letters[:len(letters)/2]); err != nil {
		return "", err
	}
	if err := b.kill(); err != nil {
		return "", err
	}
	if err := w.post(ctx, "native", letters[len(letters)/2:]); err != nil {
		return "", err
	}
	if b, err = w.bridge(ctx); err != nil {
		return "", err
	}
	note, err = w.onceThere(ctx, c, letters)
	if err != nil {
		return note, err
	}
	if err := b.kill(); err != nil {
		return "", err
	}
	_, err = w.teamctl(ctx, w.bridgeArgs("--remove")...)
	return note, err
}

// onceThere waits until letters to the native teammate are settled, and checks that each has come
// once.
func (w *world) onceThere(ctx context.Context, c agentlab.Client, letters []agentlab.Letter) (string, error) {
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
	return t.String(), t.Err(false)
}

// withoutFrames returns letters without those that have the program's own frame in their text, for
// it reacts to that.
func withoutFrames(letters []agentlab.Letter) []agentlab.Letter {
	return slices.DeleteFunc(letters, func(l agentlab.Letter) bool { return strings.Contains(l.Text, "teammate-message") })
}

// beforeIt is how many messages are sent before a teammate that starts is given its prompt: so few
// that the lead, which takes a moment for it, is no slower here.
const beforeIt = 3

// startsOverBridge sends mail over the bridge to a native teammate that its lead starts: it is
// entered in the configuration, its mailbox is emptied, its prompt is written, and it is started.
// Each message reaches the model once. Newer versions are not looked at: their mail is not held.
func startsOverBridge(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	if !c.Native || !c.Older {
		return "-", nil
	}
	if err := w.makeNative(c, time.Now()); err != nil {
		return "", err
	}
	b, err := w.bridge(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.kill()) }()
	letters := withoutFrames(agentlab.Nasty(w.token("starts"), w.letters))
	before := min(beforeIt, len(letters))
	if err := w.post(ctx, "native", letters[:before]); err != nil {
		return "", err
	}
	prompt, err := json.Marshal([]map[string]any{{"from": team.LeadName, "text": "look", "timestamp": inbox.Timestamp(time.Now()), "read": false}})
	if err != nil {
		return "", err
	}
	box := filepath.Join(w.User, ".claude", "teams", nativeTeam, "inboxes", "native.json")
	if err := mkdirlock.Hold(ctx, box+".lock", 0o755, func(func() error) error { return os.WriteFile(box, prompt, 0o600) }); err != nil {
		return "", err
	}
	end, err := w.startNative(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = end(err) }()
	if err := w.post(ctx, "native", letters[before:]); err != nil {
		return "", err
	}
	if note, err = w.onceThere(ctx, c, letters); err != nil {
		return note, err
	}
	if err := b.kill(); err != nil {
		return "", err
	}
	_, err = w.teamctl(ctx, w.bridgeArgs("--remove")...)
	return note, err
}

// startsByHand sends mail over the bridge to a native teammate that a person starts without a prompt,
// long after it was entered in the configuration: what is in its mailbox before its start, and what
// comes while it starts. Each message reaches the model once, and nothing says that the teammate is
// idle.
func startsByHand(ctx context.Context, w *world, c agentlab.Client) (note string, err error) {
	if !c.Native {
		return "-", nil
	}
	if err := w.makeNative(c, time.UnixMilli(1795236000000)); err != nil {
		return "", err
	}
	b, err := w.bridge(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.kill()) }()
	letters := withoutFrames(agentlab.Nasty(w.token("hand"), w.letters))
	before := min(beforeIt, len(letters))
	if err := w.post(ctx, "native", letters[:before]); err != nil {
		return "", err
	}
	end, err := w.startNative(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = end(err) }()
	if err := w.post(ctx, "native", letters[before:]); err != nil {
		return "", err
	}
	note, err = w.onceThere(ctx, c, letters)
	if m, merr := w.member(ctx, "native"); merr != nil || m.Activity != string(team.ActivityUnknown) {
		err = errors.Join(err, merr, fmt.Errorf("it is %s", m.Activity))
	}
	return note, err
}

// startNative starts a native teammate. end kills it, and adds to an error what it shows.
func (w *world) startNative(ctx context.Context, c agentlab.Client) (end func(error) error, err error) {
	socket := filepath.Join(w.Sockets, "native")
	mode := "manual"
	if c.Older {
		mode = "default"
	}
	if _, err := w.Run(ctx, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "-c", w.Repo,
		"env", "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", filepath.Join(w.Dir, "bin", c.Name),
		"--agent-id", "native@"+nativeTeam, "--agent-name", "native", "--team-name", nativeTeam, "--agent-color", "green",
		"--parent-session-id", "00000000-0000-4000-8000-000000000001", "--agent-type", "general-purpose", "--permission-mode", mode); err != nil {
		return nil, err
	}
	return func(err error) error {
		if err != nil {
			screen, _ := exec.CommandContext(context.WithoutCancel(ctx), "tmux", "-S", socket, "capture-pane", "-p").Output()
			err = fmt.Errorf("%w; the teammate shows:\n%s", err, screen)
		}
		_, kerr := w.Run(context.WithoutCancel(ctx), "tmux", "-S", socket, "kill-server")
		return errors.Join(err, kerr)
	}, nil
}

// makeNative writes a native team, as its lead does. Its members joined at a time.
func (w *world) makeNative(c agentlab.Client, joined time.Time) error {
	lead := ""
	if !c.Older { // it records its lead
		lead = fmt.Sprintf(`"leadProcess":{"pid":%d},`, os.Getpid())
	}
	member := func(name, kind, pane string) string {
		return fmt.Sprintf(`{"agentId":"%s@%s","name":"%s","agentType":"%s","joinedAt":%d,"tmuxPaneId":"%s","cwd":"%s","subscriptions":[],"backendType":"tmux","isActive":true}`,
			name, nativeTeam, name, kind, joined.UnixMilli(), pane, w.Repo)
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

// bridge starts a bridge and waits until the native teammate is a member here.
func (w *world) bridge(ctx context.Context) (*bridging, error) {
	b := &bridging{cmd: exec.Command(w.exe, w.bridgeArgs()...)}
	b.cmd.Dir, b.cmd.Env, b.cmd.Stderr = w.Repo, w.Env, &b.said
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the bridge: %w", err)
	}
	if err := w.until(ctx, "bridged", func() (bool, error) { _, err := w.member(ctx, "native"); return err == nil, err }); err != nil {
		return b, errors.Join(err, b.kill()) // b, since a deferred kill looks whether it is done
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
