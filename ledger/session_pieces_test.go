package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// TestLongBacklog: an entry made of a backlog names the files of the items that have one, each with
// its place, and has everybody's task.
func TestLongBacklog(t *testing.T) {
	t.Parallel()
	r := newSessionRig(t)
	r.says(devKey, "work")
	first := r.mustClaim(devKey, "g")
	whole := map[string]string{"a.txt": strings.Repeat("a long one\n", 10), "b.txt": "b"}
	for i, in := range []NewEntry{
		{Content: "short\nnews", Meta: json.RawMessage(`{"task":"news"}`)},
		{Content: "a lo…\n[110 bytes, in the file a.txt]", Meta: json.RawMessage(`{"task":"a long","long":"a.txt"}`)},
		{Content: "a lo…\n[110 bytes, in the file gone.txt]", Meta: json.RawMessage(`{"long":"gone.txt"}`)},
		{Content: "of nobody", Meta: json.RawMessage(`{"task":{"label":"x"}}`)},
		{Content: "…", Meta: json.RawMessage(`{"task":"b","long":"b.txt"}`)},
	} {
		in.Kind, in.Source = EntryUser, itoa(int64(i))
		if _, err := r.TakeIn(r.ctx, TakeIn{Session: devKey, Inputs: []Input{{NewEntry: in}}}); err != nil {
			t.Fatal(err)
		}
	}
	r.end(first, team.TurnDone)
	list := r.mustClaim(devKey, "g").Entries
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	var meta struct {
		Task   string
		Pieces []Piece
	}
	if err := json.Unmarshal(list[0].Meta, &meta); err != nil {
		t.Fatal(err)
	}
	if want := "news; a long; a lo…\n[110 bytes, in the file gone.txt]; of nobody; b"; meta.Task != want {
		t.Errorf("task %q, want %q", meta.Task, want)
	}
	read := func(file string) (string, bool) {
		text, ok := whole[file]
		return text, ok
	}
	want := "[Backlog]\nshort\nnews\n" + whole["a.txt"] + "\na lo…\n[110 bytes, in the file gone.txt]\nof nobody\nb"
	if got := WholeText(list[0].Content, meta.Pieces, read); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, bad := range [][]Piece{{{At: -1, Size: 2, File: "b.txt"}}, {{At: 1, Size: 9, File: "b.txt"}}, {{At: 2, Size: -1, File: "b.txt"}}} {
		if got := WholeText("four", bad, read); got != "four" {
			t.Errorf("%v: %q", bad, got)
		}
	}
}
