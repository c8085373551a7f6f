package llm

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/agent/model"
	"github.com/teamctl/teamctl/ledger"
)

// kept stores texts in memory.
type kept map[string]string

func (k kept) Keep(text string) (string, error) {
	if strings.HasPrefix(text, "full disk") {
		return "", fs.ErrInvalid
	}
	name := string(rune('a' + len(k)))
	k[name] = text
	return name, nil
}

func (k kept) Read(name string) (string, error) {
	if text, ok := k[name]; ok {
		return text, nil
	}
	return "", errors.New("gone")
}

// TestLongResult checks that a long result is stored in a file and sent to the model in full, and
// that the entry names the file if it is missing.
func TestLongResult(t *testing.T) {
	t.Parallel()
	files := kept{}
	tr := &turn{Runner: &Runner{Texts: files}, desk: &testDesk{}}
	long := strings.Repeat("x", ledger.MaxEntryText+1)
	for text, name := range map[string]string{long: "a", long[1:]: "", "full disk" + long: ""} {
		short, got := tr.keep(text, shortResult)
		if got != name || name == "" && short != text || name != "" && len(short) > 1000 {
			t.Errorf("%d bytes: kept %d in the entry, and file %q, want %q", len(text), len(short), got, name)
		}
	}
	clear(files)
	short, _ := tr.keep(long, shortResult)
	e := ledger.Entry{Seq: 3, NewEntry: ledger.NewEntry{Kind: ledger.EntryToolResult, Content: short, Meta: meta{Call: "1", Long: "a"}.raw()}}
	sent := func() string {
		c := conversation(t, "u task", "a on it", "c 1 x")
		c.texts = files
		if err := c.add(e); err != nil {
			t.Fatal(err)
		}
		msgs, err := c.messages()
		if err != nil {
			t.Fatal(err)
		}
		last := msgs[len(msgs)-1]
		if last.Role != model.RoleUser || last.Parts[0].Result == nil {
			raw, _ := json.Marshal(last)
			t.Fatalf("%s", raw)
		}
		return last.Parts[0].Result.Text
	}
	if got := sent(); got != long {
		t.Errorf("%d bytes are sent, want %d", len(got), len(long))
	}
	delete(files, "a")
	if got := sent(); !strings.Contains(got, "in the file a]") {
		t.Errorf("%.300s", got)
	}
}

// TestLongAnswer checks that a long answer and the provider's raw bytes are stored in files and
// sent back to the model unchanged.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	files := kept{}
	ref := model.Ref{Provider: "p", Model: "m"}
	tr := &turn{Runner: &Runner{Texts: files}, desk: &testDesk{}, setup: Setup{Model: ref}}
	said, raw := strings.Repeat("y", ledger.MaxEntryText+1), `["`+strings.Repeat("z", ledger.MaxEntryText)+`"]`
	e, _ := tr.answer(model.Answer{Message: model.Message{Role: model.RoleAssistant, From: ref, Raw: json.RawMessage(raw), Parts: []model.Part{{Text: said}}}})
	if len(e.Content)+len(e.Raw)+len(e.Meta) > 4000 || len(files) != 2 {
		t.Errorf("%d bytes in the entry, %d of them the provider's; %d files", len(e.Content)+len(e.Raw), len(e.Raw), len(files))
	}
	c := conversation(t, "u task")
	c.texts = files
	if err := c.add(ledger.Entry{Seq: 2, NewEntry: e}); err != nil {
		t.Fatal(err)
	}
	msgs, err := c.messages()
	if err != nil {
		t.Fatal(err)
	}
	last := msgs[len(msgs)-1]
	if string(last.Raw) != raw || len(last.Parts) != 1 || last.Parts[0].Text != said {
		t.Errorf("%d bytes go back, want %d", len(last.Raw), len(raw))
	}
}

// TestLongInput checks that a long input of a call is stored in a file, and passed unchanged to
// its tool and back to the model. A call whose file is missing is marked, so that it does not
// run.
func TestLongInput(t *testing.T) {
	t.Parallel()
	files := kept{}
	tr := &turn{Runner: &Runner{Texts: files}, desk: &testDesk{}, setup: Setup{Model: model.Ref{Provider: "p", Model: "m"}}}
	long := json.RawMessage(`{"content":"` + strings.Repeat("x", ledger.MaxEntryText) + `"}`)
	e, calls := tr.answer(model.Answer{Message: model.Message{Role: model.RoleAssistant, Parts: []model.Part{
		{Call: &model.Call{ID: "1", Name: "read", Input: json.RawMessage(`{}`)}}, {Call: &model.Call{ID: "2", Name: "write", Input: long}},
	}}})
	if len(e.Meta) > 1000 || len(files) != 1 || len(calls) != 2 || calls[0].Input != "{}" || calls[1].Input != `{"input":"[32782 bytes, in the file a]"}` {
		t.Errorf("%d bytes of meta, %d files, %.200v", len(e.Meta), len(files), calls)
	}
	read := func() *transcript {
		c := conversation(t, "u task")
		c.texts = files
		if err := c.add(ledger.Entry{Seq: 2, NewEntry: e}); err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read()
	if open := c.open(); len(open) != 2 || string(open[0].Input) != "{}" || string(open[1].Input) != string(long) || len(c.gone) > 0 {
		t.Errorf("%.300v, %v", open, c.gone)
	}
	msgs, err := c.messages()
	if err != nil {
		t.Fatal(err)
	}
	if last := msgs[len(msgs)-1]; len(last.Parts) != 2 || string(last.Parts[1].Call.Input) != string(long) {
		t.Errorf("%.300v", last)
	}
	delete(files, "a")
	if c = read(); !c.gone["2"] || c.gone["1"] {
		t.Errorf("gone: %v", c.gone)
	}
}

// TestLongSummary checks that a long summary is stored in a file and sent to the model in full.
func TestLongSummary(t *testing.T) {
	t.Parallel()
	files := kept{}
	tr := &turn{Runner: &Runner{Texts: files}, desk: &testDesk{}}
	long := strings.Repeat("s", ledger.MaxEntryText+1)
	before := conversation(t, "u task", "a one", "u more", "a two", "u newest")
	next := before.shortened(0).summarised(0, long, "")
	e := tr.compaction(next, 1)
	if len(e.Content) > 4000 || len(files) != 1 || !strings.Contains(files["a"], long) {
		t.Fatalf("%d bytes in the entry, %d files", len(e.Content), len(files))
	}
	read := func() string {
		c := conversation(t, "u task", "a one", "u more", "a two", "u newest")
		c.texts = files
		if err := c.add(ledger.Entry{Seq: 9, NewEntry: e}); err != nil {
			t.Fatal(err)
		}
		return c.entries[c.compaction()].Content
	}
	if got := read(); got != next.entries[next.compaction()].Content {
		t.Errorf("%d bytes are read, want the summary of %d", len(got), len(long))
	}
	delete(files, "a")
	if got := read(); !strings.Contains(got, "in the file a]") {
		t.Errorf("%.300s", got)
	}
}
