package inbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func renameTo(t *testing.T, dir, name string) *Box {
	t.Helper()
	b, err := Open(filepath.Join(dir, "inboxes"), filepath.Join(dir, "locks"), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, "inboxes"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestMailboxIsRenamed(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	to := renameTo(t, dir, "rob")
	add(t, b, numbered("a", 0), numbered("a", 1))
	if _, err := b.MarkRead(bg(t), "a-0"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lack(bg(t)); err != nil {
		t.Fatal(err)
	}
	before := content(t, b)
	if err := os.WriteFile(to.Path(), []byte(`[{"from":"x","text":"of nobody"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	committed := false
	err := b.MoveTo(bg(t), to, func() error {
		committed = true
		if content(t, to) != before || content(t, b) != before {
			t.Error("the ledger is told before the file has both names")
		}
		return nil
	})
	if err != nil || !committed {
		t.Fatal(err)
	}
	if content(t, to) != before {
		t.Error("the file is another one")
	}
	if _, lacks := to.Lacks(); !lacks {
		t.Error("it lacks mail, and the mark of that has gone")
	}
	if _, lacks := b.Lacks(); lacks {
		t.Error("the old name is marked as lacking mail")
	}
	names := files(t, dir)
	if len(names) != 2 || names[0] != "rob.json" || !strings.HasPrefix(names[1], "rob.json.renamed-") {
		t.Errorf("%q", names)
	}
	if err := b.Moved(bg(t), to); err != nil { // again
		t.Error(err)
	}
	add(t, to, numbered("a", 2))
	if got := ids(t, to); !slices.Equal(got, []string{"a-0", "a-1", "a-2"}) {
		t.Errorf("%q", got)
	}
}

// Whatever was done when a process is killed, the next call completes it.
func TestMailboxRenameIsCompleted(t *testing.T) {
	t.Parallel()
	failed := errors.New("cut short")
	for name, meanwhile := range map[string]func(t *testing.T, b, to *Box){
		"nothing":  func(*testing.T, *Box, *Box) {},
		"appended": func(t *testing.T, b, _ *Box) { add(t, b, numbered("b", 1)) },
		"replaced": func(t *testing.T, b, _ *Box) { // by another program, with one entry more
			text := content(t, b)
			next := b.Path() + ".next"
			if err := os.WriteFile(next, []byte(strings.TrimSuffix(text, "\n]")+",\n  {\"from\":\"b\",\"text\":\"b\",\"msg_id\":\"b-1\"}\n]"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(next, b.Path()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, dir := newBox(t)
			to := renameTo(t, dir, "rob")
			add(t, b, numbered("a", 0))
			if err := b.MoveTo(bg(t), to, func() error { return failed }); !errors.Is(err, failed) {
				t.Fatal(err)
			}
			meanwhile(t, b, to)
			want := content(t, b)
			if err := b.MoveTo(bg(t), to, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			if got := content(t, to); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if _, err := os.Stat(b.Path()); !os.IsNotExist(err) {
				t.Error("the old name is still there")
			}
		})
	}
	t.Run("undone", func(t *testing.T) {
		t.Parallel()
		b, dir := newBox(t)
		to := renameTo(t, dir, "rob")
		add(t, b, numbered("a", 0))
		if err := b.MoveTo(bg(t), to, func() error { return failed }); !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if err := b.Unmove(bg(t), to); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir); !slices.Equal(got, []string{"bob.json"}) {
			t.Errorf("%q", got)
		}
	})
	// Between the commit and the end another program may still know the old name.
	t.Run("committed", func(t *testing.T) {
		t.Parallel()
		b, dir := newBox(t)
		to := renameTo(t, dir, "rob")
		if err := b.MoveTo(bg(t), to, func() error { return nil }); err != nil { // no mail so far
			t.Fatal(err)
		}
		add(t, b, numbered("a", 0))
		if err := b.Moved(bg(t), to); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, to); !slices.Equal(got, []string{"a-0"}) {
			t.Errorf("%q", got)
		}
		add(t, b, numbered("a", 1))
		if err := b.Moved(bg(t), to); err != nil {
			t.Fatal(err)
		}
		if got := files(t, dir); len(got) != 2 || !strings.HasPrefix(got[0], "bob.json.renamed-") {
			t.Errorf("what came to the old name is not kept: %q", got)
		}
	})
}
