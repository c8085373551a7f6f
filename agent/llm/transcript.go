package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// meta is the data of an entry besides its text.
type meta struct {
	From   string            `json:"from,omitempty"`     // model of an assistant entry
	Calls  []model.Call      `json:"calls,omitempty"`    // of an assistant entry
	Call   string            `json:"call,omitempty"`     // the id of a tool_result's call
	Tool   string            `json:"name,omitempty"`     // its tool
	Failed bool              `json:"failed,omitempty"`   // it failed
	Millis int64             `json:"ms,omitempty"`       // how long it took
	Paths  []string          `json:"paths,omitempty"`    // files that it changed
	Why    string            `json:"decision,omitempty"` // the rule, the mode or the approval by which it was allowed or denied
	Diff   string            `json:"diff,omitempty"`     // of an edit
	Kept   int64             `json:"kept,omitempty"`     // of a compaction: seq of the first entry still sent
	Short  int64             `json:"short,omitempty"`    // of a compaction: results before this seq are sent shortened
	Sums   int               `json:"sums,omitempty"`     // of a compaction: summaries that the model was asked for
	Asked  bool              `json:"compact,omitempty"`  // of an event: a compaction was requested
	Task   task              `json:"task,omitempty"`     // of a user entry: the request in the sender's own words
	File   string            `json:"file,omitempty"`     // file with a long text
	Long   string            `json:"long,omitempty"`     // the file of Texts that has the entry's text
	Bytes  string            `json:"bytes,omitempty"`    // the file of Texts with the provider's bytes of an answer
	Inputs map[string]string `json:"inputs,omitempty"`   // of an assistant entry: the files of Texts with the inputs of calls, by call id
	Pieces []ledger.Piece    `json:"pieces,omitempty"`   // of a user entry made of a backlog: the files of Texts with parts of it
	Seen   map[string]string `json:"seen,omitempty"`     // of a tool_result: hashes of the files that it showed or wrote
	Usage  *team.Usage       `json:"usage,omitempty"`    // of the request that an assistant entry answers
}

// task is what a user entry asks for. An announce has an object in its place, which asks for
// nothing.
type task string

func (t *task) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

func metaOf(e ledger.Entry) (m meta, err error) {
	if len(e.Meta) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(e.Meta, &m); err != nil {
		return m, team.Errorf(team.CodeInternal, "entry %d of %s: %w", e.ID, e.Session, err)
	}
	return m, nil
}

func (m meta) raw() json.RawMessage {
	b, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("encode the facts of an entry: %v", err)) // strings and numbers only: cannot fail
	}
	return b
}

// transcript holds what the requests of a session are made from: its first entry, the newest
// compaction, and the entries kept by it.
type transcript struct {
	entries   []ledger.Entry
	metas     []meta
	texts     Texts
	gone      map[string]bool // ids of calls whose input cannot be read
	event     ledger.Entry    // the newest event, which is not part of requests
	compacted int64           // seq of the newest compaction
	upto      mark
	stale     bool // it is to be read again: it was compacted, or lacks a file
}

// readTranscript reads the transcript of a session.
func readTranscript(ctx context.Context, s Sessions, texts Texts, session string) (*transcript, error) {
	t := transcript{texts: texts}
	c, compacted, err := s.NewestEntry(ctx, session, ledger.EntryCompaction)
	if err != nil {
		return nil, err
	}
	after := int64(0)
	if compacted {
		m, err := metaOf(c)
		if err != nil {
			return nil, err
		}
		first, err := s.Entries(ctx, session, 0, 1)
		if err != nil {
			return nil, err
		}
		if err := t.add(append(first, c)...); err != nil {
			return nil, err
		}
		after = max(m.Kept-1, 1)
	}
	rest, err := s.Entries(ctx, session, after, 0)
	if err != nil {
		return nil, err
	}
	if n := len(rest); n > 0 {
		t.upto = markOf(rest[n-1])
	}
	return &t, t.add(slices.DeleteFunc(rest, func(e ledger.Entry) bool { return compacted && e.Kind == ledger.EntryCompaction })...)
}

// add appends entries as they are committed.
func (t *transcript) add(list ...ledger.Entry) error {
	for _, e := range list {
		switch e.Kind {
		case ledger.EntryEvent:
			t.event = e
			continue
		case ledger.EntryCompaction:
			t.compacted = max(t.compacted, e.Seq)
		case ledger.EntryUser, ledger.EntryAssistant, ledger.EntryToolResult:
		}
		m, err := metaOf(e)
		if err != nil {
			return err
		}
		t.whole(&e, &m)
		t.entries, t.metas = append(t.entries, e), append(t.metas, m)
	}
	return nil
}

// whole reads what an entry has in files. A missing file is named by the entry; without the
// provider's bytes it is sent as an answer of another model is.
func (t *transcript) whole(e *ledger.Entry, m *meta) {
	if t.texts == nil {
		return
	}
	read := func(name string) (string, bool) {
		text, err := t.texts.Read(name)
		t.stale = t.stale || err != nil
		return text, err == nil
	}
	if m.Long != "" {
		if text, ok := read(m.Long); ok {
			e.Content = text
		}
	}
	if m.Bytes != "" {
		if raw, ok := read(m.Bytes); ok {
			e.Raw = raw
		}
	}
	e.Content = ledger.WholeText(e.Content, m.Pieces, read)
	for i, c := range m.Calls {
		name := m.Inputs[c.ID]
		if name == "" {
			continue
		}
		if text, ok := read(name); ok {
			m.Calls[i].Input = json.RawMessage(text)
			continue
		}
		if t.gone == nil {
			t.gone = map[string]bool{}
		}
		t.gone[c.ID] = true
	}
}

// open returns the calls of the newest answer that have no result yet, in order.
func (t *transcript) open() []model.Call {
	last := -1
	for i, e := range t.entries {
		if e.Kind == ledger.EntryAssistant {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	done := map[string]bool{}
	for _, m := range t.metas[last:] {
		done[m.Call] = true
	}
	var open []model.Call
	for _, c := range t.metas[last].Calls {
		if !done[c.ID] {
			open = append(open, c)
		}
	}
	return open
}

// answered reports whether the newest relevant entry is an answer without calls: the turn has
// nothing left to do.
func (t *transcript) answered() bool {
	n := len(t.entries)
	return n > 0 && t.entries[n-1].Kind == ledger.EntryAssistant && len(t.metas[n-1].Calls) == 0
}

// messages returns the entries as messages for a model: consecutive entries of one side are one
// message, in which results of calls come first.
func (t *transcript) messages() ([]model.Message, error) {
	var out []model.Message
	short := t.short()
	for i, e := range t.entries {
		m := t.metas[i]
		if e.Kind == ledger.EntryCompaction && e.Content == "" {
			continue // it has only shortened results
		}
		switch e.Kind {
		case ledger.EntryAssistant:
			ref, err := refOf(m.From)
			if err != nil {
				return nil, err
			}
			msg := model.Message{Role: model.RoleAssistant, From: ref, Raw: json.RawMessage(e.Raw)}
			if e.Content != "" {
				msg.Parts = append(msg.Parts, model.Part{Text: e.Content})
			}
			for _, c := range m.Calls {
				msg.Parts = append(msg.Parts, model.Part{Call: &c})
			}
			out = append(out, msg)
		case ledger.EntryUser, ledger.EntryToolResult, ledger.EntryCompaction:
			if n := len(out); n == 0 || out[n-1].Role != model.RoleUser {
				out = append(out, model.Message{Role: model.RoleUser})
			}
			last := &out[len(out)-1]
			last.Parts = append(last.Parts, partOf(e, m, e.Seq < short))
		case ledger.EntryEvent:
		}
	}
	return out, nil
}

// short returns the seq from which on results are sent in full.
func (t *transcript) short() int64 {
	if i := t.compaction(); i >= 0 {
		return t.metas[i].Short
	}
	return 0
}

// compaction returns the index of the newest compaction, -1 without one.
func (t *transcript) compaction() int {
	for i := len(t.entries) - 1; i >= 0; i-- {
		if t.entries[i].Kind == ledger.EntryCompaction {
			return i
		}
	}
	return -1
}

const (
	shortResult = 200  // maximum length of a shortened result, in characters
	longBegins  = 2000 // characters in the entry of an answer whose whole text is in a file
)

func partOf(e ledger.Entry, m meta, short bool) model.Part {
	text := e.Content
	if e.Kind != ledger.EntryToolResult {
		return model.Part{Text: text}
	}
	if cut := cutRunes(text, shortResult); short && cut != text {
		text = fmt.Sprintf("%s\n[shortened: it had %d bytes]", cut, len(text))
	}
	return model.Part{Result: &model.Result{CallID: m.Call, Text: text, Failed: m.Failed}}
}

func refOf(s string) (model.Ref, error) {
	if s == "" {
		return model.Ref{}, nil
	}
	return model.ParseRef(s)
}

// textOf returns the text of an answer.
func textOf(m model.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

func callsOf(m model.Message) []model.Call {
	var calls []model.Call
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, *p.Call)
		}
	}
	return calls
}
