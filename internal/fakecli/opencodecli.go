package fakecli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// opencode is opencode 1.18.33: a TUI that serves HTTP.
func opencode(args []string) error {
	flags, _ := arguments(args, "--port", "--hostname", "--session", "--model", "--agent", "--prompt")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var config struct {
		MCP map[string]mcpServer `json:"mcp"`
	}
	if c := os.Getenv("OPENCODE_CONFIG_CONTENT"); c != "" {
		if err := json.Unmarshal([]byte(c), &config); err != nil {
			return fmt.Errorf("read the configuration: %w", err)
		}
	}
	e := NewEngine(os.Getenv("ANTHROPIC_BASE_URL"), dir)
	e.Free = harmless
	t, err := newTerminal(look{bottom: opencodeBottom})
	if err != nil {
		return err
	}
	var stop func()
	if e.Tools, stop, err = tools(ctx, config.MCP, os.Environ(), func(s string) string { return s + "_" }); err != nil {
		return err
	}
	defer stop()
	s := newOpenCode(os.Getenv("OPENCODE_SERVER_PASSWORD"), e, true)
	s.session = fmt.Sprintf("ses_%d_%d", time.Now().UnixMilli(), os.Getpid())
	resume := one(flags, "--session")
	if resume != "" {
		s.session = resume
	}
	file, err := homeFile(".local", "share", "opencode", s.session+".json")
	if err != nil {
		return err
	}
	var resumed json.RawMessage
	if resume != "" {
		k, err := readKept(file)
		if err != nil {
			return fmt.Errorf("no such session: %w", err)
		}
		if err := e.Load(k.Talk); err != nil {
			return err
		}
		resumed = k.Talk
		s.messages, s.sessions = k.Items, []obj{{"id": resume, "title": "resumed"}}
		e.left = unanswered(k.Items)
	}
	e.Compact = compactFile("opencode")
	var keeping sync.Mutex
	talked := resumed
	s.keep = func() {
		keeping.Lock()
		defer keeping.Unlock()
		s.mu.Lock()
		k := kept{Talk: talked, Items: append([]obj{}, s.messages...)}
		s.mu.Unlock()
		writeKept(file, k)
	}
	e.Keep = func(talk json.RawMessage) {
		keeping.Lock()
		talked = talk
		keeping.Unlock()
		s.keep()
	}
	e.Said = func(text string) { t.say("  ", text) }
	s.dialog = func(ctx context.Context, command string) bool {
		return t.ask(ctx, []string{
			"", "┃", "┃  △ Permission required", "┃    # Shell command", "┃", "┃  $ " + command, "┃",
			"┃   Allow once   Allow always   Reject             ctrl+f fullscreen  ⇆ select  enter confirm", "┃",
		}) == "1" // Enter, on the first choice
	}
	told := e.Active
	e.Active = func(turn string) {
		t.working(turn != "")
		told(turn)
	}
	t.line = func(text string) {
		t.say("┃ ", text)
		e.Send(Text{Text: text}, true)
	}
	t.esc = func() { e.Interrupt() }
	host := one(flags, "--hostname")
	if host == "" {
		host = "127.0.0.1"
	}
	if port := one(flags, "--port"); port != "" {
		if err := s.serve(host + ":" + port); err != nil {
			return err
		}
		defer s.Close()
	}
	t.read()
	return nil
}

// unanswered returns the texts of a session after the last answered one.
func unanswered(items []obj) (left []Text) {
	newest := ""
	for _, m := range items {
		if parent, ok := m["parentID"].(string); ok {
			newest = max(newest, parent)
		}
	}
	for _, m := range items {
		id, _ := m["id"].(string)
		if text, ok := m["text"].(string); ok && id > newest {
			left = append(left, Text{ID: id, Text: text})
		}
	}
	return left
}

func opencodeBottom(t *terminal) []string {
	text := t.input
	if text == "" {
		text = "Ask anything... \"Fix a TODO in the codebase\""
	}
	out := []string{"", "┃", "┃  " + text, "┃", "┃  Build  fake-model", "╹"}
	if t.busy {
		return append(out, "  ■■■⬝⬝⬝  esc interrupt")
	}
	return append(out, "  tab agents  ctrl+p commands")
}
