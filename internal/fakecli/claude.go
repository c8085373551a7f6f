package fakecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rule is the line above and below an input box.
var rule = strings.Repeat("─", 60)

// claude is Claude Code in a terminal.
func claude(args []string) error {
	flags, rest := arguments(args, "--name", "--settings", "--mcp-config", "--allowedTools", "--append-system-prompt", "--model", "--resume", "--session-id", "--permission-mode")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	var settings struct{ Hooks map[string][]hookGroup }
	if err := readJSON(one(flags, "--settings"), &settings); err != nil {
		return err
	}
	own, err := homeFile(".claude", "settings.json")
	if err != nil {
		return err
	}
	var person struct{ DisableAllHooks bool }
	if err := readJSON(own, &person); err != nil {
		return err
	}
	if person.DisableAllHooks { // those of --settings too
		settings.Hooks = nil
	}
	c := &claudeSession{dir: dir, id: one(flags, "--session-id"), mode: one(flags, "--permission-mode"), name: one(flags, "--name")}
	resume := one(flags, "--resume")
	if resume != "" {
		c.id = resume
	}
	if c.file, err = homeFile(".claude", "sessions", strconv.Itoa(os.Getpid())+".json"); err != nil {
		return err
	}
	transcript, err := homeFile(".claude", "projects", "p", c.id+".jsonl")
	if err != nil {
		return err
	}
	if c.screen, err = newTerminal(look{prompt: "❯ ", bottom: claudeBottom, long: func(n int) string { return fmt.Sprintf("[Pasted text #1 +%d lines]", n) }}); err != nil {
		return err
	}
	gone := make(chan struct{})
	c.screen.line = func(text string) {
		if strings.Count(text, "\n") >= 3 {
			text = "<pasted_content id=\"1\">" + text + "</pasted_content id=\"1\">"
		}
		c.screen.say("❯ ", text)
		c.engine.Send(Text{Text: text}, true)
	}
	e := NewEngine(os.Getenv("ANTHROPIC_BASE_URL"), dir)
	c.engine, c.screen.esc = e, func() { e.Interrupt() }
	go func() {
		c.screen.read()
		close(gone)
	}()
	if err := c.trusted(ctx); err != nil {
		return err
	}
	servers, err := c.servers(ctx, flags)
	if err != nil {
		return err
	}
	c.hooks = &hookSet{events: settings.Hooks, ctx: ctx, noRewake: claudeIs(claudeOldest), base: obj{"session_id": c.id, "transcript_path": transcript, "cwd": dir, "permission_mode": c.mode},
		woken: func(text string) {
			e.Send(Text{Quiet: true, Text: "<task-notification><summary>mail from your team</summary></task-notification>\nStop hook blocking error from command \"Stop\": " + text}, true)
		}}
	if err := conversation(e, strings.TrimSuffix(transcript, "l"), resume != ""); err != nil {
		c.hooks.run(ctx, "SessionEnd", obj{"reason": "other"})
		return err
	}
	if resume != "" {
		e.talk = resumed(e.talk)
	}
	defer c.recordsTo(ctx, transcript)()
	var stop func()
	if e.Tools, stop, err = tools(ctx, servers, os.Environ(), func(s string) string { return "mcp__" + s + "__" }); err != nil {
		return err
	}
	defer stop()
	c.wire()
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGHUP)
	source := "startup"
	if resume != "" {
		source = "resume"
	}
	c.hooks.run(ctx, "SessionStart", obj{"source": source})
	if len(rest) > 0 {
		c.screen.line(rest[len(rest)-1])
	}
	c.status("idle", "")
	go e.Run(ctx)
	c.hooks.sessionEnd(gone, told)
	return nil
}

// claudeSession is one session of the fake Claude Code.
type claudeSession struct {
	engine        *Engine
	screen        *terminal
	hooks         *hookSet
	dir, id, mode string
	name, file    string
	stopped       bool
	answers       map[string]string // to the question that was asked last
	flush         func()            // writes the transcript as far as the conversation is
	compacts      func()            // notes that the conversation was compacted
	kept          int               // ends of turns in a row that a hook has kept going
}

// answersIn are the answers that a hook has put into the input of a question.
func answersIn(input json.RawMessage) map[string]string {
	var in struct{ Answers map[string]string }
	_ = json.Unmarshal(input, &in) // of another shape: then there are none
	return in.Answers
}

func claudeBottom(t *terminal) []string {
	var out []string
	if t.busy {
		out = append(out, "", "✻ Working… (3s · esc to interrupt)")
	}
	return append(out, "", rule, "❯ "+t.input, rule, "  ? for shortcuts")
}

// trusted shows the trust dialog where the person has not accepted the repository,
// and returns once they do.
func (c *claudeSession) trusted(ctx context.Context) error {
	file, err := homeFile(".claude.json")
	if err != nil {
		return err
	}
	var own struct {
		HasCompletedOnboarding bool
		Projects               map[string]struct{ HasTrustDialogAccepted bool }
	}
	if err := readJSON(file, &own); err != nil {
		return err
	}
	if !own.HasCompletedOnboarding {
		c.screen.say("", "Let's get started.\nChoose the text style that looks best with your terminal")
		return errors.New("unable to connect to the service: EAI_AGAIN")
	}
	roots := []string{c.dir}
	if !claudeIs(claudeOldest) {
		roots = placesOf(ctx, c.dir)
	}
	for _, r := range roots {
		if own.Projects[r].HasTrustDialogAccepted {
			return nil
		}
	}
	for {
		switch key := c.screen.ask(ctx, c.trustDialog()); {
		case key == "esc", key == "1" && !claudeIs(claudeOldest), key == "2" && claudeIs(claudeOldest):
			return errors.New("not trusted")
		case key == "1":
			return acceptClaude(file, c.dir)
		case key == "2":
			return nil
		}
	}
}

// wire connects the engine to hooks and screen.
func (c *claudeSession) wire() {
	e := c.engine
	e.Free = func(tool string, input json.RawMessage) bool {
		return c.mode == "bypassPermissions" || tool != "ExitPlanMode" && tool != "AskUserQuestion" && harmless(tool, input)
	}
	e.Allow = c.allow
	e.Tools["AskUserQuestion"] = func(context.Context, json.RawMessage) string {
		return fmt.Sprint("User has answered your questions: ", c.answers)
	}
	e.Said = func(text string) { c.screen.say("● ", text) }
	e.Failed = func(ctx context.Context, words string) bool {
		c.screen.say("● ", words)
		what := "unknown"
		if strings.Contains(words, "usage limit") {
			what = "rate_limit"
		}
		c.flush()
		c.status("idle", "") // its hook has only begun then
		c.hooks.run(ctx, "StopFailure", obj{"error": what, "last_assistant_message": words})
		return false
	}
	e.Asks = bubbled
	e.Compact = compactFile("claude")
	e.Compacted = func(ctx context.Context) {
		c.compacts()
		c.hooks.run(ctx, "SessionStart", obj{"source": "compact"})
	}
	e.Prompted = func(ctx context.Context, text string) string {
		return c.context("UserPromptSubmit", "", c.hooks.run(ctx, "UserPromptSubmit", obj{"prompt": text}).context)
	}
	e.Calls = func(tool string) {
		c.screen.say("● ", tool)
		c.hooks.run(context.Background(), "PreToolUse", obj{"tool_name": tool})
	}
	e.AfterTool = func(ctx context.Context, tool string) string {
		return c.context("PostToolUse", tool, c.hooks.run(ctx, "PostToolUse", obj{"tool_name": tool}).context)
	}
	e.Stop = func(ctx context.Context, said string) string {
		c.flush()
		r := c.hooks.run(ctx, "Stop", obj{"stop_hook_active": c.stopped, "last_assistant_message": said})
		more := c.keptGoing(r)
		c.stopped = more != ""
		if !c.stopped {
			c.kept = 0
		}
		return more
	}
	e.Active = func(turn string) {
		c.screen.working(turn != "")
		if turn != "" {
			c.status("busy", "")
			return
		}
		c.status("idle", "")
	}
}

// allow asks by hook and by dialog at once; the first answer counts.
func (c *claudeSession) allow(ctx context.Context, _, tool string, input json.RawMessage) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.status("waiting", "permission prompt")
	defer c.status("busy", "")
	hooked := make(chan hookReply, 1)
	go func() {
		r := c.hooks.run(ctx, "PermissionRequest", obj{"tool_name": tool, "tool_input": input})
		// A plain approval of a plan or a question has no effect.
		if r.decision == "allow" && (tool == "ExitPlanMode" && len(r.input) == 0 || tool == "AskUserQuestion" && len(answersIn(r.input)) == 0) {
			r.decision = ""
		}
		hooked <- r
	}()
	typed := make(chan string, 1)
	go func() {
		typed <- c.screen.ask(ctx, []string{"", rule, " Bash command", "   " + string(input), "", " Do you want to proceed?", " ❯ 1. Yes", "   2. No, and tell Claude what to do differently (esc)"})
	}()
	for {
		select {
		case r := <-hooked:
			if r.decision == "" { // nothing to say: the dialog stays
				hooked = nil
				continue
			}
			cancel()
			<-typed
			c.engine.Refusal = r.message
			c.answers = answersIn(r.input)
			return r.decision == "allow"
		case key := <-typed:
			return key == "1"
		}
	}
}

// status writes the session's status file.
func (c *claudeSession) status(status, waits string) {
	now := time.Now().UnixMilli()
	b, err := json.Marshal(obj{"pid": os.Getpid(), "sessionId": c.id, "cwd": c.dir, "version": claudeVersion(), "kind": "interactive", "name": c.name,
		"status": status, "statusUpdatedAt": now, "updatedAt": now, "waitingFor": waits})
	if err == nil {
		err = os.WriteFile(c.file, b, 0o600)
	}
	if err != nil {
		c.screen.say("", err.Error())
	}
}

// readJSON reads a file; "" and a missing file leave v unchanged.
func readJSON(path string, v any) error {
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
