package tool

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/teamctl/teamctl/ledger"
)

// TestWhole: who reads a transcript is given the texts that stand in files: of entries, of inputs of
// calls, and of parts of a backlog. Where a file is gone, the entry stays as it is.
func TestWhole(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	dev := r.session("dev", "default")
	dir := r.Layout.Bundle("dev").Outputs()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"text": "the whole text", "input": `{"content":"the whole input"}`, "item": "the whole item"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(content, meta string) ledger.Entry {
		return ledger.Entry{NewEntry: ledger.NewEntry{Content: content, Meta: json.RawMessage(meta)}}
	}
	const calls = `{"calls":[{"id":"1","name":"ls","input":{}},{"id":"2","name":"write","input":{"input":"[9 bytes]"}}],"inputs":{"2":`
	list := []ledger.Entry{
		entry("the…", `{"long":"text"}`), entry("gone…", `{"long":"gone"}`),
		entry("", calls+`"input"}}`), entry("", calls+`"gone"}}`),
		entry("[Backlog]\na\nb", `{"pieces":[{"at":10,"size":1,"file":"item"},{"at":12,"size":1,"file":"gone"}]}`),
	}
	if err := r.Whole(t.Context(), dev.Session, list); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"the whole text", "gone…", "", "", "[Backlog]\nthe whole item\nb"} {
		if list[i].Content != want {
			t.Errorf("entry %d: %q, want %q", i, list[i].Content, want)
		}
	}
	for i, want := range map[int]string{2: `{"content":"the whole input"}`, 3: `{"input":"[9 bytes]"}`} {
		var meta struct {
			Calls []struct{ Input json.RawMessage }
		}
		if err := json.Unmarshal(list[i].Meta, &meta); err != nil || len(meta.Calls) != 2 || string(meta.Calls[0].Input) != "{}" || string(meta.Calls[1].Input) != want {
			t.Errorf("entry %d: %s, %v", i, list[i].Meta, err)
		}
	}
}
