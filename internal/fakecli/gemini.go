package fakecli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// envRelaunched marks the second of the two processes of Gemini CLI.
const envRelaunched = "FAKE_GEMINI_CHILD"

// gemini is Gemini CLI 0.61.0: a process that runs itself again as its child, both
// deaf to SIGHUP.
func gemini(args []string) error {
	signal.Ignore(syscall.SIGHUP)
	if os.Getenv(envRelaunched) == "" {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		cmd := &exec.Cmd{Path: exe, Args: append([]string{"gemini"}, args...), Env: append(os.Environ(), envRelaunched+"=1"), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		return cmd.Run()
	}
	flags, _ := arguments(args, "--approval-mode", "-m", "--session-id", "--resume", "--prompt-interactive")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var settings struct {
		Hooks      map[string][]hookGroup
		MCPServers map[string]mcpServer
		Security   struct {
			EnvironmentVariableRedaction struct{ Allowed []string }
		}
	}
	if err := readJSON(os.Getenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"), &settings); err != nil {
		return err
	}
	id, resume := one(flags, "--session-id"), one(flags, "--resume")
	if resume != "" {
		id = resume
	}
	file, err := homeFile(".gemini", "tmp", id+".json")
	if err != nil {
		return err
	}
	e := NewEngine(os.Getenv("ANTHROPIC_BASE_URL"), dir)
	if err := conversation(e, file, resume != ""); err != nil {
		return err
	}
	t, err := newTerminal(look{prompt: "> ", bottom: geminiBottom})
	if err != nil {
		return err
	}
	chat, err := homeFile(".gemini", "tmp", "p", "chats", "session-"+id+".jsonl")
	if err != nil {
		return err
	}
	records := 0
	e.Wrote = func(role string, content any, used Used) {
		records++
		m := obj{"id": fmt.Sprintf("%d-%d", os.Getpid(), records), "type": "user", "content": content}
		if role == "assistant" {
			m["type"], m["tokens"] = "gemini", obj{"input": used.Input, "output": used.Output, "cached": 0, "thoughts": 0, "tool": 0}
		}
		if err := appendLine(chat, m); err != nil {
			t.say("", err.Error())
		}
	}
	var stop func()
	if e.Tools, stop, err = tools(ctx, settings.MCPServers, geminiEnv(settings.Security.EnvironmentVariableRedaction.Allowed), func(s string) string { return "mcp_" + s + "_" }); err != nil {
		return err
	}
	defer stop()
	h := &hookSet{events: settings.Hooks, ctx: ctx, base: obj{"session_id": id, "transcript_path": chat, "cwd": dir}}
	e.Free = func(tool string, input json.RawMessage) bool {
		return one(flags, "--approval-mode") == "yolo" || harmless(tool, input)
	}
	e.Allow = func(ctx context.Context, _, tool string, input json.RawMessage) bool {
		command := commandOf(input)
		h.run(ctx, "Notification", obj{
			"notification_type": "ToolPermission", "message": "Tool Confirm Shell Command requires execution",
			"timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
			"details":   obj{"type": "exec", "title": "Confirm Shell Command", "command": command, "rootCommand": "touch"},
		})
		return t.ask(ctx, []string{
			"", "╭" + rule, "│ ?  Shell " + command, "│", "│ " + command, "│", "│ Allow execution of: 'touch'?", "│",
			"│ ● 1. Allow once", "│   2. Allow for this session", "│   3. No, suggest changes (esc)", "╰" + rule,
		}) == "1"
	}
	e.Said = func(text string) { t.say("✦ ", text) }
	e.Failed = func(ctx context.Context, words string) bool { // what follows is AfterAgent
		t.say("✕ ", words)
		h.run(ctx, "AfterAgent", obj{"prompt_response": "", "stop_hook_active": false})
		return false
	}
	e.Compact = compactFile("gemini")
	e.Keeps = func(talk []message) []message { return talk[len(talk)-1:] } // what is about to be sent
	e.Prompted = func(ctx context.Context, text string) string {
		return h.run(ctx, "BeforeAgent", obj{"prompt": text}).context
	}
	e.Calls = func(tool string) { h.run(ctx, "BeforeTool", obj{"tool_name": tool}) }
	e.AfterTool = func(ctx context.Context, tool string) string {
		if c := h.run(ctx, "AfterTool", obj{"tool_name": tool}).context; c != "" {
			return "<hook_context>" + c + "</hook_context>"
		}
		return ""
	}
	e.Stop = func(ctx context.Context, said string) string {
		return h.run(ctx, "AfterAgent", obj{"prompt_response": said, "stop_hook_active": false}).block
	}
	e.Active = func(turn string) { t.working(turn != "") }
	t.line = func(text string) { // typed in mid-turn it waits for the end
		t.say("> ", text)
		e.Send(Text{Text: text}, false)
	}
	t.esc = func() { e.Interrupt() }
	h.run(ctx, "SessionStart", obj{"source": "startup"})
	if p := one(flags, "--prompt-interactive"); p != "" {
		t.line(p)
	}
	go e.Run(ctx)
	t.read()
	return nil
}

func geminiBottom(t *terminal) []string {
	var out []string
	if t.busy {
		out = append(out, "", " ⠏ Thinking… (esc to cancel, 3s)")
	}
	text := t.input
	if text == "" {
		text = "  Type your message or @path/to/file"
	}
	return append(out, "", strings.Repeat("▀", 60), " "+strings.TrimSpace("> "+text), strings.Repeat("▄", 60))
}

// geminiEnv is what an MCP server gets of the environment: nothing that is named like
// a secret, unless the settings allow it.
func geminiEnv(allowed []string) []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		if slices.Contains(allowed, name) || strings.HasPrefix(name, "GEMINI_CLI_") {
			return false
		}
		return slices.ContainsFunc([]string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "AUTH", "CREDENTIAL", "CREDS", "PRIVATE", "CERT"},
			func(word string) bool { return strings.Contains(strings.ToUpper(name), word) })
	})
}
