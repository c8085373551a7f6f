package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"
)

// ServeACP is an agent on the Agent Client Protocol, until in ends. A second prompt
// while one runs cancels the first, as one of the real ones was seen to do. With approve
// it asks before each tool call. In its plan mode it changes nothing.
func ServeACP(ctx context.Context, model, dir string, approve bool, in io.Reader, out io.Writer) {
	ctx, stop := context.WithCancel(ctx)
	a := &acpAgent{engine: NewEngine(model, dir), over: make(chan string, 1)}
	a.engine.Said = func(text string) { a.update(acp.UpdateAgentMessageText(text)) }
	a.engine.Failed = func(_ context.Context, words string) bool {
		a.mu.Lock()
		a.failed = words
		a.mu.Unlock()
		return false
	}
	a.engine.Active = func(turn string) {
		if turn == "" {
			a.finish()
		}
	}
	a.engine.Wrote = func(_ string, _ any, used Used) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.used.InputTokens += int(used.Input)
		a.used.OutputTokens += int(used.Output)
	}
	a.engine.Allow = func(ctx context.Context, call, tool string, input json.RawMessage) bool {
		a.update(acp.StartToolCall(acp.ToolCallId(call), tool))
		switch {
		case tool == "ExitPlanMode":
			return a.leavePlan(ctx, call, input)
		case a.in() == "plan" && !harmless(tool, input):
			return false
		}
		return !approve || a.ask(ctx, call, tool, input)
	}
	a.conn = acp.NewAgentSideConnection(a, out, in)
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	var run sync.WaitGroup
	run.Go(func() { a.engine.Run(ctx) })
	<-a.conn.Done()
	stop()
	run.Wait()
}

// acpProgram serves on standard input and output.
func acpProgram([]string) error {
	dir, err := os.Getwd()
	if err == nil {
		ServeACP(context.Background(), os.Getenv("ANTHROPIC_BASE_URL"), dir, false, os.Stdin, os.Stdout)
	}
	return err
}

type acpAgent struct {
	engine *Engine
	conn   *acp.AgentSideConnection

	mu        sync.Mutex
	mode      string
	over      chan string // of the current prompt
	cancelled bool
	failed    string    // the error that ended the turn
	used      acp.Usage // in this turn
}

var _ acp.Agent = (*acpAgent)(nil)

// in is the mode that the session is in.
func (a *acpAgent) in() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mode
}

// leavePlan submits a plan; the answer is the mode in which to continue.
func (a *acpAgent) leavePlan(ctx context.Context, call string, input json.RawMessage) bool {
	var raw any
	if json.Unmarshal(input, &raw) != nil {
		return false
	}
	r, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: acpSession,
		ToolCall:  acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(call), Title: acp.Ptr("Ready to code?"), Kind: acp.Ptr(acp.ToolKindSwitchMode), RawInput: raw},
		Options: []acp.PermissionOption{
			{OptionId: "acceptEdits", Name: "Yes, and accept edits", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionId: "default", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "plan", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	if err != nil || r.Outcome.Selected == nil || r.Outcome.Selected.OptionId == "plan" {
		return false
	}
	a.mu.Lock()
	a.mode = string(r.Outcome.Selected.OptionId)
	a.mu.Unlock()
	a.update(acp.SessionUpdate{CurrentModeUpdate: &acp.SessionCurrentModeUpdate{CurrentModeId: acp.SessionModeId(r.Outcome.Selected.OptionId)}})
	return true
}

const acpSession = acp.SessionId("acp-1")

func (a *acpAgent) update(u acp.SessionUpdate) {
	_ = a.conn.SessionUpdate(context.Background(), acp.SessionNotification{SessionId: acpSession, Update: u}) // the client may have gone
}

func (a *acpAgent) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	reason := string(acp.StopReasonEndTurn)
	if a.cancelled {
		reason = string(acp.StopReasonCancelled)
	}
	select {
	case a.over <- reason:
	default:
	}
}

func (a *acpAgent) ask(ctx context.Context, call, tool string, input json.RawMessage) bool {
	var raw any
	if json.Unmarshal(input, &raw) != nil {
		return false
	}
	r, err := a.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: acpSession,
		ToolCall:  acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(call), Title: acp.Ptr(tool), Kind: acp.Ptr(acp.ToolKindExecute), RawInput: raw},
		Options: []acp.PermissionOption{
			{OptionId: "always", Name: "Always", Kind: acp.PermissionOptionKindAllowAlways},
			{OptionId: "yes", Name: "Yes", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "no", Name: "No", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	return err == nil && r.Outcome.Selected != nil && r.Outcome.Selected.OptionId == "yes"
}

func (a *acpAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (a *acpAgent) NewSession(context.Context, acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	modes := []acp.SessionMode{{Id: "default", Name: "Default"}, {Id: "acceptEdits", Name: "Accept edits"}, {Id: "plan", Name: "Plan"}}
	return acp.NewSessionResponse{SessionId: acpSession, Modes: &acp.SessionModeState{AvailableModes: modes, CurrentModeId: "default"}}, nil
}

func (a *acpAgent) Prompt(ctx context.Context, p acp.PromptRequest) (acp.PromptResponse, error) {
	var text string
	for _, b := range p.Prompt {
		if b.Text != nil {
			text += b.Text.Text
		}
	}
	if a.engine.Turn() != "" {
		a.engine.Interrupt()
	}
	a.mu.Lock()
	a.cancelled, a.failed, a.used = false, "", acp.Usage{}
	over := make(chan string, 1)
	a.over = over
	a.mu.Unlock()
	a.engine.Send(Text{Text: text}, false)
	select {
	case reason := <-over:
		a.mu.Lock()
		failed, used := a.failed, a.used
		a.mu.Unlock()
		switch {
		case strings.Contains(failed, "refuse"):
			reason = string(acp.StopReasonRefusal)
		case failed != "":
			return acp.PromptResponse{}, acp.NewInternalError(map[string]string{"details": failed})
		}
		return acp.PromptResponse{StopReason: acp.StopReason(reason), Usage: &used}, nil
	case <-ctx.Done(): // cancelled: the turn ends in a moment
		a.engine.Interrupt()
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	}
}

func (a *acpAgent) Cancel(context.Context, acp.CancelNotification) error {
	a.mu.Lock()
	a.cancelled = true
	a.mu.Unlock()
	a.engine.Interrupt()
	return nil
}

var errNotHere = errors.New("not here")

func (a *acpAgent) Authenticate(context.Context, acp.AuthenticateRequest) (acp.AuthenticateResponse, error) {
	return acp.AuthenticateResponse{}, nil
}

func (a *acpAgent) SetSessionMode(_ context.Context, r acp.SetSessionModeRequest) (acp.SetSessionModeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mode = string(r.ModeId)
	return acp.SetSessionModeResponse{}, nil
}

func (a *acpAgent) CloseSession(context.Context, acp.CloseSessionRequest) (acp.CloseSessionResponse, error) {
	return acp.CloseSessionResponse{}, errNotHere
}

func (a *acpAgent) ListSessions(context.Context, acp.ListSessionsRequest) (acp.ListSessionsResponse, error) {
	return acp.ListSessionsResponse{}, errNotHere
}

func (a *acpAgent) ResumeSession(context.Context, acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, errNotHere
}

func (a *acpAgent) SetSessionConfigOption(context.Context, acp.SetSessionConfigOptionRequest) (acp.SetSessionConfigOptionResponse, error) {
	return acp.SetSessionConfigOptionResponse{}, errNotHere
}
