package adapter

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
)

// stopFailure replaces Stop when an API error has ended the turn. Its answer is ignored.
const stopFailure = "StopFailure"

// Wait is the event of the hook that waits in the background for mail.
const Wait = "Wait"

// HookIn holds the used fields of a hook's standard input.
type HookIn struct {
	Conversation   string          `json:"session_id"`
	Transcript     string          `json:"transcript_path"`
	Turn           string          `json:"turn_id"`
	Tool           string          `json:"tool_name"`
	ToolUseID      string          `json:"tool_use_id"`
	Input          json.RawMessage `json:"tool_input"`
	Suggestions    json.RawMessage `json:"permission_suggestions"`
	StopActive     bool            `json:"stop_hook_active"`
	Helper         string          `json:"agent_id"` // of a sub-agent that the agent has started
	Source         string          `json:"source"`   // of SessionStart: startup, resume, clear, compact
	Reason         string          `json:"reason"`
	Error          string          `json:"error"`                  // of StopFailure: rate_limit, server_error, ...
	Last           string          `json:"last_assistant_message"` // of the end of a turn: also the text of the error
	Message        string          `json:"message"`
	Notification   string          `json:"notification_type"`
	Details        json.RawMessage `json:"details"`   // of a notification
	Timestamp      string          `json:"timestamp"` // of the event
	PermissionMode string          `json:"permission_mode"`
	Prompt         string          `json:"prompt"`          // that begins a turn
	Answer         string          `json:"prompt_response"` // of the model, at the end of a turn
	Failed         string          `json:"-"`               // the turn's error, from its transcript
}

// HookReply is the output and exit of a hook.
type HookReply struct {
	Stdout string
	Stderr string
	Exit   int
}

// Decision answers a permission request; nil leaves it to the CLI's own dialog.
type Decision struct {
	Allow   bool
	Message string
	Input   json.RawMessage // changed by whoever answered
	Updates json.RawMessage // of the permissions, a list in the CLI's own format; empty for none
	Mode    team.Mode       // in which it continues; "" keeps the current one
}

// hookEvent is one event of one CLI: what it shows about the agent, and whether mail can be given
// there.
type hookEvent struct {
	activity team.Activity
	mail     string // "context", "block", "" for none
	ready    bool
	end      bool // the turn is over
}

var hookTables = sync.OnceValue(func() map[string]map[string]hookEvent {
	return map[string]map[string]hookEvent{
		Claude: {
			"SessionStart":      {ready: true, activity: team.Idle},
			"UserPromptSubmit":  {activity: team.Working, mail: "context"},
			"PreToolUse":        {activity: team.Working},
			"PostToolUse":       {activity: team.Working, mail: "context"},
			"PermissionRequest": {activity: team.Waiting},
			"Notification":      {},
			"Stop":              {activity: team.Idle, mail: "block", end: true},
			stopFailure:         {activity: team.Idle, end: true},
			"SessionEnd":        {activity: team.ActivityUnknown, end: true},
			Wait:                {mail: "wake"},
		},
		Codex: {
			"SessionStart":      {ready: true, activity: team.Working},
			"UserPromptSubmit":  {activity: team.Working, mail: "context"},
			"PreToolUse":        {activity: team.Working},
			"PostToolUse":       {activity: team.Working, mail: "context"},
			"PermissionRequest": {activity: team.Waiting},
			"Stop":              {activity: team.Idle, mail: "block", end: true},
			"Interrupt":         {activity: team.Idle, end: true},
			"SessionEnd":        {activity: team.ActivityUnknown, end: true},
		},
		Gemini: {
			"SessionStart": {ready: true, activity: team.Idle},
			"BeforeAgent":  {activity: team.Working, mail: "context"},
			"BeforeTool":   {activity: team.Working},
			"AfterTool":    {activity: team.Working, mail: "context"},
			"AfterAgent":   {activity: team.Idle, mail: "block", end: true},
			"Notification": {},
			"SessionEnd":   {activity: team.ActivityUnknown, end: true},
		},
	}
})

// HookEvents lists the events of a CLI that have hooks.
func HookEvents(cli string) []string {
	var out []string
	for e := range hookTables()[cli] {
		out = append(out, e)
	}
	slices.Sort(out)
	return out
}

// KnownHook reports whether a hook exists.
func KnownHook(cli, event string) bool {
	_, ok := hookTables()[cli][event]
	return ok
}

// AnswersAtOnce reports whether the hook of an event waits neither for mail nor for a person.
func AnswersAtOnce(cli, event string) bool {
	return KnownHook(cli, event) && event != Wait && event != "PermissionRequest"
}

// ParseHook parses a hook's standard input. Anything not understood is left empty: a hook never
// fails because of it.
func ParseHook(data []byte) HookIn {
	var in HookIn
	_ = json.Unmarshal(data, &in) // fields before an error are set
	return in
}

// What describes the tool call in one line for the person who decides: the command, the file, or
// the questions.
func (in HookIn) What() string {
	var args struct {
		Command  string `json:"command"`
		FilePath string `json:"file_path"`
		URL      string `json:"url"`
	}
	_ = json.Unmarshal(in.Input, &args) // of another tool: then the result is empty
	for _, s := range []string{args.Command, args.FilePath, args.URL} {
		if s != "" {
			return s
		}
	}
	var asked []string
	for _, q := range in.Questions() {
		asked = append(asked, q.String())
	}
	return strings.Join(asked, " ")
}

// Plan returns the plan for which a tool call requests approval; "" for other calls.
func (in HookIn) Plan() string {
	if in.Tool != exitPlan {
		return ""
	}
	var args struct {
		Plan string `json:"plan"`
	}
	_ = json.Unmarshal(in.Input, &args) // of another shape: then there is no plan
	switch path := in.PlanPath(); {
	case args.Plan != "":
		return args.Plan
	case path != "":
		return "The plan stands in " + path
	}
	return noPlan
}

// noPlan stands for the plan of an agent that wants to leave plan mode without one.
const noPlan = "The agent has written no plan, and wants to leave its plan mode."

// PlanPath returns the file with the plan of a tool call, if the call names it.
func (in HookIn) PlanPath() string {
	var args struct {
		Path string `json:"planFilePath"`
	}
	_ = json.Unmarshal(in.Input, &args) // of another shape: then the path is empty
	return args.Path
}

// exitPlan is the tool with which Claude Code submits a plan.
const exitPlan = "ExitPlanMode"

// EndsTool reports whether the event follows a tool's run.
func EndsTool(cli, event string) bool {
	return KnownHook(cli, event) && (event == "PostToolUse" || event == "AfterTool")
}

// EndsAsks reports whether the event shows that no dialog can be open: a turn begins or is over,
// or the program starts or exits.
func EndsAsks(cli, event string) bool {
	switch event {
	case "UserPromptSubmit", "BeforeAgent", "SessionStart":
		return KnownHook(cli, event)
	}
	return EndsTurn(cli, event)
}

// HooksAtStart reports whether a program calls a hook at its start, before its first turn.
func HooksAtStart(cli string) bool { return cli == Claude || cli == Gemini }

// Compacts reports whether the event shows that the conversation was compacted. Gemini CLI
// excludes the prompt to be sent from compaction, so nothing is lost there.
func Compacts(cli, event string, in HookIn) bool {
	return cli == Claude && event == "SessionStart" && in.Source == "compact"
}

// AskOf returns the request that an event reports and that only its dialog can answer; ok is false
// if there is none. The id is the same however often the event is read.
func AskOf(cli, event string, in HookIn) (a team.Ask, ok bool) {
	if cli != Gemini || event != "Notification" || in.Notification != "ToolPermission" {
		return a, false
	}
	var d struct {
		Type, Title, Command, FileName, FilePath, ServerName, ToolName, Prompt string
	}
	if json.Unmarshal(in.Details, &d) != nil || d.Type == "" {
		return a, false
	}
	a = team.Ask{ID: "dialog-" + in.Conversation + "-" + in.Timestamp, For: team.WaitPermission, Keys: true}
	shows := ""
	switch d.Type {
	case "exec", "sandbox_expansion":
		a.Tool, a.Description, a.Command = "run_shell_command", d.Command, d.Command
	case "edit":
		a.Tool, a.Description, a.Paths, shows = "edit", d.FilePath, []string{d.FilePath}, d.FileName
	case "mcp":
		a.Tool, a.Description = "mcp_"+d.ServerName+"_"+d.ToolName, d.ToolName
	default:
		a.Tool, a.Description = d.Type, d.Prompt
	}
	if a.Description == "" {
		return a, false // nothing distinguishes its dialog from another
	}
	if shows == "" {
		shows = a.Description
	}
	a.Input, _ = json.Marshal(Dialog{d.Type, d.Title, shows}) // strings only: it cannot fail
	return a, true
}

// Dialog is the Input of an Ask that only its dialog can answer.
type Dialog struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	Shows string `json:"shows"` // text that this dialog shows, and no other one
}

// TakesMail returns how mail can be given at this event: "context" adds to the running turn,
// "block" continues a turn at its end, "wake" wakes an idle agent; "" for not at all.
func TakesMail(cli, event string) string { return hookTables()[cli][event].mail }

// EndsTurn reports whether the turn ends with this event, unless the hook blocks that.
func EndsTurn(cli, event string) bool { return hookTables()[cli][event].end }

// EndsSession reports whether the program exits with this event, which may be in the middle of a
// turn.
func EndsSession(cli, event string) bool { return KnownHook(cli, event) && event == "SessionEnd" }

// Interrupts reports whether a turn ends with this event because somebody has interrupted it.
func Interrupts(cli, event string) bool { return KnownHook(cli, event) && event == "Interrupt" }

// HookSees returns what an event shows about the agent. blocked: the hook continues the turn.
func HookSees(cli, event string, in HookIn, blocked bool, at time.Time) team.Observation {
	e := hookTables()[cli][event]
	o := team.Observation{
		Tier: team.TierHook, Activity: e.activity, Ready: e.ready, At: at, Source: "hook " + event,
		Conversation: in.Conversation, Turn: in.Turn,
	}
	if cli == Claude {
		o.Mode, _ = team.ParseMode(claudeNamed(in.PermissionMode)) // the program's own modes are unknown
	}
	switch {
	case blocked:
		o.Activity = team.Working
	case event == "PermissionRequest":
		o.For, o.Evidence = team.WaitPermission, []string{in.Tool}
		switch in.Tool {
		case exitPlan:
			o.For = team.WaitPlan
		case askQuestion:
			o.For = team.WaitQuestion
		}
	case event == "Notification":
		switch in.Notification {
		case "permission_prompt", "ToolPermission":
			o.Activity, o.For, o.Evidence = team.Waiting, team.WaitPermission, []string{in.Message}
			if a, ok := AskOf(cli, event, in); ok {
				o.Ask, o.Evidence = &a, append(o.Evidence, a.Description)
			}
		case "elicitation_dialog":
			o.Activity, o.For, o.Evidence = team.Waiting, team.WaitQuestion, []string{in.Message}
		}
	case event == stopFailure:
		o.Evidence = []string{in.Error, in.Last}
		if until, ok := LimitIn(cli, in.Last, at); ok {
			o.Activity, o.Until = team.Limited, until
			break
		}
		o.Failed = cmp.Or(in.Last, "API error: "+in.Error)
	case in.Failed != "" && EndsTurn(cli, event):
		if _, ok := LimitIn(cli, in.Failed, at); !ok { // its screen shows the end of the limit
			o.Failed, o.Evidence = in.Failed, []string{in.Failed}
		}
	case event == "Interrupt":
		o.Interrupted = true
	case event == "SessionStart" && in.Source == "compact":
		o.Activity = "" // possibly during a turn
	}
	// The question whether a loop was detected appears after the hook at the end of the turn.
	o.Confirm = cli == Gemini && o.Activity == team.Idle
	return o
}

// Decide returns the answer of a PermissionRequest hook.
func Decide(d *Decision) HookReply {
	if d == nil {
		return HookReply{}
	}
	out := map[string]any{"behavior": "allow"}
	if !d.Allow {
		out = map[string]any{"behavior": "deny", "message": d.Message}
	} else {
		if len(d.Input) > 0 {
			out["updatedInput"] = d.Input
		}
		if u := d.updates(); len(u) > 0 {
			out["updatedPermissions"] = u
		}
	}
	return HookReply{Stdout: oneLine(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PermissionRequest", "decision": out}}) + "\n"}
}

// updates returns all permission updates of an answer, the mode last: an update may also set one,
// and an explicitly chosen mode wins.
func (d *Decision) updates() []json.RawMessage {
	var out, mode []json.RawMessage
	_ = json.Unmarshal(d.Updates, &out) // not a list: no updates
	if d.Mode != "" {
		_ = json.Unmarshal(setMode(d.Mode), &mode) // made here: it cannot fail
	}
	return append(out, mode...)
}

// WakeText is typed to wake an agent whose hooks then give it the mail.
const WakeText = "There is mail from your team."

// Typed returns a message in the form in which it is typed, if there is no other way.
func Typed(e Enter, text string) string {
	if e.Plain {
		return strings.Join(strings.Fields(text), " ")
	}
	return text
}

// BeginsTurn reports whether a turn begins with this event, BeginsTool whether a tool is about to
// run.
func BeginsTurn(cli, event string) bool {
	return KnownHook(cli, event) && (event == "UserPromptSubmit" || event == "BeforeAgent")
}

// BeginsTool is documented at BeginsTurn.
func BeginsTool(cli, event string) bool {
	return KnownHook(cli, event) && (event == "PreToolUse" || event == "BeforeTool")
}
