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

// claudeKeeps is the oldest version seen to resume a conversation with all that hooks had added to
// it. Earlier ones leave out what was added to the last input.
var claudeKeeps = Version{2, 1, 329}

// Records reports whether a version of a program writes the output of its hooks to its transcript,
// as its model gets it. The transcript is then the only evidence. What a hook has added counts once
// the model has answered: before, a process may be killed and resumed without it.
func Records(cli string, v Version) bool { return cli == Claude && v.atLeast(claudeRecords) }

// RecordsAnswered reports whether a program writes the output of its hooks to its transcript, and
// a resumed conversation has it, once its model has answered. Other evidence counts as well.
func RecordsAnswered(cli string) bool { return cli == Gemini }

// Transcript is a part of the record of a conversation.
type Transcript struct {
	came        []string // texts that the model gets, oldest first, also after a restart
	added       []added  // texts of hooks which the model has not answered yet
	entities    bool     // the texts have entities for angle brackets
	queued      []string // texts that the program has accepted and not yet put into the conversation
	Ended       bool     // a turn has ended
	Interrupted bool     // a turn was interrupted
	Answered    bool     // the model has answered the last input
}

// claudeRecord reads Claude Code's transcript.
type claudeRecord struct {
	t       Transcript
	first   string          // the first answer, which may have begun before the part that is read
	links   map[string]link // by id
	resumed int             // how many times the conversation was resumed
	cut     int             // by a version that leaves out what hooks had added to the last input
}

// added is a text that a hook has added to a conversation.
type added struct {
	at, text string // at is the id of its line
	since    int    // how many times the conversation had been resumed
	cut      int    // of these by a version that leaves out what was added
	end      bool   // by the hook at the end of a turn: the next answer follows it
	lost     bool   // the conversation went on without it
}

// link is what is known of a line of Claude Code's transcript, which is a tree: the line that it
// follows, and, of a line of the model, its answer, which may have several.
type link struct {
	parent, answer string
	note           bool // what a hook or the program has added
	n              int  // of the line: a line follows one before it
}

// ReadTranscript parses a part of a transcript. It skips lines that are cut off at the beginning
// or the end.
func ReadTranscript(cli string, data []byte) (t Transcript) {
	switch cli {
	case Claude:
		r := claudeRecord{links: map[string]link{}}
		for line := range bytes.Lines(data) {
			r.line(line)
		}
		t = r.t
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
	Version   string // of the program
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
		Event   string `json:"hookEvent"`
		Content json.RawMessage
		Prompt  json.RawMessage
	}
}

// interruptedMark begins the text that Claude Code writes for an interrupt.
const interruptedMark = "[Request interrupted by user"

// syntheticModel is the model of answers that Claude Code has written itself, as when it resumes a
// conversation whose last turn had no answer.
const syntheticModel = "<synthetic>"

func (r *claudeRecord) line(line []byte) {
	t := &r.t
	var l recordLine
	if json.Unmarshal(line, &l) != nil || l.Sidechain {
		return
	}
	if l.UUID != "" {
		r.links[l.UUID] = link{l.Parent, l.Message.ID, l.Type == "attachment" || l.Type == "system", len(r.links) + 1}
	}
	add := func(list []string) {
		for _, s := range list {
			t.added = append(t.added, added{at: l.UUID, text: s, since: r.resumed, cut: r.cut, end: EndsTurn(Claude, l.Attachment.Event)})
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
		if r.first == "" {
			r.first = l.Message.ID
		}
		if l.Message.Model == syntheticModel {
			r.resumed++
			if v, _ := ParseVersion(l.Version); !v.atLeast(claudeKeeps) {
				r.cut++
			}
		} else {
			r.answer(l.Parent)
		}
		t.Answered = t.Answered || l.Message.ID != r.first || len(t.came)+len(t.added) > 0
		if l.Message.Stop == "end_turn" || l.Message.Stop == "stop_sequence" {
			t.Ended = true
		}
	}
}

// answer notes that the model has answered: it has what hooks have added since its last answer,
// but for what a resumed conversation lacks. After a kill earlier versions leave out what was added
// to the last input, and go on from that input.
func (r *claudeRecord) answer(parent string) {
	// The way back ends at the oldest call that something was added to.
	oldest := len(r.links) + 1
	for _, a := range r.t.added {
		if !a.lost {
			oldest = min(oldest, r.links[r.links[r.base(a.at)].parent].n)
		}
	}
	before := map[string]bool{}
	answers := map[string]bool{}
	for at := parent; at != "" && !before[at] && r.links[at].n >= oldest; at = r.links[at].parent {
		before[at] = true
		answers[r.links[at].answer] = true
	}
	var left []added
	for _, a := range r.t.added {
		switch {
		case a.lost:
		// The results of calls that ran side by side, with what was added to them, are branches.
		case a.at == "", parent == "", before[a.at], a.cut == r.cut && r.beside(a.at, before, answers):
			r.t.came = append(r.t.came, a.text)
			continue
		default:
			a.lost = a.end || a.since != r.resumed // the next answer follows what the end of a turn has added
		}
		left = append(left, a)
	}
	r.t.added = left
}

// base returns the line that a hook's text was added to.
func (r *claudeRecord) base(at string) string {
	for seen := map[string]bool{}; r.links[at].note && !seen[at]; at = r.links[at].parent {
		seen[at] = true
	}
	return at
}

// beside reports whether a line was added to the result of a call of an answer among answers,
// on a branch of its own.
func (r *claudeRecord) beside(at string, before, answers map[string]bool) bool {
	at = r.base(at)
	call, ok := r.links[r.links[at].parent]
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
// the program that has called the hook has it.
func (t Transcript) Noted(parts ...string) bool {
	return slices.ContainsFunc(t.added, func(a added) bool { return !a.lost && hold([]string{a.text}, parts) })
}

// Kept reports whether a process of a version that has resumed the conversation has a noted text.
func (t Transcript) Kept(v Version, parts ...string) bool {
	return v.atLeast(claudeKeeps) && t.Noted(parts...)
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
