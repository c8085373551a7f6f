package inbox

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestFormatGolden(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b,
		Entry{From: "team-lead", Text: "hello <you> & \"all\"\n\u2028\x01", Timestamp: "2026-02-09T15:08:17.410Z"},
		Entry{From: "w", Text: "t", Summary: "s", Timestamp: "2026-02-09T15:08:17.411Z", Color: "blue",
			ID: "id-1", Type: "message", Extra: team.JSONObject{{Key: "msgV", Value: json.RawMessage("1")}, {Key: "o", Value: json.RawMessage(`{"a":[1,{}]}`)}}},
		Entry{From: "w", Text: "bad \xff\xfe bytes", Timestamp: "2026-02-09T15:08:17.412Z", Read: true},
	)
	golden(t, "mailbox.json", content(t, b))
	got := entries(t, b)
	if string(got[2].RawText()) != "bad \xff\xfe bytes" || got[2].Text != "bad \ufffd bytes" {
		t.Errorf("invalid text came back as %q, %q", got[2].RawText(), got[2].Text)
	}
	if string(got[0].RawText()) != got[0].Text {
		t.Error("raw text of a valid one differs")
	}
	if got[1].ID != "id-1" || got[1].Type != "message" || got[1].Summary != "s" || got[1].Color != "blue" || len(got[1].Extra) != 2 {
		t.Errorf("read back %+v", got[1])
	}
}

// Mailboxes in the format of Claude Code's native teams are read without loss
// and written byte for byte: by the codec from the fields, and by a rewrite
// from the text. Those in testdata have that format with texts of our own; a
// recorded team next to the repository is read as well.
func TestNativeMailboxesGoRound(t *testing.T) {
	t.Parallel()
	own, err := filepath.Glob(filepath.Join("testdata", "native", "*.json"))
	if err != nil || len(own) != 2 {
		t.Fatalf("%q, %v", own, err)
	}
	recorded, err := filepath.Glob(filepath.Join("..", "..", "shared", "fixtures", "recorded-team", "inboxes", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(own, recorded...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			original := string(data)
			b, _ := newBox(t)
			put(t, b, original)
			all := entries(t, b)
			if len(all) == 0 {
				t.Fatal("no entries")
			}
			fresh, _ := newBox(t)
			for _, e := range all {
				if len(e.Extra) > 0 || e.From == "" || e.Timestamp == "" {
					t.Errorf("entry %+v", e)
				}
				add(t, fresh, e)
			}
			if content(t, fresh) != original {
				t.Error("written from its fields it differs")
			}
			// An append keeps every byte before the bracket; a prune rewrites
			// the file.
			add(t, b, Entry{From: "x", Text: "new"})
			if !strings.HasPrefix(content(t, b), strings.TrimSuffix(original, "\n]")+",\n") {
				t.Error("an append changed what was there")
			}
			put(t, b, original)
			var want []string
			for _, e := range all {
				if !e.Read {
					want = append(want, e.Text)
				}
			}
			if _, err := b.Prune(bg(t), len(all), nil); err != nil {
				t.Fatal(err)
			}
			if content(t, b) != original {
				t.Error("a prune with nothing to do changed the file")
			}
			if _, err := b.Prune(bg(t), 0, nil); err != nil {
				t.Fatal(err)
			}
			if got := textsOf(entries(t, b)); got != strings.Join(want, "|") {
				t.Errorf("after the prune: %q", got)
			}
			for _, e := range all {
				if f, ok := e.Frame(); ok {
					if text, err := Encode(f); err != nil || text != e.Text {
						t.Errorf("frame %q became %q, %v", e.Text, text, err)
					}
				} else if strings.HasPrefix(e.Text, `{"type"`) {
					t.Errorf("not recognised: %q", e.Text)
				}
			}
		})
	}
}

func TestForeignFormsAreRead(t *testing.T) {
	t.Parallel()
	one := `{"from":"a","text":"1","timestamp":"t","read":false}`
	for name, tc := range map[string]struct{ text, want string }{
		"empty file":       {"", ""},
		"white space":      {" \r\n\t", ""},
		"BOM only":         {"\xef\xbb\xbf", ""},
		"empty array":      {"[]", ""},
		"empty with space": {"[ \n ]\n", ""},
		"compact":          {"[" + one + "]", "1"},
		"trailing newline": {"[\n  " + one + "\n]\n", "1"},
		"BOM":              {"\xef\xbb\xbf[" + one + "]", "1"},
		"CRLF":             {"[\r\n  {\r\n    \"from\": \"a\",\r\n    \"text\": \"1\"\r\n  }\r\n]\r\n", "1"},
		"tabs":             {"[\n\t{\n\t\t\"from\": \"a\",\n\t\t\"text\": \"1\"\n\t}\n]", "1"},
		"no read key":      {`[{"from":"a","text":"1"}]`, "1"},
		"duplicate keys":   {`[{"from":"a","text":"0","text":"1","read":true,"read":false}]`, "1"},
		"null and numbers": {`[null,5,"x",[],{"from":"a","text":"1","summary":null,"color":7}]`, "1"},
		"escaped":          {`[{"fr\u006fm":"a","text":"\u0031"}]`, "1"},
		"late client":      {`[{"from":"a","text":"1","msgV":1,"msg_id":"m","type":"message","read":false,"lead_sig":"x"}]`, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBox(t)
			put(t, b, tc.text)
			if got := textsOf(entries(t, b)); got != tc.want {
				t.Errorf("entries %q, want %q", got, tc.want)
			}
			if content(t, b) != tc.text {
				t.Error("reading changed the file")
			}
			unread, err := b.Unread(bg(t))
			if err != nil || textsOf(unread) != tc.want {
				t.Errorf("unread %q, %v", textsOf(unread), err)
			}
			add(t, b, Entry{From: "b", Text: "2"}, Entry{From: "b", Text: "3"})
			want := strings.TrimPrefix(tc.want+"|2|3", "|")
			if got := textsOf(entries(t, b)); got != want {
				t.Errorf("after two appends %q, want %q", got, want)
			}
			if !json.Valid([]byte(content(t, b))) {
				t.Errorf("not JSON:\n%s", content(t, b))
			}
			got, err := b.Consume(bg(t), 0, nil)
			if err != nil || textsOf(got) != want {
				t.Errorf("consumed %q, %v", textsOf(got), err)
			}
			if got, err := b.Consume(bg(t), 0, nil); err != nil || len(got) != 0 {
				t.Errorf("consumed again %q, %v", textsOf(got), err)
			}
			if !json.Valid([]byte(content(t, b))) {
				t.Errorf("not JSON after consume:\n%s", content(t, b))
			}
		})
	}
}

// Every operation preserves what another program wrote, except for the read
// mark.
func TestForeignKeysSurvive(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	put(t, b, `[{"z":1e2,"from":"a","text":"caf\u00e9","deep":{"k":[1,2]},"lead_sig":"s"},5]`)
	if n, err := b.MarkAllRead(bg(t)); n != 1 || err != nil {
		t.Fatalf("marked %d, %v", n, err)
	}
	golden(t, "foreign-marked.json", content(t, b))
}

func TestMissingAndEmpty(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	ctx := bg(t)
	if got := entries(t, b); len(got) != 0 {
		t.Error(got)
	}
	if _, err := b.Consume(ctx, 0, nil); err != nil {
		t.Error(err)
	}
	if n, err := b.Prune(ctx, 0, nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if c, err := b.Repair(ctx); c != nil || err != nil {
		t.Error(c, err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("reading created %q", got)
	}
	add(t, b, Entry{From: "a", Text: "1"})
	if st, err := os.Stat(b.Path()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	for _, d := range []string{"inboxes", "locks"} {
		if st, err := os.Stat(filepath.Join(dir, d)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v, %v", d, st.Mode(), err)
		}
	}
	if got := names(t, filepath.Join(dir, "inboxes")); !slices.Equal(got, []string{"bob.json"}) {
		t.Errorf("litter: %q", got)
	}
	gone, err := Open(filepath.Join(dir, "gone", "inboxes"), filepath.Join(dir, "gone", "locks"), "bob")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Append(ctx, Entry{From: "a", Text: "1"}); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("append for a deleted team: %v", err)
	}
}

func TestAppendChecks(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	ctx := bg(t)
	if err := b.Append(ctx, Entry{Text: "x"}); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("no sender: %v", err)
	}
	if err := b.Append(ctx, Entry{From: "a", Text: strings.Repeat("x", maxText+1)}); !team.IsCode(err, team.CodeLimit) || team.ReasonOf(err) != "message_too_large" {
		t.Errorf("too large: %v", err)
	}
	if err := b.Append(ctx, Entry{From: "a", Extra: team.JSONObject{{Key: "k", Value: json.RawMessage("{")}}}); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("bad extra value: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("refused messages created %q", got)
	}
	if _, err := Open(dir, dir, "../x"); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("hostile name: %v", err)
	}
	if b, err := Open(dir, dir, "w@eps"); err != nil || filepath.Base(b.Path()) != "w-eps.json" {
		t.Errorf("%v, %v", b, err)
	}
}

// A file deleted after it was compared is not recreated with the missing
// entries: that would hide the rest.
func TestDeletedUnderReconcile(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "0"})
	_, err := b.Reconcile(bg(t), "", nil, func([]Trace) ([]Entry, error) {
		return []Entry{numbered("a", 1)}, os.Remove(b.Path())
	})
	if !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if _, err := os.Stat(b.Path()); err == nil {
		t.Error("the file was made anew")
	}
}

// A new file gets a mark of its own, so that a process that restored the former
// file does not declare the new one whole.
func TestReconcileMarksANewFile(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	ctx := bg(t)
	first, err := b.Lack(ctx)
	if err != nil {
		t.Fatal(err)
	}
	one := func([]Trace) ([]Entry, error) { return []Entry{numbered("a", 1)}, nil }
	second, err := b.Reconcile(ctx, first, nil, one)
	if err != nil || second == first || len(entries(t, b)) != 1 {
		t.Fatalf("%q after %q, %v", second, first, err)
	}
	if whole, err := b.Whole(ctx, first); whole || err != nil {
		t.Errorf("whole by the old mark: %v, %v", whole, err)
	}
	if again, err := b.Reconcile(ctx, second, nil, one); again != second || err != nil {
		t.Errorf("with a file: %q, %v; want %q", again, err, second)
	}
	if whole, err := b.Whole(ctx, second); !whole || err != nil {
		t.Errorf("whole by the new mark: %v, %v", whole, err)
	}
}

func TestConsume(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	ctx := bg(t)
	for i := range 6 {
		add(t, b, Entry{From: []string{"a", "b"}[i%2], Text: string(rune('0' + i)), ID: "m" + string(rune('0'+i))})
	}
	got, err := b.Consume(ctx, 2, func(e Entry) bool { return e.From == "b" })
	if err != nil || textsOf(got) != "1|3" || !got[0].Read || got[1].Index != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = b.Unread(ctx); err != nil || textsOf(got) != "0|2|4|5" {
		t.Errorf("left %q, %v", textsOf(got), err)
	}
	if n, err := b.MarkRead(ctx, "m4", "m1", "none"); n != 1 || err != nil {
		t.Errorf("marked %d, %v", n, err)
	}
	if got, err = b.Consume(ctx, 0, nil); err != nil || textsOf(got) != "0|2|5" {
		t.Errorf("rest %q, %v", textsOf(got), err)
	}
	add(t, b, Entry{From: "c", Text: "new"})
	if got, err = b.Consume(ctx, 0, nil); err != nil || textsOf(got) != "new" || got[0].Index != 6 {
		t.Errorf("new %+v, %v", got, err)
	}
	if !json.Valid([]byte(content(t, b))) {
		t.Error("not JSON")
	}
	for _, e := range entries(t, b) {
		if !e.Read {
			t.Errorf("%q is unread", e.Text)
		}
	}
}

func TestKeyOfAnEntryWithoutID(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	put(t, b, `[{"from":"a","text":"1","timestamp":"x"},{"from":"a","text":"1","timestamp":"y"}]`)
	all := entries(t, b)
	if all[0].Key() == all[1].Key() || all[0].Key() == "" {
		t.Errorf("keys %q, %q", all[0].Key(), all[1].Key())
	}
	if n, err := b.MarkRead(bg(t), all[1].Key()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if again := entries(t, b); again[0].Read || !again[1].Read {
		t.Errorf("marked %+v", again)
	}
}

// The remembered position must not hide entries when other programs rewrite the
// file.
func TestForeignRewritesBetweenOurReads(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	other := boxIn(t, dir)
	ctx := bg(t)
	consume := func(want string) {
		t.Helper()
		if got, err := b.Consume(ctx, 0, nil); err != nil || textsOf(got) != want {
			t.Fatalf("consumed %q, %v; want %q", textsOf(got), err, want)
		}
	}
	add(t, b, numbered("a", 1), numbered("a", 2))
	consume(numbered("a", 1).Text + "|" + numbered("a", 2).Text)
	add(t, other, numbered("a", 3))
	consume(numbered("a", 3).Text)

	// Rewritten in place, by a client that removes read entries.
	put(t, b, `[{"from":"f","text":"short","read":false}]`)
	consume("short")
	// The same with a longer text than before.
	put(t, b, `[{"from":"f","text":"`+strings.Repeat("long ", 400)+`"},{"from":"f","text":"2"}]`)
	consume(strings.Repeat("long ", 400) + "|2")
	// Replaced by rename.
	if _, err := other.Prune(ctx, 0, nil); err != nil {
		t.Fatal(err)
	}
	add(t, other, numbered("a", 4))
	consume(numbered("a", 4).Text)
	if err := os.Remove(b.Path()); err != nil {
		t.Fatal(err)
	}
	consume("")
	add(t, b, numbered("a", 6))
	consume(numbered("a", 6).Text)
}

func TestPrune(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	ctx := bg(t)
	put(t, b, `[7,{"from":"a","text":"0","read":true},{"from":"a","text":"1","read":false},{"from":"a","text":"2","read":true},{"from":"a","text":"3","read":true},{"from":"a","text":"4"}]`)
	for _, tc := range []struct {
		keep, gone int
		left       string
	}{{3, 0, "0|1|2|3|4"}, {2, 1, "1|2|3|4"}, {-1, 2, "1|4"}, {0, 0, "1|4"}} {
		n, err := b.Prune(ctx, tc.keep, nil)
		if n != tc.gone || err != nil || textsOf(entries(t, b)) != tc.left {
			t.Errorf("keep %d: %d gone, %v, left %q", tc.keep, n, err, textsOf(entries(t, b)))
		}
	}
	if !strings.Contains(content(t, b), "  7,") {
		t.Errorf("the foreign value is gone:\n%s", content(t, b))
	}
	add(t, b, Entry{From: "b", Text: "5"})
	if _, err := b.MarkAllRead(ctx); err != nil {
		t.Fatal(err)
	}
	var told string
	no := errors.New("no")
	if _, err := b.Prune(ctx, 1, func(gone []Entry) error { told = textsOf(gone); return no }); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	if left := textsOf(entries(t, b)); told != "1|4" || left != "1|4|5" {
		t.Errorf("told of %q, left %q", told, left)
	}
}
