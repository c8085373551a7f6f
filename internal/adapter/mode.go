package adapter

import (
	"encoding/json"
	"slices"

	"github.com/teamctl/teamctl/team"
)

// Changes of the mode while the agent runs, through an approved plan or on request.

// When a mode takes effect in a running agent; "" means at once, or already.
const (
	WithItsNextMessage = "with its next message"
	WithItsNextRequest = "when its plan, or its next request for permission, is approved"
	AtItsNextStart     = "at its next start"
)

// SameMode reports whether two modes are the same for an agent of the link's kind.
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

// CodexTurn returns the parameters of turn/start that put the thread into a mode from that turn
// on. They repeat the writable directories: omitted ones are not allowed.
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

// OpencodeAgent returns the agent of opencode for a prompt; "" is the user's default. A prompt
// without an agent goes to the default, regardless of how the program was started.
func OpencodeAgent(l Link, mode team.Mode) string {
	switch {
	case opencodeMode(mode) == "plan":
		return "plan"
	case opencodeMode(l.Mode) == "plan":
		return "build"
	}
	return ""
}

// opencodeMode returns the part of a mode that is set in its configuration, which is read at the
// start.
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

// OpencodeWhen returns when a mode takes effect in a running opencode. Each prompt says whether it
// plans; what it may do without asking is in its configuration.
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

// ACPModes returns the ids of session modes seen in agents on the Agent Client Protocol for a
// mode, best first. An agent that has none of them cannot be put into the mode.
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

// setMode returns the permission update that sets a mode of Claude Code.
func setMode(mode team.Mode) json.RawMessage {
	return json.RawMessage(oneLine([]any{map[string]any{
		"type": "setMode", "mode": claudeMode(inMode(mode)), "destination": "session",
	}}))
}

// claudeNamed returns a mode of Claude Code by the name that all its versions accept.
func claudeNamed(mode string) string {
	if mode == "manual" {
		return string(team.ModeDefault)
	}
	return mode
}

// Planning reports whether the hook's input says that the agent is in plan mode.
func (in HookIn) Planning() bool { return in.PermissionMode == string(team.ModePlan) }

// inMode returns an Input with only a mode.
func inMode(m team.Mode) Input { return Input{MemberSpec: team.MemberSpec{Mode: m}} }
