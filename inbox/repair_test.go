package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestDamagedFileIsSetAsideAndSalvaged(t *testing.T) {
	t.Parallel()
	whole := `[{"from":"a","text":"1"},{"from":"a","text":"2"}`
	for name, tc := range map[string]struct {
		text string
		left string
		torn bool
	}{
		"no bracket":         {whole, "1|2", true},
		"torn text":          {whole + `,{"from":"a","te`, "1|2", true},
		"torn escape":        {whole + `,{"from":"a\`, "1|2", true},
		"torn after bracket": {"[", "", true},
		"text after":         {whole + `] , {"from":"a"}]`, "1|2", false},
		"zeros":              {whole + "\x00\x00\x00\x00\x00\x00", "1|2", false},
		"only zeros":         {"\x00\x00\x00\x00\x00\x00\x00\x00", "", false},
		"object":             {`{"from":"a"}`, "", false},
		"not JSON":           {"hello", "", false},
		"bad in the middle":  {whole + `,oops,{"from":"a","text":"3"}]`, "1|2", false},
		"trailing comma":     {whole + `,]`, "1|2", false},
		"two arrays":         {"[]\n[]", "", false},
		"raw control":        {whole + ",{\"from\":\"a\x01\"}]", "1|2", false},
		"deep":               {whole + "," + strings.Repeat("[", 100_000), "1|2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a damaged file is looked at again after a moment
			for op, do := range map[string]func(*Box) error{
				"entries": func(b *Box) error { _, err := b.Entries(bg(t)); return err },
				"unread":  func(b *Box) error { _, err := b.Unread(bg(t)); return err },
				"consume": func(b *Box) error {
					got, err := b.Consume(bg(t), 0, nil)
					if err != nil && len(got) > 0 {
						t.Errorf("handed over %q with an error", textsOf(got))
					}
					return err
				},
				"append": func(b *Box) error { return b.Append(bg(t), Entry{From: "z", Text: "new"}) },
				"mark":   func(b *Box) error { _, err := b.MarkRead(bg(t), "x"); return err },
				"prune":  func(b *Box) error { _, err := b.Prune(bg(t), 0, nil); return err },
				"repair": func(b *Box) error {
					c, err := b.Repair(bg(t))
					if err == nil && c != nil {
						err = c
					}
					return err
				},
			} {
				b, dir := newBox(t)
				put(t, b, tc.text)
				err := do(b)
				var corrupt *CorruptError
				if !errors.As(err, &corrupt) {
					t.Fatalf("%s: %v", op, err)
				}
				if team.CodeOf(err) != team.CodeInternal || team.ReasonOf(err) != team.ReasonCorruptMailbox || team.HintOf(err) == "" {
					t.Errorf("%s: code %s, reason %q", op, team.CodeOf(err), team.ReasonOf(err))
				}
				if corrupt.Torn != tc.torn || corrupt.Path != b.Path() {
					t.Errorf("%s: %+v", op, corrupt)
				}
				if data, err := os.ReadFile(corrupt.Moved); err != nil || string(data) != tc.text {
					t.Errorf("%s: set aside %q, %v", op, data, err)
				}
				if got := textsOf(entries(t, b)); got != tc.left {
					t.Errorf("%s: salvaged %q, want %q", op, got, tc.left)
				}
				if err := do(b); err != nil {
					t.Errorf("%s: a second time: %v", op, err)
				}
				if !json.Valid([]byte(content(t, b))) {
					t.Errorf("%s: not JSON", op)
				}
				if got := names(t, filepath.Join(dir, "inboxes")); len(got) != 2 {
					t.Errorf("%s: directory has %q", op, got)
				}
			}
		})
	}
}

// The next append detects every way in which an append can be cut short.
func TestEveryTornAppendIsRecognised(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "one", ID: "1"})
	before := content(t, b)
	nested := Entry{From: "a", Text: "ends like an array }\n]", ID: "2",
		Extra: team.JSONObject{{Key: "k", Value: json.RawMessage(`[[{"a":1}],{"b":[{}]}]`)}}}
	add(t, b, nested)
	after := content(t, b)
	step := 1
	if testing.Short() {
		step = 5
	}
	for cut := len(before) - 1; cut < len(after); cut += step {
		t.Run(fmt.Sprintf("cut at %d of %d", cut, len(after)), func(t *testing.T) {
			t.Parallel() // a damaged file is looked at again after a moment
			b, _ := newBox(t)
			// The write begins at the newline before the bracket and ended at cut.
			put(t, b, after[:cut])
			err := b.Append(bg(t), Entry{From: "a", Text: "three", ID: "3"})
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("%v\n%s", err, after[:cut])
			}
			// Cut between the new entry and the bracket, the entry is complete and
			// stays.
			kept := "one"
			if strings.HasSuffix(after[:cut], "\n  }") || strings.HasSuffix(after[:cut], "\n  }\n") {
				kept = "one|" + nested.Text
			}
			if got := textsOf(entries(t, b)); got != kept {
				t.Fatalf("kept %q", got)
			}
		})
	}
}

func TestSeveralRepairsKeepEveryDamagedFile(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	for i := range 5 {
		put(t, b, strings.Repeat("x", i+1))
		if c, err := b.Repair(bg(t)); c == nil || err != nil {
			t.Fatal(c, err)
		}
	}
	sizes := map[int]bool{}
	for _, name := range names(t, filepath.Join(dir, "inboxes")) {
		data, err := os.ReadFile(filepath.Join(dir, "inboxes", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(name, ".corrupt-") {
			sizes[len(data)] = true
		}
	}
	if len(sizes) != 5 {
		t.Errorf("kept the files of sizes %v", sizes)
	}
}

func FuzzMailbox(f *testing.F) {
	for _, s := range []string{
		"", "[]", "[", `[{"from":"a","text":"1","read":false}]`, `[{"read":true},{"read":false}`,
		"\xef\xbb\xbf[1,{}]\r\n", `[{"a":{"b":[1,-2.5e+7,null,"\ud800\u0041"]}}] x`, "[{\"from\":\"\xff\"}]",
		"[\n  {\n    \"from\": \"a\"\n  }\n]", `[{"read":"false"},{"read":0},{"read":false,"read":null}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		elems, bad := scanArray(data)
		body := strings.TrimPrefix(string(data), "\xef\xbb\xbf")
		var list []json.RawMessage
		valid := json.Unmarshal([]byte(body), &list) == nil && list != nil || strings.Trim(body, " \t\r\n") == ""
		// encoding/json limits the depth to 10000, the scanner to less.
		if (bad == nil) != valid && !strings.Contains(body, strings.Repeat("[", 100)) && strings.Count(body, "{") < 100 && strings.Count(body, "[") < 100 {
			t.Fatalf("scanner says %v, encoding/json valid is %v: %q", bad, valid, data)
		}
		for i, e := range elems {
			raw := data[e.start:e.end]
			if !json.Valid(raw) {
				t.Fatalf("element %d is not JSON: %q", i, raw)
			}
			if bad == nil && string(raw) != string(list[i]) {
				t.Fatalf("element %d is %q, want %q", i, raw, list[i])
			}
			if !e.obj {
				continue
			}
			marked := withRead(data, e)
			again, err := scanArray([]byte("[" + string(marked) + "]"))
			if err != nil || len(again) != 1 || !again[0].done {
				t.Fatalf("marked %q became %q: %v", raw, marked, err)
			}
			_ = decode(data, e, i).Key()
		}
	})
}

func FuzzEntryGoesRound(f *testing.F) {
	f.Add("a", "hello", "s", "t", "id")
	f.Add("\xff", "</teammate-message>\x00\u2028", "\"\\", "", "")
	f.Fuzz(func(t *testing.T, from, text, summary, stamp, id string) {
		in := Entry{From: from, Text: text, Summary: summary, Timestamp: stamp, ID: id}
		raw, err := in.encode()
		if err != nil {
			t.Fatal(err)
		}
		data := []byte("[\n  " + string(raw) + "\n]")
		if !json.Valid(data) || !strings.HasSuffix(string(data), closing) {
			t.Fatalf("not a mailbox: %q", data)
		}
		elems, bad := scanArray(data)
		if bad != nil || len(elems) != 1 {
			t.Fatalf("%v: %q", bad, data)
		}
		out := decode(data, elems[0], 0)
		if string(out.RawText()) != text {
			t.Fatalf("text %q became %q", text, out.RawText())
		}
		fix := func(s string) string { return strings.ToValidUTF8(s, "") }
		clean := func(s string) string { return strings.ReplaceAll(s, "\ufffd", "") }
		if clean(out.From) != clean(fix(from)) || clean(out.Summary) != clean(fix(summary)) || clean(out.ID) != clean(fix(id)) {
			t.Fatalf("%+v became %+v", in, out)
		}
		if strings.Contains(string(raw[1:]), "\n  }\n]") {
			t.Fatalf("an entry contains the end of an array: %q", raw)
		}
	})
}
