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

// kept are texts in memory.
type kept map[string]string

func (k kept) Keep(_, text string) (string, error) {
	if strings.HasPrefix(text, "full disk") {
		return "", fs.ErrInvalid
	}
	k["a"] = text
	return "a", nil
}

func (k kept) Read(name string) (string, error) {
	if text, ok := k[name]; ok {
		return text, nil
	}
	return "", errors.New("gone")
}

// TestLongResult: a long result stands in a file, the model is sent it whole, and where the
// file is gone the entry says which it was.
func TestLongResult(t *testing.T) {
	t.Parallel()
	files := kept{}
	tr := &turn{Runner: &Runner{Texts: files}, desk: &testDesk{}}
	long := strings.Repeat("x", maxEntry+1)
	for text, name := range map[string]string{long: "a", long[1:]: "", "full disk" + long: ""} {
		short, got := tr.keep(text)
		if got != name || name == "" && short != text || name != "" && len(short) > 1000 {
			t.Errorf("%d bytes: kept %d in the entry, and file %q, want %q", len(text), len(short), got, name)
		}
	}
	short, _ := tr.keep(long)
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
