package fakecli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"
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
	flags, _ := arguments(args, "--approval-mode", "-m", "--session-id", "--resume", "--prompt-interactive", "--allowed-mcp-server-names")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	trusted, err := geminiTrusted(dir)
	if err != nil {
		return err
	}
	_, skip := flags["--skip-trust"]
	settings, err := geminiSettingsOf(trusted || skip)
	if err != nil {
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
	// Its shell has no files of git's configuration, and nothing that is named like a secret.
	e.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_AUTHOR_") }), "GIT_CONFIG_GLOBAL=/dev/null")
	t, err := newTerminal(look{prompt: "> ", bottom: geminiBottom})
	if err != nil {
		return err
	}
	chat, err := homeFile(".gemini", "tmp", "p", "chats", "session-"+id+".jsonl")
	if err != nil {
		return err
	}
	records := 0
	record := func(m obj) {
		records++
		m["id"] = fmt.Sprintf("%d-%d", os.Getpid(), records)
		if err := appendLine(chat, m); err != nil {
			t.say("", err.Error())
		}
	}
	e.Wrote = func(role string, content any, used Used) {
		m := obj{"type": "user", "content": content}
		if role == "assistant" {
			m["type"], m["tokens"] = "gemini", obj{"input": used.Input, "output": used.Output, "cached": 0, "thoughts": 0, "tool": 0}
		}
		record(m)
	}
	if only := flags["--allowed-mcp-server-names"]; len(only) > 0 {
		maps.DeleteFunc(settings.MCPServers, func(name string, _ mcpServer) bool { return !slices.Contains(only, name) })
	}
	var stop func()
	if e.Tools, stop, err = tools(ctx, settings.MCPServers, settings.environment(true), func(s string) string { return "mcp_" + s + "_" }); err != nil {
		return err
	}
	defer stop()
	h := &hookSet{events: settings.Hooks, ctx: ctx, env: settings.environment(false), base: obj{"session_id": id, "transcript_path": chat, "cwd": dir}}
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
	var said string // since the prompt
	var goesOn bool // with what AfterAgent has given
	e.Said = func(text string) { t.say("✦ ", text); said += text }
	e.Ended = func(_ string, err error) {
		if errors.Is(err, context.Canceled) { // it calls the hook then as well, and does not continue
			h.run(ctx, "AfterAgent", obj{"prompt_response": cmp.Or(said, "[no response text]"), "stop_hook_active": goesOn})
		}
		said, goesOn = "", false
	}
	e.Failed = func(ctx context.Context, words string) bool { // what follows is AfterAgent
		t.say("✕ ", words)
		record(obj{"type": "error", "content": "[" + words + "]"})
		record(obj{"type": "info", "content": "This request failed."})
		h.run(ctx, "AfterAgent", obj{"prompt_response": "[no response text]", "stop_hook_active": false})
		return false
	}
	e.Compact = compactFile("gemini")
	e.Keeps = func(talk []message) []message { return talk[len(talk)-1:] } // what is about to be sent
	e.Prompted = func(ctx context.Context, text string) string {
		return angles(h.run(ctx, "BeforeAgent", obj{"prompt": text}).context)
	}
	e.Calls = func(tool string) { h.run(ctx, "BeforeTool", obj{"tool_name": tool}) }
	e.AfterTool = func(ctx context.Context, tool string) string {
		if c := h.run(ctx, "AfterTool", obj{"tool_name": tool}).context; c != "" {
			return geminiShown("<hook_context>" + angles(c) + "</hook_context>")
		}
		return ""
	}
	e.Stop = func(ctx context.Context, _ string) string {
		block := h.run(ctx, "AfterAgent", obj{"prompt_response": said, "stop_hook_active": goesOn}).block
		if goesOn = block != ""; !goesOn {
			return ""
		}
		// It continues with that as a prompt, for which BeforeAgent is called.
		if more := e.Prompted(ctx, block); more != "" {
			return block + "\n<hook_context>" + more + "</hook_context>"
		}
		return block
	}
	e.Active = func(turn string) { t.working(turn != "") }
	t.line = func(text string) { // typed in mid-turn it waits for the end
		t.say("> ", text)
		e.Send(Text{Text: text}, false)
	}
	t.esc = func() { e.Interrupt() }
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	h.run(ctx, "SessionStart", obj{"source": "startup"})
	if p := one(flags, "--prompt-interactive"); p != "" {
		t.line(p)
	}
	go e.Run(ctx)
	if !trusted && !skip {
		go func() {
			if geminiAsk(ctx, t, dir) == nil {
				t.say("", "Gemini CLI is restarting to apply the trust changes...")
				if again, err := os.Executable(); err == nil {
					_ = syscall.Exec(again, append([]string{"gemini"}, args...), os.Environ())
				}
			}
		}()
	}
	gone := make(chan struct{})
	go func() {
		t.read()
		close(gone)
	}()
	h.sessionEnd(gone, told)
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

// geminiSettings has the used fields of its settings files.
type geminiSettings struct {
	HooksConfig struct{ Enabled *bool }
	Hooks       map[string][]hookGroup
	MCPServers  map[string]mcpServer
	Security    struct {
		EnvironmentVariableRedaction struct {
			Enabled bool
			Allowed []string
		}
	}
}

// geminiSettingsOf reads the defaults that a session is given and the person's own, who
// win. In both a $NAME is replaced from the whole environment.
func geminiSettingsOf(trusted bool) (s geminiSettings, err error) {
	own, err := homeFile(".gemini", "settings.json")
	if err != nil {
		return s, err
	}
	paths := []string{os.Getenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH"), own, ".gemini/settings.json"}
	for i, path := range paths {
		if i == 2 && !trusted {
			break
		}
		b, err := os.ReadFile(path)
		if (i > 0 || path == "") && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return s, err
		}
		var all geminiSettings
		into := &s // lists and values that both have are the second's
		if i == 2 {
			into = &all
		}
		if err := json.Unmarshal([]byte(os.Expand(string(b), inJSON)), into); err != nil {
			return s, fmt.Errorf("read %s: %w", path, err)
		}
		for event, groups := range all.Hooks { // of the repository
			s.Hooks[event] = append(s.Hooks[event], groups...)
		}
	}
	if on := s.HooksConfig.Enabled; on != nil && !*on {
		s.Hooks = nil
	}
	return s, nil
}

// inJSON returns the value of a variable as part of a JSON text; an unset one keeps its name.
func inJSON(name string) string {
	value, ok := os.LookupEnv(name)
	if !ok {
		value = "$" + name
	}
	b, _ := json.Marshal(value)
	return strings.Trim(string(b), `"`)
}

// environment returns the base environment of an MCP server or a hook: it withholds secrets by
// name from servers, and on the user's request from hooks; in GitHub Actions both get few
// variables. The settings may allow others.
func (s geminiSettings) environment(server bool) []string {
	r := s.Security.EnvironmentVariableRedaction
	strict := os.Getenv("GITHUB_SHA") != ""
	if !server && !strict && !r.Enabled {
		return os.Environ()
	}
	secret := []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "AUTH", "CREDENTIAL", "CREDS", "PRIVATE", "CERT"}
	free := []string{"PATH", "HOME", "LANG", "SHELL", "TMPDIR", "USER", "LOGNAME", "TERM", "COLORTERM"}
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "GEMINI_CLI_"), slices.Contains(r.Allowed, name), slices.Contains(free, name):
			return false
		case strict:
			return true
		}
		return slices.ContainsFunc(secret, func(word string) bool { return strings.Contains(strings.ToUpper(name), word) })
	})
}

// geminiShown returns the part of a tool's output that its model gets: of a long one the beginning
// and the end.
func geminiShown(text string) string {
	const most, begin, end = 40_000, 8_000, 32_000
	units := utf16.Encode([]rune(text))
	if len(units) <= most {
		return text
	}
	return string(utf16.Decode(units[:begin])) + "\n... [output truncated] ...\n" + string(utf16.Decode(units[len(units)-end:]))
}

// angles returns a hook's text as its model gets it.
func angles(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(text)
}
