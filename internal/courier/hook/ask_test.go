package hook

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/approval"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

const askLs = `{"session_id":"c1","tool_name":"Bash","tool_input":{"command":"ls"}}`

// asking is a running PermissionRequest hook.
type asking struct {
	got    chan adapter.HookReply
	done   chan error
	cancel context.CancelFunc
	row    ledger.Approval
}

func (r *rig) ask(input string) *asking {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	a := &asking{got: make(chan adapter.HookReply, 1), done: make(chan error, 1), cancel: cancel}
	r.t.Cleanup(cancel)
	go func() {
		a.done <- Run(ctx, r.in("PermissionRequest", input, func(h adapter.HookReply) error {
			a.got <- h
			return nil
		}))
	}()
	until(r.t, "a request", func() bool {
		pending, err := r.team.Approvals(ctx, false)
		if err != nil || len(pending) != 1 {
			return false
		}
		a.row = pending[0]
		return true
	})
	return a
}

func (r *rig) approval(id string) ledger.Approval {
	r.t.Helper()
	a, err := r.team.Ledger.Approval(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// The hook returns the answer; the mail with the same answer is not given as well.
func TestPermissionIsAnsweredByThePerson(t *testing.T) {
	t.Parallel()
	for _, approve := range []bool{true, false} {
		r := newRig(t)
		a := r.ask(askLs)
		_, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: approve, Feedback: "not here"})
		if err != nil {
			t.Fatal(err)
		}
		want := `"behavior":"allow"`
		if !approve {
			want = `"behavior":"deny","message":"not here"`
		}
		if h := <-a.got; !strings.Contains(h.Stdout, want) {
			t.Errorf("answer %s, want %s", h.Stdout, want)
		}
		if err := <-a.done; err != nil {
			t.Error(err)
		}
		if h := r.call("PostToolUse", askLs); h.Stdout != "" {
			t.Errorf("the answer came a second time: %s", h.Stdout)
		}
	}
}

// A tool call that was approved with another input runs with that input, never with the requested
// one.
func TestPermissionIsAnsweredWithAnotherInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.ask(askLs)
	_, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: true, UpdatedInput: json.RawMessage(`{"command":"ls -l"}`)})
	if err != nil {
		t.Fatal(err)
	}
	h := <-a.got
	var out struct {
		HookSpecificOutput struct {
			Decision struct {
				Behavior     string
				UpdatedInput struct{ Command string }
			}
		}
	}
	if err := json.Unmarshal([]byte(h.Stdout), &out); err != nil {
		t.Fatalf("%v: %s", err, h.Stdout)
	}
	if d := out.HookSpecificOutput.Decision; d.Behavior != "allow" || d.UpdatedInput.Command != "ls -l" {
		t.Errorf("answer %s", h.Stdout)
	}
	if err := <-a.done; err != nil {
		t.Error(err)
	}
}

// A plan that an agent submits becomes a plan request, and its approval changes the mode.
func TestPlanIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.ask(`{"session_id":"c1","tool_name":"ExitPlanMode","tool_input":{"plan":"# Split the parser","planFilePath":"/plans/a.md"}}`)
	if !strings.Contains(string(a.row.Payload), `"plan_file_path":"/plans/a.md"`) {
		t.Errorf("in the queue: %s", a.row.Payload)
	}
	if a.row.Kind != ledger.ApprovePlan || a.row.Subject != "# Split the parser" {
		t.Errorf("in the queue: %s %q", a.row.Kind, a.row.Subject)
	}
	if _, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: true, Mode: string(team.ModeAcceptEdits)}); err != nil {
		t.Fatal(err)
	}
	// The approval contains its input: without it Claude Code leaves its dialog open.
	const set = `"behavior":"allow","updatedInput":{"plan":"# Split the parser","planFilePath":"/plans/a.md"},` +
		`"updatedPermissions":[{"destination":"session","mode":"acceptEdits","type":"setMode"}]`
	if h := <-a.got; !strings.Contains(h.Stdout, set) {
		t.Errorf("answer %s", h.Stdout)
	}
	if err := <-a.done; err != nil {
		t.Error(err)
	}
	if m, err := r.team.Ledger.MemberBySession(t.Context(), r.ann.SessionKey); err != nil || m.Spec.Mode != team.ModeAcceptEdits {
		t.Errorf("its mode is %s, %v", m.Spec.Mode, err)
	}
}

// A question needs an answer: a plain approval is refused and changes nothing, also one by a rule.
func TestQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rules := team.Permissions{Allow: []team.PermissionRule{{Tool: "*"}}}
	if err := r.team.Ledger.Set(t.Context(), approval.SettingPermissions, rules); err != nil {
		t.Fatal(err)
	}
	a := r.ask(`{"session_id":"c1","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which one?","options":[{"label":"A"},{"label":"B"}]}]}}`)
	if a.row.Kind != ledger.ApprovePermission || !strings.Contains(a.row.Subject, "Which one? (A / B)") {
		t.Errorf("in the queue: %s %q", a.row.Kind, a.row.Subject)
	}
	for _, answers := range [][]string{nil, {"A", "B"}, {" "}} {
		_, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: true, Answers: answers})
		if !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("answered with %q: %v", answers, err)
		}
	}
	_, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Answers: []string{"A"}, Feedback: "no"})
	if !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("a no with an answer: %v", err)
	}
	if now := r.approval(a.row.RequestID); now.State != ledger.ApprovalPending {
		t.Fatalf("it is %s", now.State)
	}
	if _, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: true, Answers: []string{"B"}}); err != nil {
		t.Fatal(err)
	}
	if h := <-a.got; !strings.Contains(h.Stdout, `"behavior":"allow","updatedInput":{"answers":{"Which one?":"B"},"questions":[`) {
		t.Errorf("answer %s", h.Stdout)
	}
	if err := <-a.done; err != nil {
		t.Error(err)
	}
}

// An input without an answer leaves the question to the agent's own screen.
func TestQuestionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.ask(`{"session_id":"c1","tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which one?"}]}}`)
	if _, err := r.team.Answer(t.Context(), tool.Person(), tool.AnswerIn{ID: a.row.RequestID, Approve: true, UpdatedInput: json.RawMessage(`{"questions":[]}`)}); err != nil {
		t.Fatal(err)
	}
	if h := <-a.got; h.Stdout != "" {
		t.Errorf("answer %s", h.Stdout)
	}
	if err := <-a.done; err != nil {
		t.Error(err)
	}
}

// An agent that still reports plan mode after its plan was approved gets its new mode with the
// answer to its next request, together with any other permission updates.
func TestAnswerBringsModeAndUpdates(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const rule = `{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}`
	set := `{"destination":"session","mode":"dontAsk","type":"setMode"}`
	for _, step := range []struct {
		mode    team.Mode
		updates string
		want    string
	}{
		{team.ModePlan, "", `"decision":{"behavior":"allow"}`},
		{team.ModeDontAsk, "", `"updatedPermissions":[` + set + `]`},
		{team.ModeDontAsk, "[" + rule + "]", `"updatedPermissions":[` + rule + "," + set + `]`},
	} {
		if _, err := r.team.Ledger.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: r.ann.SessionKey, Mode: &step.mode}); err != nil {
			t.Fatal(err)
		}
		a := r.ask(`{"session_id":"c1","permission_mode":"plan","tool_name":"Bash","tool_input":{"command":"ls"}}`)
		in := tool.AnswerIn{ID: a.row.RequestID, Approve: true}
		if step.updates != "" {
			in.Updates = json.RawMessage(step.updates)
		}
		if _, err := r.team.Answer(t.Context(), tool.Person(), in); err != nil {
			t.Fatal(err)
		}
		if h := <-a.got; !strings.Contains(h.Stdout, step.want) {
			t.Errorf("in %s: answer %s, want %s", step.mode, h.Stdout, step.want)
		}
		if err := <-a.done; err != nil {
			t.Error(err)
		}
	}
}

// A request that a person answers at the agent's own dialog leaves the queue: the agent ends its
// hook, or continues.
func TestAnsweredAtItsOwnDialog(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]func(*rig, *asking){
		"the hook is ended": func(_ *rig, a *asking) { a.cancel() },
		"the tool has run": func(r *rig, _ *asking) {
			r.call("PostToolUse", `{"session_id":"c1","tool_name":"Bash","tool_input":{"command": "ls"}}`)
		},
		"the turn is over":   func(r *rig, _ *asking) { r.call("Stop", inC1) },
		"the next turn runs": func(r *rig, _ *asking) { r.call("UserPromptSubmit", inC1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := r.ask(askLs)
			over(r, a)
			<-a.done
			if h := <-a.got; h.Stdout != "" {
				t.Errorf("it decided: %s", h.Stdout)
			}
			if row := r.approval(a.row.RequestID); row.State != ledger.ApprovalExpired || !strings.Contains(row.Feedback, "own screen") {
				t.Errorf("it is %s: %s", row.State, row.Feedback)
			}
		})
	}
}

func TestOtherToolsAndOtherRequestsStayOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	caller, err := r.team.Identify(t.Context(), "ann@demo", r.vars[team.EnvToken])
	if err != nil {
		t.Fatal(err)
	}
	plan, err := r.team.AskPlan(t.Context(), caller, tool.PlanIn{Content: "by a tool"})
	if err != nil {
		t.Fatal(err)
	}
	dialog, err := r.team.Ledger.As("ann").Ask(t.Context(), ledger.AskIn{
		RequestID: "dialog-c1-x", Kind: ledger.ApprovePermission, Session: r.ann.SessionKey, Subject: "run_shell_command: ls",
		Payload: json.RawMessage(`{"id":"dialog-c1-x","for":"permission","tool":"run_shell_command","description":"ls"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	states := func(want ...ledger.ApprovalState) {
		t.Helper()
		for i, id := range []string{plan.RequestID, dialog.Approval.RequestID} {
			if got := r.approval(id); got.State != want[i] {
				t.Errorf("%s is %s, want %s", id, got.State, want[i])
			}
		}
	}
	r.call("PostToolUse", `{"session_id":"c1","tool_name":"Bash","tool_input":{"command":"pwd"}}`)
	states(ledger.ApprovalPending, ledger.ApprovalPending)
	r.call("PostToolUse", askLs)
	states(ledger.ApprovalPending, ledger.ApprovalExpired)
	r.call("Stop", inC1)
	states(ledger.ApprovalPending, ledger.ApprovalExpired)
}
