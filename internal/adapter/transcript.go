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
// as its model gets it. The transcript is then the only evidence. What a hook has added counts once
// the model has answered: a process that is killed before is resumed without it.
func Records(cli string, v Version) bool { return cli == Claude && v.atLeast(claudeRecords) }

// RecordsAnswered reports whether a program writes the output of its hooks to its transcript, and
// a resumed conversation has it, once its model has answered. Other evidence counts as well.
func RecordsAnswered(cli string) bool { return cli == Gemini }

// Transcript is a part of the record of a conversation.
type Transcript struct {
	came        []string // texts that the model gets, oldest first, also after a restart
	added       []added  // texts of hooks which the model has not answered yet
	links       map[string]link
	entities    bool     // the texts have entities for angle brackets
	queued      []string // texts that the program has accepted and not yet put into the conversation
	Ended       bool     // a turn has ended
	Interrupted bool     // a turn was interrupted
	Answered    bool     // the model has answered the last input
}

// added is a text that a hook has added to a conversation.
type added struct {
	at, text string // at is the id of its line
	since    int    // how many times the conversation had been resumed
}

// link is what is known of a line of Claude Code's transcript, which is a tree: the line that it
// follows, and, of a line of the model, its answer, which may have several.
type link struct {
	parent, answer string
	note           bool // what a hook or the program has added
}

// ReadTranscript parses a part of a transcript. It skips lines that are cut off at the beginning
// or the end.
func ReadTranscript(cli string, data []byte) (t Transcript) {
	switch cli {
	case Claude:
		first, resumed := "", 0
		t.links = map[string]link{}
		for line := range bytes.Lines(data) {
			t.claude(line, &first, &resumed)
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
	UUID      string
	Parent    string `json:"parentUuid"`
	Sidechain bool   `json:"isSidechain"`
	Operation string
	Content   json.RawMessage
	Message   struct {
		ID      string
		Model   string
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

// syntheticModel is the model of answers that Claude Code has written itself, as when it resumes a
// conversation whose last turn had no answer.
const syntheticModel = "<synthetic>"

func (t *Transcript) claude(line []byte, first *string, resumed *int) {
	var l recordLine
	if json.Unmarshal(line, &l) != nil || l.Sidechain {
		return
	}
	if l.UUID != "" {
		t.links[l.UUID] = link{l.Parent, l.Message.ID, l.Type == "attachment" || l.Type == "system"}
	}
	add := func(list []string) {
		for _, s := range list {
			t.added = append(t.added, added{l.UUID, s, *resumed})
		}
	}
	switch l.Type {
	case "system":
		if l.Subtype == "compact_boundary" { // the model gets what follows
			t.came, t.added = nil, nil
		}
	case "user":
		for _, s := range texts(l.Message.Content) {
			t.came = append(t.came, s)
			t.Interrupted = t.Interrupted || strings.HasPrefix(s, interruptedMark)
		}
	case "attachment":
		switch l.Attachment.Type {
		case "hook_additional_context":
			add(texts(l.Attachment.Content))
		case "queued_command":
			add(texts(l.Attachment.Prompt))
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
		if l.Message.Model == syntheticModel {
			*resumed++
		} else {
			t.answer(l.Parent, *resumed)
		}
		t.Answered = t.Answered || l.Message.ID != *first || len(t.came)+len(t.added) > 0
		if l.Message.Stop == "end_turn" || l.Message.Stop == "stop_sequence" {
			t.Ended = true
		}
	}
}

// answer notes that the model has answered: it has what hooks have added since its last answer,
// but for what a resumed conversation lacks. After a kill Claude Code leaves out what was added
// to the last input, and goes on from that input.
func (t *Transcript) answer(parent string, resumed int) {
	before := map[string]bool{}
	answers := map[string]bool{}
	for at := parent; at != "" && !before[at]; at = t.links[at].parent {
		before[at] = true
		answers[t.links[at].answer] = true
	}
	t.added = slices.DeleteFunc(t.added, func(a added) bool {
		if a.at != "" && parent != "" && !before[a.at] {
			// The results of calls that ran side by side, with what was added to them, are branches.
			if a.since != resumed || !t.beside(a.at, before, answers) {
				return false
			}
		}
		t.came = append(t.came, a.text)
		return true
	})
}

// beside reports whether a line was added to the result of a call of an answer among answers,
// on a branch of its own.
func (t *Transcript) beside(at string, before, answers map[string]bool) bool {
	for seen := map[string]bool{}; t.links[at].note && !seen[at]; at = t.links[at].parent {
		seen[at] = true
	}
	call, ok := t.links[t.links[at].parent]
	return ok && !before[at] && call.answer != "" && answers[call.answer]
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

// Noted reports whether a hook has added a text with all parts that the model has not answered yet:
// the running program has it, and loses it when it is killed.
func (t Transcript) Noted(parts ...string) bool {
	return slices.ContainsFunc(t.added, func(a added) bool { return hold([]string{a.text}, parts) })
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
