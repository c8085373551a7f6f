package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// codex is Codex 0.169.0: an app-server on a socket, the TUI that shows one, or the TUI alone.
func codex(args []string) error {
	flags, rest := arguments(args, "-c", "-a", "-s", "-m", "--remote", "--listen", "--disable")
	if len(rest) > 0 && rest[0] == "app-server" {
		return codexServer(one(flags, "--listen"), flags["-c"])
	}
	socket, ok := strings.CutPrefix(one(flags, "--remote"), "unix://")
	if !ok {
		return codexAlone(flags["-c"], strings.Join(rest, " "))
	}
	var resume string
	if len(rest) > 1 && rest[0] == "resume" {
		resume, rest = rest[1], rest[2:]
	}
	t := &codexTUI{calls: map[int]chan json.RawMessage{}}
	return t.run(socket, resume, strings.Join(rest, " "))
}

// codexServer serves until it is killed.
func codexServer(listen string, config []string) error {
	socket, ok := strings.CutPrefix(listen, "unix://")
	if !ok {
		return errors.New("app-server needs --listen unix://PATH")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e, stop, err := codexEngine(ctx, config, dir)
	if err != nil {
		return err
	}
	defer stop()
	s, err := StartAppServer(socket, e, "", dir, true)
	if err != nil {
		return err
	}
	defer s.Close()
	s.mu.Lock()
	s.Begins = func() error { // a thread reads the configuration of its directory
		servers, err := codexProjectServers(ctx, dir, config)
		for _, m := range servers { // not waited for: they may be no servers at all
			cmd := command(ctx, m.argv()[0], m.argv()[1:]...)
			if err = errors.Join(err, cmd.Start()); err == nil {
				go func() { _ = cmd.Wait() }()
			}
		}
		return err
	}
	s.mu.Unlock()
	select {} // until it is killed
}

// codexEngine has the tools of Codex. A tool call asks where its input wants to leave the
// sandbox.
func codexEngine(ctx context.Context, config []string, dir string) (e *Engine, stop func(), err error) {
	e = NewEngine(os.Getenv("ANTHROPIC_BASE_URL"), dir)
	if e.Tools, stop, err = tools(ctx, codexServers(config), codexEnv(config), func(s string) string { return "mcp__" + s + "__" }); err != nil {
		return nil, nil, err
	}
	e.Tools["exec_command"] = func(ctx context.Context, input json.RawMessage) string {
		var in struct{ Cmd string }
		if json.Unmarshal(input, &in) != nil {
			return "bad input"
		}
		return e.bash(ctx, in.Cmd)
	}
	e.Free = func(_ string, input json.RawMessage) bool {
		return !strings.Contains(string(input), "require_escalated")
	}
	return e, stop, nil
}

// codexTalks is the TUI of a version that can be reached only by its screen, until the screen is
// gone.
func codexTalks(ctx context.Context, screen *terminal, config []string, dir, prompt string, lines <-chan string, gone <-chan struct{}) error {
	e, stop, err := codexEngine(ctx, config, dir)
	if err != nil {
		return err
	}
	defer stop()
	e.Said = func(text string) { screen.say("• ", text) }
	e.Active = func(turn string) { screen.working(turn != "") }
	e.Allow = func(ctx context.Context, _, _ string, input json.RawMessage) bool {
		var in struct{ Cmd string }
		_ = json.Unmarshal(input, &in) // its dialog names no command then
		key := screen.ask(ctx, codexDialog(in.Cmd))
		return key == "1" || key == "y"
	}
	screen.esc = func() { e.Interrupt() }
	go e.Run(ctx)
	if prompt != "" {
		screen.say("› ", prompt)
		e.Send(Text{Text: prompt}, true)
	}
	for {
		select {
		case text := <-lines:
			screen.say("› ", text)
			e.Send(Text{Text: text}, true)
		case <-gone:
			return nil
		}
	}
}

// The overrides are TOML; the fake understands what a launch writes.
var (
	codexServerLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^mcp_servers\.(\w+)=\{command="([^"]*)",args=\[([^\]]*)\],env=\{([^}]*)\},env_vars=\[([^\]]*)\]`)
	})
	codexPair = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"?([A-Z_]+)"?\s*=\s*"([^"]*)"`) })
	codexWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"]*)"`) })
)

func codexServers(config []string) map[string]mcpServer {
	out := map[string]mcpServer{}
	for _, c := range config {
		m := codexServerLine().FindStringSubmatch(c)
		if m == nil {
			continue
		}
		s := mcpServer{Command: m[2], Env: map[string]string{}}
		for _, w := range codexWord().FindAllStringSubmatch(m[3], -1) {
			s.Args = append(s.Args, w[1])
		}
		for _, kv := range codexPair().FindAllStringSubmatch(m[4], -1) {
			s.Env[kv[1]] = kv[2]
		}
		out[m[1]] = s
	}
	return out
}

// codexEnv returns the environment of a server: few variables, and those named by env_vars.
func codexEnv(config []string) []string {
	names := []string{"PATH", "HOME", "TMPDIR", "LANG"}
	for _, c := range config {
		if m := codexServerLine().FindStringSubmatch(c); m != nil {
			for _, w := range codexWord().FindAllStringSubmatch(m[5], -1) {
				names = append(names, w[1])
			}
		}
	}
	var out []string
	for _, n := range names {
		if v, ok := os.LookupEnv(n); ok {
			out = append(out, n+"="+v)
		}
	}
	return out
}

// codexTUI shows the thread of an app-server.
type codexTUI struct {
	ws     *websocket.Conn
	screen *terminal
	thread string

	mu     sync.Mutex
	last   int
	calls  map[int]chan json.RawMessage
	turn   string
	answer context.CancelFunc // takes the open dialog away
}

func (t *codexTUI) run(socket, resume, prompt string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	ws, resp, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return fmt.Errorf("reach the app-server: %w", err)
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	ws.SetReadLimit(64 << 20)
	t.ws = ws
	if t.screen, err = newTerminal(look{bottom: codexBottom}); err != nil {
		return err
	}
	t.screen.line = func(text string) { t.start(ctx, text) }
	t.screen.esc = func() {
		t.mu.Lock()
		turn := t.turn
		t.mu.Unlock()
		if turn != "" {
			go t.call(ctx, "turn/interrupt", obj{"threadId": t.thread, "turnId": turn})
		}
	}
	go func() {
		t.read(ctx)
		t.screen.working(false)
		t.screen.say("• ", "Reconnecting to server… (0s)") // it does not end
	}()
	t.call(ctx, "initialize", obj{"clientInfo": obj{"name": "codex-tui"}})
	method, params := "thread/start", obj{}
	if resume != "" {
		method, params = "thread/resume", obj{"threadId": resume}
	}
	var out struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(t.call(ctx, method, params), &out); err != nil || out.Thread.ID == "" {
		return fmt.Errorf("%s: no thread", method)
	}
	t.thread = out.Thread.ID
	if prompt != "" {
		t.start(ctx, prompt)
	}
	t.screen.read()
	return nil
}

func (t *codexTUI) start(ctx context.Context, text string) {
	t.screen.say("› ", text)
	go func() {
		t.call(ctx, "turn/start", obj{"threadId": t.thread, "input": []obj{{"type": "text", "text": text}}})
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for t.call(ctx, "thread/resume", obj{"threadId": t.thread}) == nil && ctx.Err() == nil {
			<-tick.C // a thread without a turn has no subscribers, and this one may be yet to begin
		}
	}()
}

func (t *codexTUI) call(ctx context.Context, method string, params obj) json.RawMessage {
	answer := make(chan json.RawMessage, 1)
	t.mu.Lock()
	t.last++
	id := t.last
	t.calls[id] = answer
	t.mu.Unlock()
	t.send(ctx, obj{"id": id, "method": method, "params": params})
	select {
	case r := <-answer:
		return r
	case <-ctx.Done():
		return nil
	}
}

func (t *codexTUI) send(ctx context.Context, v any) {
	if b, err := json.Marshal(v); err == nil {
		_ = t.ws.Write(ctx, websocket.MessageText, b) // a failure shows in reading
	}
}

func (t *codexTUI) read(ctx context.Context) {
	for {
		_, b, err := t.ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			ID     *int
			Method string
			Result json.RawMessage
			Params struct {
				ThreadID, Command string
				Status            struct {
					Type        string
					ActiveFlags []string
				}
				Turn struct{ ID string }
				Item struct{ Type, Text string }
			}
		}
		if json.Unmarshal(b, &m) != nil {
			continue
		}
		p := m.Params
		t.mu.Lock()
		switch {
		case m.Method == "" && m.ID != nil:
			if c := t.calls[*m.ID]; c != nil {
				delete(t.calls, *m.ID)
				c <- m.Result
			}
		case m.Method == "turn/started":
			t.turn = p.Turn.ID
		}
		close := t.answer
		t.mu.Unlock()
		switch m.Method {
		case "thread/status/changed":
			t.screen.working(p.Status.Type == "active")
			if !slices.Contains(p.Status.ActiveFlags, "waitingOnApproval") && close != nil {
				close()
			}
		case "item/completed":
			if p.Item.Type == "agentMessage" {
				t.screen.say("• ", p.Item.Text)
			}
		case "item/commandExecution/requestApproval":
			actx, cancel := context.WithCancel(ctx)
			t.mu.Lock()
			t.answer = cancel
			t.mu.Unlock()
			go func() {
				if decision := t.approve(actx, p.Command); decision != "" {
					t.send(ctx, obj{"id": *m.ID, "result": obj{"decision": decision}})
				}
			}()
		}
	}
}

// approve shows the dialog until it is answered here, or elsewhere ("").
func (t *codexTUI) approve(ctx context.Context, command string) string {
	switch key := t.screen.ask(ctx, codexDialog(command)); key {
	case "1", "y":
		return "accept"
	case "2", "esc":
		return "decline"
	}
	return ""
}

func codexDialog(command string) []string {
	return []string{"", "  Would you like to run the following command?", "", "  $ " + command, "", "› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do differently (esc)"}
}

// Columns and lines of the input box: a longer text is broken anywhere, and its end is shown.
const (
	codexColumns = 60
	codexLines   = 8
)

func codexBottom(t *terminal) []string {
	var out []string
	if t.busy {
		out = append(out, "", "• Working (3s • esc to interrupt)")
	}
	text := t.input
	if text == "" {
		text = "Ask Codex to do anything"
	}
	var box []string
	for line := range strings.SplitSeq(text, "\n") {
		r := []rune(line)
		for len(r) > codexColumns {
			box, r = append(box, string(r[:codexColumns])), r[codexColumns:]
		}
		box = append(box, string(r))
	}
	box = box[max(0, len(box)-codexLines):]
	out = append(out, "", "› "+box[0])
	for _, line := range box[1:] {
		out = append(out, "  "+line)
	}
	return append(out, "", "  fake-model · 100% context left")
}
