package adapter

import (
	"encoding/json"
	"slices"

	"github.com/teamctl/teamctl/team"
)

// What becomes of a mode that changes while the agent runs: an approved plan, or
// somebody's word.

// When a mode takes effect in a running agent; "" is at once, or already.
const (
	WithItsNextMessage = "with its next message"
	WithItsNextRequest = "when its plan, or its next request for permission, is approved"
	AtItsNextStart     = "at its next start"
)

// SameMode reports whether two modes are the same to an agent of the link's kind.
func SameMode(l Link, a, b team.Mode) bool {
	if a == "" {
		a = team.ModeDefault
	}
	if b == "" {
		b = team.ModeDefault
	}
	if a == b {
		return true
	}
	switch l.Agent {
	case Codex:
		return slices.Equal(codexMode(inMode(a)), codexMode(inMode(b)))
	case Opencode:
		return opencodeMode(a) == opencodeMode(b)
	case Gemini:
		return geminiMode(inMode(a)) == geminiMode(inMode(b))
	case Claude:
		return claudeMode(inMode(a)) == claudeMode(inMode(b))
	}
	return false
}

// CodexTurn are the parameters of turn/start that put the thread into a mode from that
// turn on. What it may write to beside its directory has to be said again: what is left
// out is not allowed.
func CodexTurn(l Link, mode team.Mode) map[string]any {
	flags := codexMode(inMode(mode))
	if len(flags) != 4 {
		return map[string]any{"approvalPolicy": "never", "sandboxPolicy": map[string]any{"type": "dangerFullAccess"}}
	}
	sandbox := map[string]any{"type": "readOnly"}
	if flags[3] == "workspace-write" {
		roots := l.Writable
		if roots == nil {
			roots = []string{}
		}
		sandbox = map[string]any{"type": "workspaceWrite", "writableRoots": roots}
	}
	return map[string]any{"approvalPolicy": flags[1], "sandboxPolicy": sandbox}
}

// OpencodeAgent is the agent of opencode that a prompt is for; "" is the person's
// default. A prompt that names none goes to the default, whatever the program was
// started with.
func OpencodeAgent(l Link, mode team.Mode) string {
	switch {
	case opencodeMode(mode) == "plan":
		return "plan"
	case opencodeMode(l.Mode) == "plan":
		return "build"
	}
	return ""
}

// opencodeMode is what of a mode its configuration holds, which is read at its start.
func opencodeMode(mode team.Mode) string {
	switch mode {
	case team.ModePlan, team.ModeDelegate:
		return "plan"
	case team.ModeAcceptEdits, team.ModeBypass:
		return string(mode)
	case team.ModeDefault, team.ModeDontAsk:
	}
	return ""
}

// OpencodeWhen says when a mode takes effect in an opencode that runs. Whether it plans
// goes with each prompt; what it may do without asking is in its configuration.
func OpencodeWhen(l Link, mode team.Mode) string {
	was, is := opencodeMode(l.Mode), opencodeMode(mode)
	switch {
	case was == is:
		return ""
	case is == "plan", is == "" && was == "plan":
		return WithItsNextMessage
	}
	return AtItsNextStart
}

// ACPModes are the ids of session modes that agents on the Agent Client Protocol were
// seen to have for a mode, the best first. What is not among those of an agent it cannot
// be put into.
func ACPModes(mode team.Mode) []string {
	normal := []string{"default", "manual", "build", "auto"}
	switch mode {
	case team.ModePlan, team.ModeDelegate:
		return []string{"plan", "architect", "read-only"}
	case team.ModeAcceptEdits:
		return append([]string{"acceptEdits", "autoEdit", "auto_edit"}, normal...)
	case team.ModeDontAsk:
		return append([]string{"dontAsk"}, normal...)
	case team.ModeBypass:
		return []string{"bypassPermissions", "yolo", "full-access"}
	case team.ModeDefault:
	}
	return normal
}

// setMode is the update of permissions with which Claude Code goes on in a mode.
func setMode(mode team.Mode) json.RawMessage {
	return json.RawMessage(oneLine([]any{map[string]any{
		"type": "setMode", "mode": claudeMode(inMode(mode)), "destination": "session",
	}}))
}

// claudeNamed is a mode of Claude Code by the name that all of its versions take.
func claudeNamed(mode string) string {
	if mode == "manual" {
		return string(team.ModeDefault)
	}
	return mode
}

// Planning reports whether the agent says with a hook that it is in plan mode.
func (in HookIn) Planning() bool { return in.PermissionMode == string(team.ModePlan) }

// inMode is an input with a mode alone.
func inMode(m team.Mode) Input { return Input{MemberSpec: team.MemberSpec{Mode: m}} }
