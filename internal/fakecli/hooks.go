package fakecli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// command is a program that does not outlive ctx.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	return cmd
}

// hookDef is one hook of a settings file; Claude Code and Gemini CLI write them alike.
type hookDef struct {
	Command     string            `json:"command"`
	AsyncRewake bool              `json:"asyncRewake"`
	Env         map[string]string `json:"env"` // of Gemini CLI
}

type hookGroup struct {
	Hooks []hookDef `json:"hooks"`
}

// hookSet runs the hooks of one session.
type hookSet struct {
	events map[string][]hookGroup
	base   obj               // input of every hook
	woken  func(text string) // an asynchronous hook hands something over
	ctx    context.Context
	env    []string // that they get; nil: all
	done   sync.WaitGroup
	ran    func(hookRun) // called with each hook in the foreground; nil: it is not
	// noRewake: the program does not know hooks in the background.
	noRewake bool
}

// hookRun is one run of a hook.
type hookRun struct {
	event, tool, command string
	stdout, stderr       string
	status               int
	took                 time.Duration
}

// hookReply combines the answers of an event's hooks.
type hookReply struct {
	context  string          // to be added
	block    string          // the turn continues with this
	decision string          // allow, deny
	input    json.RawMessage // input to run with, if given
	message  string
}

// run runs the hooks of an event and returns their answer.
func (h *hookSet) run(ctx context.Context, event string, more obj) (r hookReply) {
	in := obj{"hook_event_name": event}
	for _, from := range []obj{h.base, more} {
		for k, v := range from {
			in[k] = v
		}
	}
	data, err := json.Marshal(in)
	if err != nil {
		return r
	}
	for _, g := range h.events[event] {
		for _, def := range g.Hooks {
			if def.AsyncRewake {
				if h.noRewake {
					h.shell(ctx, def, data) // in front, however long it takes
					continue
				}
				h.done.Go(func() { h.wait(def, data) })
				continue
			}
			began := time.Now()
			out, bad, status := h.shell(ctx, def, data)
			if h.ran != nil {
				tool, _ := more["tool_name"].(string)
				h.ran(hookRun{event, tool, def.Command, string(out), bad, status, time.Since(began)})
			}
			r.add(out)
		}
	}
	return r
}

// sessionEnd waits until the terminal is gone or the program is told to end, and calls the hook
// of the session's end, while the model may still be owed a request.
func (h *hookSet) sessionEnd(gone <-chan struct{}, told <-chan os.Signal) {
	select {
	case <-gone:
	case <-told:
	}
	h.run(context.WithoutCancel(h.ctx), "SessionEnd", obj{"reason": "other"})
}

// wait runs a hook in the background; its exit status 2 wakes the session.
func (h *hookSet) wait(def hookDef, data []byte) {
	_, said, status := h.shell(h.ctx, def, data)
	if status == 2 && h.ctx.Err() == nil {
		h.woken(said)
	}
}

func (h *hookSet) shell(ctx context.Context, def hookDef, stdin []byte) (stdout []byte, stderr string, status int) {
	cmd := command(ctx, "sh", "-c", def.Command)
	var out, bad bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = bytes.NewReader(stdin), &out, &bad, h.env
	if h.env == nil {
		cmd.Env = os.Environ()
	}
	for k, v := range def.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		status = -1
	}
	return out.Bytes(), bad.String(), status
}

func (r *hookReply) add(out []byte) {
	var a struct {
		Decision, Reason   string
		HookSpecificOutput struct {
			AdditionalContext string
			Decision          struct {
				Behavior, Message string
				UpdatedInput      json.RawMessage
			}
		}
	}
	if json.Unmarshal(out, &a) != nil {
		return
	}
	r.context = strings.TrimSpace(r.context + "\n" + a.HookSpecificOutput.AdditionalContext)
	if a.Decision == "block" || a.Decision == "deny" {
		r.block = strings.TrimSpace(r.block + "\n" + a.Reason)
	}
	if d := a.HookSpecificOutput.Decision; d.Behavior != "" {
		r.decision, r.message, r.input = d.Behavior, d.Message, d.UpdatedInput
	}
}
