package fakecli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
)

// Versions of Claude Code whose behaviour the stand-in has. EnvClaude selects one of them for a
// test; the default is the newest.
const (
	EnvClaude    = "FAKECLI_CLAUDE"
	claudeOldest = "2.1.34"
	claudeNewest = "2.1.329"
)

func claudeVersion() string {
	if v := os.Getenv(EnvClaude); v != "" {
		return v
	}
	return claudeNewest
}

func claudeIs(v string) bool { return claudeVersion() == v }

// claudeShown is the length up to which the model gets a hook's context whole, claudePreview how
// much it gets of a longer one.
const (
	claudeShown   = 10_000
	claudePreview = 2_000
)

const hookContext = " hook additional context: "

// context returns the part of a hook's context that the model gets.
func (c *claudeSession) context(event, tool, text string) string {
	if text == "" {
		return ""
	}
	head := hookName(event, tool) + hookContext
	units := utf16.Encode([]rune(text))
	if len(units) <= claudeShown || claudeIs(claudeOldest) && event == "PostToolUse" {
		return head + text
	}
	if claudeIs(claudeOldest) {
		return head + string(utf16.Decode(units[:claudeShown])) + "... [output truncated - exceeded 10000 characters]"
	}
	return fmt.Sprintf("%s<persisted-output>\nOutput too large (%.1fKB). Full output saved to: hook-output.txt\n\nPreview (first 2KB):\n%s\n...\n</persisted-output>",
		head, float64(len(text))/1024, string(utf16.Decode(units[:claudePreview])))
}

// keptGoing returns the text that continues a turn which a hook keeps from ending.
func (c *claudeSession) keptGoing(r hookReply) string {
	more := ""
	switch {
	case r.block != "":
		more = "Stop hook feedback:\n" + r.block
		if claudeIs(claudeNewest) { // it is in the conversation twice
			more += "\nStop hook blocking error: " + r.block
		}
	case claudeIs(claudeNewest):
		more = c.context("Stop", "", r.context)
	}
	if more == "" || !claudeIs(claudeNewest) {
		return more
	}
	if c.kept++; c.kept > 8 {
		return ""
	}
	return more
}

// claudeFlush is how long the program buffers its transcript: a killed process loses the rest.
const claudeFlush = 100 * time.Millisecond

// recordsTo writes the conversation to the transcript, and to what is resumed, a moment
// after it has grown. The returned function writes the rest.
func (c *claudeSession) recordsTo(ctx context.Context, transcript string) func() {
	var mu sync.Mutex
	var lines []obj
	var talk json.RawMessage
	keep := c.engine.Keep
	c.engine.Keep = func(t json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		talk = t
		var all []message
		if claudeIs(claudeOldest) && json.Unmarshal(t, &all) == nil {
			for i := range all {
				all[i].Content = c.recorded(all[i].Content)
			}
			talk, _ = json.Marshal(all) // it was read from JSON
		}
	}
	answers := 0
	last, open := lastLine(transcript)
	add := func(l obj) {
		id := fmt.Sprintf("line_%d_%d", os.Getpid(), len(lines)+answers*100)
		l["uuid"], l["parentUuid"], l["version"], last = id, last, claudeVersion(), id
		lines = append(lines, l)
	}
	var ran []hookRun // whose answers are recorded with the next message
	c.hooks.ran = func(r hookRun) {
		mu.Lock()
		defer mu.Unlock()
		if r.stdout != "" && (r.event == "PostToolUse" || r.event == "Stop") && !claudeIs(claudeOldest) {
			ran = append(ran, r)
		}
	}
	if open {
		add(obj{"type": "assistant", "message": obj{"id": "own", "role": "assistant", "model": "<synthetic>", "content": noResponse}})
	}
	c.engine.Wrote = func(role string, content any, used Used) {
		mu.Lock()
		defer mu.Unlock()
		answers++
		content = c.recorded(content)
		var added, rest []any
		blocks, several := content.([]any)
		if several {
			added, rest = splitContext(blocks)
			content = rest
		}
		m := obj{"role": role, "content": content}
		if role == "assistant" {
			m["id"], m["usage"] = fmt.Sprintf("msg_%d_%d", os.Getpid(), answers), used
			if _, said := content.(string); said {
				m["stop_reason"] = "end_turn"
			}
		}
		if !several || len(rest) > 0 || len(added) == 0 { // else the end of a turn has added to it
			add(obj{"type": role, "message": m})
		}
		if role != "user" {
			return
		}
		call := callOf(rest)
		for _, r := range ran {
			add(attachment("hook_success", r.event, hookName(r.event, r.tool), call, obj{"content": "", "stdout": r.stdout, "stderr": r.stderr,
				"exitCode": r.status, "command": r.command, "durationMs": r.took.Milliseconds()}))
		}
		ran = nil
		for _, b := range added {
			name, text, _ := strings.Cut(textOf(b), hookContext)
			event, _, _ := strings.Cut(name, ":")
			add(attachment("hook_additional_context", event, name, call, obj{"content": []string{text}}))
		}
	}
	c.compacts = func() {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, obj{"type": "system", "subtype": "compact_boundary"})
	}
	flush := func() {
		mu.Lock()
		defer mu.Unlock()
		if talk != nil {
			keep(talk)
			talk = nil
		}
		for _, l := range lines {
			if err := appendLine(transcript, l); err != nil {
				c.screen.say("", err.Error())
			}
		}
		lines = nil
	}
	c.flush = flush
	go func() {
		tick := time.NewTicker(claudeFlush)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				flush()
			case <-ctx.Done():
				return
			}
		}
	}()
	return flush
}

// hookName is the name of a hook in requests and transcripts: its event and the tool that it is about.
func hookName(event, tool string) string {
	if tool == "" {
		return event
	}
	return event + ":" + tool
}

// attachment is a line of a transcript about a hook. call is the tool call that it follows, if any.
func attachment(kind, event, name, call string, more obj) obj {
	more["type"], more["hookEvent"], more["hookName"], more["toolUseID"] = kind, event, name, call
	return obj{"type": "attachment", "isSidechain": false, "attachment": more}
}

// callOf returns the call whose result is among blocks; "" if there is none.
func callOf(blocks []any) string {
	for _, b := range blocks {
		if m, ok := b.(map[string]any); ok && isResult(b) {
			id, _ := m["tool_use_id"].(string)
			return id
		}
	}
	return ""
}

// recorded returns what the transcript contains of a message: the oldest version omits text added
// by hooks.
func (c *claudeSession) recorded(content any) any {
	blocks, ok := content.([]any)
	if !ok || !claudeIs(claudeOldest) {
		return content
	}
	_, rest := splitContext(blocks)
	return rest
}

// splitContext takes apart what hooks have added to a message and the rest of it.
func splitContext(blocks []any) (added, rest []any) {
	for _, b := range blocks {
		if strings.Contains(textOf(b), hookContext) {
			added = append(added, b)
		} else {
			rest = append(rest, b)
		}
	}
	return added, rest
}

// textOf is the text of a block; "" if it has none.
func textOf(block any) string {
	switch b := block.(type) {
	case map[string]string:
		return b["text"]
	case map[string]any:
		text, _ := b["text"].(string)
		return text
	}
	return ""
}

// lastLine returns the line of a transcript that a process which resumes it goes on from, and whether
// the model has not answered the last message. Older versions go on from that message, without what
// hooks have added to it.
func lastLine(transcript string) (id string, open bool) {
	data, err := os.ReadFile(transcript)
	if err != nil {
		return "", false
	}
	for line := range bytes.Lines(data) {
		var l struct{ Type, UUID string }
		switch {
		case json.Unmarshal(line, &l) != nil:
		case l.Type == "user", l.Type == "assistant":
			id, open = l.UUID, l.Type == "user"
		case l.Type == "attachment" && claudeIs(claudeNewest):
			id = l.UUID
		}
	}
	return id, open
}

// noResponse is what the program says itself for a model that has not answered.
const noResponse = "No response requested."

// resumed is a conversation as a new process takes it up: where the model has not answered the last
// input, with an answer of the program's own. Older versions leave out what hooks have added to it.
func resumed(talk []message) []message {
	if len(talk) == 0 || talk[len(talk)-1].Role != "user" {
		return talk
	}
	last := talk[len(talk)-1]
	if blocks, ok := last.Content.([]any); ok {
		_, rest := splitContext(blocks)
		switch {
		case !claudeIs(claudeNewest):
			last.Content = rest
		case len(rest) == 0: // the end of a turn has added to its answer
			return talk
		}
	}
	return append(slices.Clone(talk[:len(talk)-1]), last, message{"assistant", noResponse})
}

// bubbled is a conversation as the model gets it: what hooks have added precedes all that
// has come in since the last answer or the last result of a tool, a note of an interrupt
// included.
func bubbled(talk []message) (out []message) {
	var up []any
	flush := func() {
		if len(up) > 0 {
			out = append(out, message{"user", up})
			up = nil
		}
	}
	for _, m := range slices.Backward(talk) {
		blocks, _ := m.Content.([]any)
		added, rest := splitContext(blocks)
		up = append(added, up...)
		if m.Role == "assistant" || slices.ContainsFunc(rest, isResult) {
			flush()
		}
		if len(added) > 0 {
			m.Content = rest
		}
		out = append(out, m)
	}
	flush()
	slices.Reverse(out)
	return out
}

func isResult(block any) bool {
	m, ok := block.(map[string]any)
	return ok && m["type"] == "tool_result"
}

// trustDialog asks whether a directory is trusted.
func (c *claudeSession) trustDialog() []string {
	if claudeIs(claudeOldest) {
		return []string{"", " Accessing workspace:", " " + c.dir, "", " Do you trust the files in this folder?", "", " ❯ 1. Yes, I trust this folder", "   2. No, exit"}
	}
	return []string{"", " Accessing workspace:", " " + c.dir, "", " Is this a project you created or one you trust?", "", " ❯ 1. No, exit", "   2. Yes, I trust this folder"}
}

// acceptClaude notes in the person's configuration that a directory is trusted: the oldest
// version asks once for each.
func acceptClaude(file, dir string) error {
	own := map[string]any{}
	if err := readJSON(file, &own); err != nil {
		return err
	}
	projects, _ := own["projects"].(map[string]any)
	if projects == nil {
		projects = map[string]any{}
	}
	projects[dir] = obj{"hasTrustDialogAccepted": true}
	own["projects"] = projects
	b, err := json.Marshal(own)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
