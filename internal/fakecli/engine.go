package fakecli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tool runs one tool call and returns its result's text.
type Tool func(ctx context.Context, input json.RawMessage) string

// Engine is a conversation with a model. Its fields are set before Run.
type Engine struct {
	Model string          // URL of the model, which speaks the Messages protocol
	Dir   string          // where the shell tool runs
	Env   []string        // of the shell tool
	Tools map[string]Tool // beside the shell

	// Free reports whether a tool call needs no permission; nil: all need it.
	Free func(tool string, input json.RawMessage) bool
	// Allow decides on a tool call; nil allows all. It may wait.
	Allow   func(ctx context.Context, call string, tool string, input json.RawMessage) bool
	Refusal string // set by Allow: text for the model after a refusal, instead of the usual one
	// Around a turn and a tool call; what they return comes in as text. Stop ends the
	// turn with "" only.
	Prompted, AfterTool, Stop func(ctx context.Context, text string) string
	// Takes is called before texts come into the conversation, and Seen with each one that has.
	Takes func([]Text)
	Seen  func(Text)
	// Active is called with the turn's id when a turn begins, and with "" when it ends.
	Active func(turn string)
	// Asks changes the conversation in each request to the model; nil: no change.
	Asks func(talk []message) []message
	// Answering is called before each request to the model.
	Answering func()
	// Said is called with each answer.
	Said func(text string)
	// Failed is called with the error of the model, and returns whether to repeat the request; nil
	// shows the error.
	Failed func(ctx context.Context, words string) (again bool)
	// Runs is called with each command that begins, and what it returns with the end; where
	// it is set, an interrupt leaves what a turn runs.
	Runs func(line string, pid int) (ended func())
	// Calls is called before a tool runs.
	Calls func(tool string)
	// Compact is a file: if it exists, the conversation is replaced by a summary before the next
	// request, the file is removed, and Compacted is called. Keeps returns the messages that stay
	// unchanged.
	Compact   string
	Keeps     func(talk []message) []message
	Compacted func(ctx context.Context)
	// Wrote is called with each message of the conversation, and what an answer has used.
	Wrote func(role string, content any, used Used)
	// Broken is called when a turn was interrupted or has failed, before it is over. Where it
	// is set, what came in during that turn and was not taken begins none: it is taken by
	// the next, or by Begin.
	Broken func(ctx context.Context)
	// Drops has an interrupted turn drop what came in during it and was not taken.
	Drops bool
	// Ended is called when a turn is over, with what has broken it.
	Ended func(turn string, err error)
	// Keep is called with the whole conversation whenever it has grown; Load reads it.
	Keep func(talk json.RawMessage)

	mu     sync.Mutex
	talk   []message
	used   Used   // by the last answer
	queue  []Text // came in mid-turn: for the next boundary
	next   []Text // for the next turn
	left   []Text // what a broken turn has left behind
	turn   string
	turns  int
	cancel context.CancelFunc // of the turn
	wake   chan struct{}
}

// Text is incoming text. ID is the sender's, for receipts. Quiet text was not typed: Prompted is
// not called for it.
type Text struct {
	ID, Text string
	Quiet    bool
}

// Used is the usage of an answer of the model.
type Used struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// NewEngine returns an idle engine.
func NewEngine(model, dir string) *Engine {
	return &Engine{Model: model, Dir: dir, wake: make(chan struct{}, 1)}
}

// Load takes up a conversation that was kept, before Run.
func (e *Engine) Load(talk json.RawMessage) error {
	if len(talk) == 0 { // nothing was said yet
		return nil
	}
	return json.Unmarshal(talk, &e.talk)
}

// append adds to the conversation. It is stored for a resume before the record that others read,
// since the programs store both in one file.
func (e *Engine) append(m message) {
	e.talk = append(e.talk, m)
	if e.Keep != nil {
		if b, err := json.Marshal(e.talk); err == nil {
			e.Keep(b)
		}
	}
	if e.Wrote != nil {
		used := Used{}
		if m.Role == "assistant" {
			used = e.used
		}
		e.Wrote(m.Role, m.Content, used)
	}
}

// Run does turns until ctx ends.
func (e *Engine) Run(ctx context.Context) {
	for {
		e.mu.Lock()
		in := e.next
		e.next = nil
		var turn context.Context
		if len(in) > 0 {
			in = append(e.left, in...)
			e.left = nil
			e.turns++
			e.turn = fmt.Sprintf("turn-%d", e.turns)
			turn, e.cancel = context.WithCancel(ctx)
		}
		e.mu.Unlock()
		if turn != nil {
			e.active(e.turnID())
			err := e.do(turn, in)
			lost := err != nil && e.Broken != nil
			if lost {
				e.Broken(ctx)
			}
			e.mu.Lock()
			if e.Drops && errors.Is(err, context.Canceled) {
				e.queue = nil
			}
			id := e.turn
			e.cancel()
			e.cancel = nil
			e.turn = ""
			if lost {
				e.left = e.queue
			} else {
				e.next = append(e.next, e.queue...) // what came too late begins a turn
			}
			e.queue = nil
			e.mu.Unlock()
			if e.Ended != nil {
				e.Ended(id, err)
			}
			e.active("")
			continue
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (e *Engine) turnID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.turn
}

// Turn returns the id of the current turn, "" when idle.
func (e *Engine) Turn() string { return e.turnID() }

func (e *Engine) active(turn string) {
	if e.Active != nil {
		e.Active(turn)
	}
}

// Send sends a text: it begins a turn, or during a turn is added at the next tool boundary if
// steer is set, else after the turn. It returns the turn that takes it, "" for a later one.
func (e *Engine) Send(t Text, steer bool) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn != "" && steer {
		e.queue = append(e.queue, t)
		return e.turn
	}
	e.next = append(e.next, t)
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return ""
}

// Begin begins a turn for texts left by broken turns, if no turn is running.
func (e *Engine) Begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.turn != "" || len(e.left) == 0 {
		return
	}
	e.next, e.left = append(e.left, e.next...), nil
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Interrupt breaks the turn off and reports whether there was one.
func (e *Engine) Interrupt() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancel == nil {
		return false
	}
	e.cancel()
	return true
}

// add puts a user's message into the conversation.
func (e *Engine) add(in []Text, result ...any) {
	content := append([]any{}, result...)
	for _, t := range in {
		content = append(content, map[string]string{"type": "text", "text": t.Text})
	}
	if e.Takes != nil {
		e.Takes(in)
	}
	e.append(message{"user", content})
	for _, t := range in {
		if e.Seen != nil {
			e.Seen(t)
		}
	}
}

// compacted compacts the conversation on request.
func (e *Engine) compacted() bool {
	if e.Compact == "" || os.Remove(e.Compact) != nil {
		return false
	}
	left := []message{}
	if e.Keeps != nil {
		left = e.Keeps(e.talk)
	}
	e.talk = []message{{"user", "This session goes on from one that was too long. Its summary: work was done."}}
	for _, m := range left {
		e.append(m)
	}
	return true
}

// boundary takes what came in mid-turn.
func (e *Engine) boundary() []Text {
	e.mu.Lock()
	defer e.mu.Unlock()
	in := e.queue
	e.queue = nil
	return in
}

// do runs one turn; its error is what broke the turn.
func (e *Engine) do(ctx context.Context, in []Text) error {
	if e.Prompted != nil && !in[0].Quiet {
		if more := e.Prompted(ctx, in[0].Text); more != "" {
			in = append(in, Text{Text: more})
		}
	}
	e.add(in)
	for {
		if e.compacted() && e.Compacted != nil {
			e.Compacted(ctx)
		}
		if e.Answering != nil {
			e.Answering()
		}
		said, call, err := e.ask(ctx)
		switch {
		case ctx.Err() != nil:
			e.append(message{"user", "[Request interrupted by user]"})
			return ctx.Err()
		case err != nil && e.Failed != nil:
			if e.Failed(ctx, err.Error()) {
				continue
			}
			e.append(message{"assistant", err.Error()})
			return err
		case err != nil:
			if e.Said != nil {
				e.Said(err.Error())
			}
			return err
		}
		if call == nil {
			e.append(message{"assistant", said})
			if e.Said != nil {
				e.Said(said)
			}
			if more := e.boundary(); len(more) > 0 {
				e.add(more)
				continue
			}
			if e.Stop != nil {
				if more := e.Stop(ctx, said); more != "" {
					e.add([]Text{{Text: more}})
					continue
				}
			}
			return nil
		}
		e.append(message{"assistant", []any{call}})
		result := map[string]any{"type": "tool_result", "tool_use_id": call.ID, "content": e.run(ctx, call)}
		if ctx.Err() != nil {
			e.append(message{"user", []any{result, map[string]string{"type": "text", "text": "[Request interrupted by user for tool use]"}}})
			return ctx.Err()
		}
		more := e.boundary()
		if e.AfterTool != nil {
			if t := e.AfterTool(ctx, call.Name); t != "" {
				more = append(more, Text{Text: t})
			}
		}
		e.add(more, result)
	}
}

// toolUse is a call of the model.
type toolUse struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (e *Engine) run(ctx context.Context, c *toolUse) string {
	if e.Calls != nil {
		e.Calls(c.Name)
	}
	if e.Allow != nil && (e.Free == nil || !e.Free(c.Name, c.Input)) && !e.Allow(ctx, c.ID, c.Name, c.Input) {
		if why := e.Refusal; why != "" {
			e.Refusal = ""
			return why
		}
		return "The user doesn't want to proceed with this tool use"
	}
	if t, ok := e.Tools[c.Name]; ok {
		return t(ctx, c.Input)
	}
	var in struct{ Command string }
	if c.Name != "Bash" || json.Unmarshal(c.Input, &in) != nil {
		return "no tool " + c.Name
	}
	return e.bash(ctx, in.Command)
}

// commandOf returns the command of a shell tool call; other calls need no permission.
func commandOf(input json.RawMessage) string {
	var in struct{ Command, Cmd string }
	_ = json.Unmarshal(input, &in)
	return in.Command + in.Cmd
}

// bash runs a command line and returns what it has said, and how it failed.
func (e *Engine) bash(ctx context.Context, line string) string {
	run := ctx
	if e.Runs != nil {
		run = context.WithoutCancel(ctx)
	}
	cmd := exec.CommandContext(run, "bash", "-c", line)
	cmd.Dir, cmd.Env = e.Dir, e.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt ends what it has started too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	ended := func() {}
	if e.Runs != nil {
		ended = e.Runs(line, cmd.Process.Pid)
	}
	done := make(chan string, 1)
	go func() {
		if err := cmd.Wait(); err != nil {
			out.WriteString(err.Error())
		}
		done <- out.String()
		ended()
	}()
	if e.Runs == nil {
		return <-done
	}
	select {
	case said := <-done:
		return said
	case <-ctx.Done():
		return "aborted"
	}
}

// ask has the model answer.
func (e *Engine) ask(ctx context.Context) (said string, call *toolUse, err error) {
	tools := []map[string]string{{"name": "Bash"}}
	for n := range e.Tools {
		tools = append(tools, map[string]string{"name": n})
	}
	talk := e.talk
	if e.Asks != nil {
		talk = e.Asks(talk)
	}
	body, err := json.Marshal(map[string]any{"model": "fake-model", "messages": talk, "tools": tools})
	if err != nil {
		return "", nil, err
	}
	status, b, err := e.post(ctx, body)
	if err != nil {
		return "", nil, err
	}
	var out struct {
		Content []struct {
			toolUse
			Text string
		}
		Error struct{ Message string }
		Usage Used
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return "", nil, fmt.Errorf("read the model's answer: %w", err)
	}
	if status != http.StatusOK || len(out.Content) == 0 {
		if strings.Contains(out.Error.Message, "usage limit") { // as the programs have them
			return "", nil, errors.New(out.Error.Message)
		}
		return "", nil, errors.New(strings.TrimSpace(fmt.Sprintf("API Error: %d %s %s", status, http.StatusText(status), out.Error.Message)))
	}
	e.used = out.Usage
	if c := out.Content[0]; c.Type == "tool_use" {
		return "", &c.toolUse, nil
	}
	return out.Content[0].Text, nil, nil
}

// posts bounds how often a request is sent. The programs repeat one that gets no answer.
const posts = 10

// post sends a request to the model, and sends it again if its connection fails.
func (e *Engine) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	for i := range posts {
		status, answer, err = e.postOnce(ctx, body)
		if err == nil {
			break
		}
		select {
		case <-time.After(time.Duration(i) * 100 * time.Millisecond):
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
	return status, answer, err
}

func (e *Engine) postOnce(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Model+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
