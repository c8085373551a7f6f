package inbox

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// A tail returns what arrived since its last read, regardless of read marks set
// before; after the file was replaced it returns everything unread.
func TestTailReadsWhatIsNew(t *testing.T) {
	b, _ := newBox(t)
	tail := b.Tail(TailMark{})
	look := func(want string) {
		t.Helper()
		got, err := tail.Unread(t.Context())
		if err != nil || textsOf(got) != want {
			t.Fatalf("%q, %v; want %q", textsOf(got), err, want)
		}
	}
	add := func(i int) string {
		t.Helper()
		e := numbered("a", i)
		if err := b.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		return e.Text
	}
	look("")
	one, two := add(1), add(2)
	look(one + "|" + two)
	look("")
	three := add(3)
	look(three)
	if _, err := b.MarkAllRead(t.Context()); err != nil { // in place, also in the entry that the tail remembers
		t.Fatal(err)
	}
	look("")
	four := add(4)
	look(four)
	data, err := os.ReadFile(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.Path()+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.Path()+".new", b.Path()); err != nil {
		t.Fatal(err)
	}
	look(four)
	if err := os.WriteFile(b.Path(), []byte(strings.Replace(string(data), one, "another text here", 1)), 0o600); err != nil { // in place
		t.Fatal(err)
	}
	look(four)
	five := add(5)
	look(five)
	tail.Again()
	look(four + "|" + five)
	if err := os.Remove(b.Path()); err != nil {
		t.Fatal(err)
	}
	look("")
	six := add(6)
	look(six)
}

// A read reads only what was appended.
func TestTailDoesNotReadTheHistory(t *testing.T) {
	b, _ := newBox(t)
	for i := range 500 {
		if err := b.Append(t.Context(), numbered("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	tail := b.Tail(TailMark{})
	if got, err := tail.Unread(t.Context()); err != nil || len(got) != 500 {
		t.Fatalf("%d, %v", len(got), err)
	}
	// Damage before the position goes unnoticed because it is not read.
	f, err := os.OpenFile(b.Path(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("}}}}"), 40); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(t.Context(), numbered("a", 500)); err != nil {
		t.Fatal(err)
	}
	if got, err := tail.Unread(t.Context()); err != nil || len(got) != 1 {
		t.Fatalf("%d, %v", len(got), err)
	}
}

// A tail continues where that of another process ended, and returns kept
// entries again as long as they are unread and in place.
func TestTailGoesOnFromAMark(t *testing.T) {
	b, _ := newBox(t)
	var texts []string
	for i := range 6 {
		e := numbered("a", i)
		texts = append(texts, e.Text)
		if err := b.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	tail := b.Tail(TailMark{})
	again := func() {
		t.Helper()
		text, err := json.Marshal(tail.Mark())
		if err != nil {
			t.Fatal(err)
		}
		var m TailMark
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		tail = b.Tail(m)
	}
	look := func(want ...string) []Entry {
		t.Helper()
		got, err := tail.Unread(t.Context())
		if err != nil || textsOf(got) != strings.Join(want, "|") {
			t.Fatalf("%q, %v; want %q", textsOf(got), err, want)
		}
		return got
	}
	keep := func(want bool, which ...string) {
		t.Helper()
		if got := tail.Keep(func(e Entry) bool { return slices.Contains(which, e.Text) }); got != want {
			t.Fatalf("kept all: %v", got)
		}
	}
	all := look(texts...)
	keep(true, texts[1], texts[3])
	again()
	look(texts[1], texts[3])
	keep(true, texts[1], texts[3])
	if _, err := b.MarkRead(t.Context(), all[1].Key()); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(t.Context(), numbered("a", 6)); err != nil {
		t.Fatal(err)
	}
	again()
	look(texts[3], numbered("a", 6).Text)
	keep(true)
	again()
	look()
	// After another file got the name everything counts again, and kept entries
	// are returned only once.
	keep(true)
	data, err := os.ReadFile(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.Path()+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.Path()+".new", b.Path()); err != nil {
		t.Fatal(err)
	}
	again()
	look(texts[0], texts[2], texts[3], texts[4], texts[5], numbered("a", 6).Text)
	// If too many are selected, only the first are kept.
	for i := range maxKept + 3 {
		if err := b.Append(t.Context(), numbered("b", i)); err != nil {
			t.Fatal(err)
		}
	}
	tail.Again()
	if got, err := tail.Unread(t.Context()); err != nil || tail.Keep(func(Entry) bool { return true }) {
		t.Fatalf("all of %d are kept, %v", len(got), err)
	}
	if got, err := tail.Unread(t.Context()); err != nil || len(got) != maxKept {
		t.Fatalf("%d, %v", len(got), err)
	}
}
