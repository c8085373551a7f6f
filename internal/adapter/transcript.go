package adapter

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// claudeRecords is the oldest version seen to write the output of its hooks to the transcript,
// from which a conversation is resumed.
var claudeRecords = Version{2, 1, 112}

// Records reports whether a version of a program writes the output of its hooks to its transcript,
// as its model gets it. The transcript is then the only evidence.
func Records(cli string, v Version) bool { return cli == Claude && v.atLeast(claudeRecords) }

// RecordsAnswered reports whether a program writes the output of its hooks to its transcript, and
// a resumed conversation has it, once its model has answered. Other evidence counts as well.
func RecordsAnswered(cli string) bool { return cli == Gemini }

// Transcript is a part of the record of a conversation.
type Transcript struct {
	came        []string // texts that the model gets, oldest first
	entities    bool     // the texts have entities for angle brackets
	queued      []string // texts that the program has accepted and not yet put into the conversation
	Ended       bool     // a turn has ended
	Interrupted bool     // a turn was interrupted
	Answered    bool     // the model has answered the last input
}

// ReadTranscript parses a part of a transcript. It skips lines that are cut off at the beginning
// or the end.
func ReadTranscript(cli string, data []byte) (t Transcript) {
	switch cli {
	case Claude:
		first := ""
		for line := range bytes.Lines(data) {
			t.claude(line, &first)
		}
	case Gemini:
		t.entities = true
		var r geminiRecord
		for line := range bytes.Lines(data) {
			r.line(line)
		}
		t.came = r.answered
	}
	return t
}

// recordLine holds the used fields of a line in Claude Code's transcript.
type recordLine struct {
	Type      string
	Subtype   string
	Sidechain bool `json:"isSidechain"`
	Operation string
	Content   json.RawMessage
	Message   struct {
		ID      string
		Content json.RawMessage
		Stop    string `json:"stop_reason"`
	}
	Attachment struct {
		Type    string
		Content json.RawMessage
		Prompt  json.RawMessage
	}
}

// interruptedMark begins the text that Claude Code writes for an interrupt.
const interruptedMark = "[Request interrupted by user"

func (t *Transcript) claude(line []byte, first *string) {
	var l recordLine
	if json.Unmarshal(line, &l) != nil || l.Sidechain {
		return
	}
	switch l.Type {
	case "system":
		if l.Subtype == "compact_boundary" { // the model gets what follows
			t.came = nil
		}
	case "user":
		for _, s := range texts(l.Message.Content) {
			t.came = append(t.came, s)
			t.Interrupted = t.Interrupted || strings.HasPrefix(s, interruptedMark)
		}
	case "attachment":
		switch l.Attachment.Type {
		case "hook_additional_context":
			t.came = append(t.came, texts(l.Attachment.Content)...)
		case "queued_command":
			t.came = append(t.came, texts(l.Attachment.Prompt)...)
		}
	case "queue-operation":
		switch {
		case l.Operation == "enqueue":
			t.queued = append(t.queued, texts(l.Content)...)
		case l.Operation == "dequeue" && len(t.queued) > 0:
			t.queued = t.queued[1:]
		default: // the user removed all of it from the queue
			t.queued = nil
		}
	case "assistant":
		// An answer has one id, and may have begun before the part that is read.
		if *first == "" {
			*first = l.Message.ID
		}
		t.Answered = t.Answered || l.Message.ID != *first || len(t.came) > 0
		if l.Message.Stop == "end_turn" || l.Message.Stop == "stop_sequence" {
			t.Ended = true
		}
	}
}

// texts returns the texts of a content field: a string, strings, or blocks.
func texts(raw json.RawMessage) []string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []string{s}
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		var block struct {
			Text    string
			Content json.RawMessage
		}
		switch {
		case json.Unmarshal(e, &s) == nil:
			out = append(out, s)
		case json.Unmarshal(e, &block) == nil && block.Text != "":
			out = append(out, block.Text)
		case len(block.Content) > 0:
			out = append(out, texts(block.Content)...)
		}
	}
	return out
}

// Holds reports whether the model gets all parts in one text, in order.
func (t Transcript) Holds(parts ...string) bool {
	if !t.entities || hold(t.came, parts) {
		return hold(t.came, parts)
	}
	parts = slices.Clone(parts) // a prompt has no entities, the output of another hook has
	for i := range parts {
		parts[i] = angles().Replace(parts[i])
	}
	return hold(t.came, parts)
}

// PromptHolds reports whether an event begins a turn whose prompt contains all parts, in order:
// the model gets it whole.
func PromptHolds(cli, event string, in HookIn, parts ...string) bool {
	return BeginsTurn(cli, event) && in.Helper == "" && hold([]string{in.Prompt}, parts)
}

// Queued reports whether the program has queued a text with all parts.
func (t Transcript) Queued(parts ...string) bool { return hold(t.queued, parts) }

func hold(list, parts []string) bool {
	for _, s := range list {
		ok := true
		for _, p := range parts {
			var rest string
			if _, rest, ok = strings.Cut(s, p); !ok {
				break
			}
			s = rest
		}
		if ok {
			return true
		}
	}
	return false
}
