package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// In holds what Start needs to start an agent that speaks the Agent Client Protocol.
type In struct {
	Argv []string
	Env  []string // the whole environment
	Dir  string
	// Tools is the MCP server that the session is given.
	Tools ToolServer
	Out   io.Writer // the conversation, for people
	Err   io.Writer // the agent's own standard error
	// Permit answers a request for permission; it may wait. Nil denies.
	Permit func(context.Context, team.Ask) (team.Reply, error)
}

// ToolServer is an MCP server on standard input and output.
type ToolServer struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
}

// Agent is a running agent with one session. It takes one prompt at a time: on a second prompt
// some agents cancel the first, and some never answer the second.
type Agent struct {
	in      In
	cmd     *exec.Cmd
	stdin   io.Closer
	stdout  io.Closer
	conn    *acp.ClientSideConnection
	session acp.SessionId
	exited  chan struct{}
	err     error         // how the process exited, valid once exited is closed
	gone    chan struct{} // it has exited, or closed its end of the connection
	lost    func()        // closes gone

	modes []string // ids of the session's modes; empty if it has none

	mu     sync.Mutex
	mode   string // id of the current mode
	begun  func()
	turn   context.Context // context of the current turn, which also bounds its requests; nil between turns
	end    context.CancelFunc
	inWord bool // Out is in the middle of a line
	used   team.Usage
}

// Start starts the agent in a process group of its own, so that an interrupt of the terminal
// reaches only this process, and opens a session. Its errors have the reason acp; a failed Start
// leaves no process behind.
func Start(ctx context.Context, in In) (*Agent, error) {
	if in.Out == nil {
		in.Out = io.Discard
	}
	cmd := exec.Command(in.Argv[0], in.Argv[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = in.Env, in.Dir, in.Err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, acpError("start", err)
	}
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		return nil, acpError("start", err)
	}
	cmd.Stdout = stdoutEnd
	err = cmd.Start()
	stdoutEnd.Close()
	if err != nil {
		stdout.Close()
		return nil, acpError("start "+in.Argv[0], err)
	}
	a := &Agent{in: in, cmd: cmd, stdin: stdin, stdout: stdout, exited: make(chan struct{}), gone: make(chan struct{})}
	a.lost = sync.OnceFunc(func() { close(a.gone) })
	go func() { // exits with the process; Close waits for it
		defer a.lost()
		defer close(a.exited)
		a.err = cmd.Wait()
	}()
	// The connection reads as soon as it exists and logs its end, so reading waits until the logger
	// is set.
	first := make(chan struct{})
	a.conn = acp.NewClientSideConnection(acpClient{a}, toAgent{stdin, a.lost}, gated{stdout, first})
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	close(first)
	go func() { // exits with the connection; Close waits for it
		<-a.conn.Done()
		a.lost()
	}()
	if err := a.hello(ctx); err != nil {
		_ = a.Close()
		return nil, acpError("talk to "+in.Argv[0], err)
	}
	return a, nil
}

// toAgent calls lost when the agent takes nothing more: the library reports that as an error which
// an agent could have answered as well.
type toAgent struct {
	io.Writer
	lost func()
}

func (t toAgent) Write(p []byte) (int, error) {
	n, err := t.Writer.Write(p)
	if err != nil {
		t.lost()
	}
	return n, err
}

// gated blocks reads until open is closed.
type gated struct {
	io.Reader
	open <-chan struct{}
}

func (g gated) Read(p []byte) (int, error) {
	<-g.open
	return g.Reader.Read(p)
}

func acpError(what string, err error) error {
	return team.Errorf(team.CodeUnavailable, "%s: %w", what, err).WithReason(team.ReasonACP).
		WithHint("the command must speak the Agent Client Protocol on its standard input and output")
}

func (a *Agent) hello(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hi, err := a.conn.Initialize(ctx, acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	if err != nil {
		return err
	}
	if hi.ProtocolVersion != acp.ProtocolVersionNumber {
		return fmt.Errorf("the agent speaks protocol version %d, not %d", hi.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	servers := []acp.McpServer{}
	if t := a.in.Tools; t.Command != "" {
		s := &acp.McpServerStdio{Name: t.Name, Command: t.Command, Args: t.Args, Env: []acp.EnvVariable{}}
		for k, v := range t.Env {
			s.Env = append(s.Env, acp.EnvVariable{Name: k, Value: v})
		}
		servers = append(servers, acp.McpServer{Stdio: s})
	}
	session, err := a.conn.NewSession(ctx, acp.NewSessionRequest{Cwd: a.in.Dir, McpServers: servers})
	if err != nil {
		return err
	}
	a.session = session.SessionId
	if m := session.Modes; m != nil {
		for _, one := range m.AvailableModes {
			a.modes = append(a.modes, string(one.Id))
		}
		a.nowIn(string(m.CurrentModeId))
	}
	return nil
}

func (a *Agent) nowIn(mode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = mode
}

func (a *Agent) nowMode() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mode
}

// SetMode sets the session's closest mode, also during a turn; has is false if the session has no
// suitable mode.
func (a *Agent) SetMode(ctx context.Context, mode team.Mode) (has bool, err error) {
	want := adapter.ACPModes(mode)
	is := a.nowMode()
	if slices.Contains(want, is) && !slices.Contains(a.modes, want[0]) {
		return true, nil // the best mode that the session has
	}
	for _, id := range want {
		if !slices.Contains(a.modes, id) {
			continue
		}
		if id == is {
			return true, nil
		}
		if _, err := a.conn.SetSessionMode(ctx, acp.SetSessionModeRequest{SessionId: a.session, ModeId: acp.SessionModeId(id)}); err != nil {
			return true, fmt.Errorf("set mode %s: %w", id, err)
		}
		a.nowIn(id)
		return true, nil
	}
	return false, nil
}

// Prompt sends a text to the agent and returns the stop reason when the turn is over. It calls
// begun once, at the first sign that the agent has the text. A call during another one fails with
// CodeConflict; a *team.LimitReached is a usage limit. If it fails because the agent is gone, Done
// is closed when it returns.
func (a *Agent) Prompt(ctx context.Context, text string, begun func()) (string, error) {
	a.mu.Lock()
	if a.begun != nil {
		a.mu.Unlock()
		return "", team.Errorf(team.CodeConflict, "a turn is running")
	}
	a.begun = sync.OnceFunc(begun)
	a.turn, a.end = context.WithCancel(context.WithoutCancel(ctx))
	first, end := a.begun, a.end
	a.mu.Unlock()
	defer func() {
		end()
		a.mu.Lock()
		a.begun, a.turn, a.end = nil, nil, nil
		a.newline()
		a.mu.Unlock()
	}()
	out, err := a.conn.Prompt(ctx, acp.PromptRequest{SessionId: a.session, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
	if err != nil {
		select {
		case <-a.conn.Done(): // the connection of a process ends before it can be waited for
			a.lost()
		default:
		}
		select {
		case <-a.gone:
			return "", team.Errorf(team.CodeUnavailable, "the agent ended in its turn: %w", errors.Join(err, a.exit()))
		default:
		}
		if limit := limitOf(err, time.Now()); limit != nil {
			return "", fmt.Errorf("prompt: %w", limit)
		}
		return "", fmt.Errorf("prompt: %w", err)
	}
	a.count(out)
	first() // an answer is a sign too
	return string(out.StopReason), nil
}

// Cancel asks the agent to end its turn. It also cancels the turn's pending permission requests,
// as the protocol requires: the agent may wait for those answers before it ends the turn.
func (a *Agent) Cancel(ctx context.Context) error {
	if err := a.conn.Cancel(ctx, acp.CancelNotification{SessionId: a.session}); err != nil {
		return fmt.Errorf("cancel the turn: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.end != nil {
		a.end()
	}
	return nil
}

// exit returns how the process exited, if it does so soon.
func (a *Agent) exit() error {
	t := time.NewTimer(exitSoon)
	defer t.Stop()
	select {
	case <-a.exited:
		return a.err
	case <-t.C:
		return nil
	}
}

// exitSoon bounds the wait for the status of a process that has closed its connection.
const exitSoon = time.Second

// Done is closed when the agent can be given nothing more: it has exited, or has closed its end of
// the connection.
func (a *Agent) Done() <-chan struct{} { return a.gone }

// Close ends the agent: it closes its input, then terminates and kills what is left of its process
// group. The error is the agent's exit error if it exited by itself.
func (a *Agent) Close() error {
	var own error
	select {
	case <-a.exited:
		own = a.err
	default:
	}
	a.stdin.Close()
	pid := a.cmd.Process.Pid
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = syscall.Kill(-pid, sig)
		t := time.NewTimer(4 * time.Second)
		select {
		case <-a.exited:
		case <-t.C:
		}
		t.Stop()
	}
	<-a.exited
	<-a.conn.Done()
	a.stdout.Close()
	return own
}

// newline ends an unfinished line of Out; mu is held.
func (a *Agent) newline() {
	if a.inWord {
		fmt.Fprintln(a.in.Out)
		a.inWord = false
	}
}

// acpClient handles the agent's requests. The agent accesses files and terminals directly, since
// it runs on the same machine.
type acpClient struct{ *Agent }

var _ acp.Client = acpClient{}

func (c acpClient) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.mu.Lock()
	begun := c.begun
	u := n.Update
	switch {
	case u.CurrentModeUpdate != nil:
		c.mode = string(u.CurrentModeUpdate.CurrentModeId)
	case u.UsageUpdate != nil:
		c.costs(u.UsageUpdate.Cost)
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		text := u.AgentMessageChunk.Content.Text.Text
		fmt.Fprint(c.in.Out, text)
		c.inWord = !strings.HasSuffix(text, "\n")
	case u.ToolCall != nil:
		c.newline()
		fmt.Fprintf(c.in.Out, "* %s\n", u.ToolCall.Title)
	}
	c.mu.Unlock()
	// Lists of commands are no sign. Neither are the user's own messages, which repeat the prompt:
	// no session is loaded, so nothing is replayed.
	if begun != nil && (u.UserMessageChunk != nil || u.AgentMessageChunk != nil || u.AgentThoughtChunk != nil || u.ToolCall != nil || u.Plan != nil) {
		begun()
	}
	return nil
}

func (c acpClient) RequestPermission(ctx context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	turn := c.turn
	c.mu.Unlock()
	if turn != nil {
		defer context.AfterFunc(turn, cancel)()
	}
	ask := team.Ask{ID: string(r.ToolCall.ToolCallId), For: team.WaitPermission}
	if r.ToolCall.Kind != nil {
		ask.Tool = string(*r.ToolCall.Kind)
	}
	if r.ToolCall.Title != nil {
		ask.Description = *r.ToolCall.Title
	}
	if r.ToolCall.RawInput != nil {
		if b, err := json.Marshal(r.ToolCall.RawInput); err == nil {
			ask.Input = b
		}
	}
	if r.ToolCall.Kind != nil && *r.ToolCall.Kind == acp.ToolKindSwitchMode {
		planOf(&ask, r.ToolCall)
	}
	var reply team.Reply
	if c.in.Permit != nil {
		var err error
		if reply, err = c.in.Permit(ctx, ask); err != nil {
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil // an unanswered request counts as cancelled
		}
	}
	want := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	if reply.Allow {
		want = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce} // never AllowAlways
	}
	if reply.Allow && reply.Mode != "" { // a plan: its options are the modes to continue in
		for _, id := range adapter.ACPModes(reply.Mode) {
			for _, o := range r.Options {
				if string(o.OptionId) == id && (o.Kind == acp.PermissionOptionKindAllowOnce || o.Kind == acp.PermissionOptionKindAllowAlways) {
					return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
				}
			}
		}
	}
	for _, k := range want {
		for _, o := range r.Options {
			if o.Kind == k {
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
			}
		}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

// planOf turns a request to leave plan mode into a request for approval of the plan, if the agent
// includes the plan's text.
func planOf(ask *team.Ask, call acp.ToolCallUpdate) {
	var in struct {
		Plan         string `json:"plan"`
		PlanFilePath string `json:"planFilePath"`
	}
	_ = json.Unmarshal(ask.Input, &in) // otherwise the content may have the plan
	for _, c := range call.Content {
		if in.Plan == "" && c.Content != nil && c.Content.Content.Text != nil {
			in.Plan = c.Content.Content.Text.Text
		}
	}
	if strings.TrimSpace(in.Plan) != "" {
		ask.For, ask.Plan, ask.PlanPath = team.WaitPlan, in.Plan, in.PlanFilePath
	}
}

func (acpClient) ReadTextFile(context.Context, acp.ReadTextFileRequest) (acp.ReadTextFileResponse, error) {
	return acp.ReadTextFileResponse{}, acp.NewMethodNotFound("fs/read_text_file")
}

func (acpClient) WriteTextFile(context.Context, acp.WriteTextFileRequest) (acp.WriteTextFileResponse, error) {
	return acp.WriteTextFileResponse{}, acp.NewMethodNotFound("fs/write_text_file")
}

func (acpClient) CreateTerminal(context.Context, acp.CreateTerminalRequest) (acp.CreateTerminalResponse, error) {
	return acp.CreateTerminalResponse{}, acp.NewMethodNotFound("terminal/create")
}

func (acpClient) KillTerminal(context.Context, acp.KillTerminalRequest) (acp.KillTerminalResponse, error) {
	return acp.KillTerminalResponse{}, acp.NewMethodNotFound("terminal/kill")
}

func (acpClient) TerminalOutput(context.Context, acp.TerminalOutputRequest) (acp.TerminalOutputResponse, error) {
	return acp.TerminalOutputResponse{}, acp.NewMethodNotFound("terminal/output")
}

func (acpClient) ReleaseTerminal(context.Context, acp.ReleaseTerminalRequest) (acp.ReleaseTerminalResponse, error) {
	return acp.ReleaseTerminalResponse{}, acp.NewMethodNotFound("terminal/release")
}

func (acpClient) WaitForTerminalExit(context.Context, acp.WaitForTerminalExitRequest) (acp.WaitForTerminalExitResponse, error) {
	return acp.WaitForTerminalExitResponse{}, acp.NewMethodNotFound("terminal/wait_for_exit")
}
