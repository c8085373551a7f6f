package inbox

import (
	"os"
	"strings"
	"testing"
)

// A tail returns what came since its last look, whoever has marked what before that; after
// the file was replaced it returns all that is unread.
func TestTailReadsWhatIsNew(t *testing.T) {
	b, _ := newBox(t)
	tail := b.Tail()
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
	if _, err := b.MarkAllRead(t.Context()); err != nil { // in place, the entry that it remembers too
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

// A look reads what was appended and no more.
func TestTailDoesNotReadTheHistory(t *testing.T) {
	b, _ := newBox(t)
	for i := range 500 {
		if err := b.Append(t.Context(), numbered("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	tail := b.Tail()
	if got, err := tail.Unread(t.Context()); err != nil || len(got) != 500 {
		t.Fatalf("%d, %v", len(got), err)
	}
	// Damage in what was seen goes unnoticed: it is not read.
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
