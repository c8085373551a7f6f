package inbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
)

func signalled(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(5 * time.Minute):
		t.Fatalf("no signal: %s", what)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	b, dir := newBox(t)
	inboxes := filepath.Join(dir, "inboxes")
	w, err := Watch(context.Background(), inboxes)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	bob, eve := w.Changes("bob"), w.Changes("eve@team")
	if w.Changes("bob") != bob {
		t.Error("a second channel for one agent")
	}
	add(t, b, Entry{From: "a", Text: "1"})
	signalled(t, "the file appears", bob)
	add(t, b, Entry{From: "a", Text: "2"})
	signalled(t, "an append in place", bob)
	if _, err := b.Consume(bg(t), 0, nil); err != nil {
		t.Fatal(err)
	}
	signalled(t, "a mark", bob)
	if _, err := b.Prune(bg(t), 0, nil); err != nil {
		t.Fatal(err)
	}
	signalled(t, "a rename", bob)
	for i := range 50 {
		add(t, b, numbered("a", i))
	}
	signalled(t, "many changes", bob)

	other, err := Open(inboxes, filepath.Join(dir, "locks"), "eve@team")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-eve:
		t.Error("a signal for another mailbox")
	default:
	}
	add(t, other, Entry{From: "a", Text: "1"})
	signalled(t, "the other mailbox", eve)

	if err := w.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-w.Done():
	default:
		t.Error("not done after Close")
	}
	if err := w.Err(); err != nil {
		t.Errorf("error after Close: %v", err)
	}
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "inboxes")
	ctx, cancel := context.WithCancel(context.Background())
	w, err := Watch(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	signalled(t, "the context ended", w.Done())

	w, err = Watch(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	signalled(t, "the directory is gone", w.Done())
	if w.Err() == nil {
		t.Error("no reason")
	}
	if _, err := Watch(context.Background(), filepath.Join(dir, "deeper")); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("a team that is gone: %v", err)
	}
}

func TestOverflowWakesEverybody(t *testing.T) {
	t.Parallel()
	w := &Watcher{boxes: map[string]chan struct{}{}}
	a, b := w.Changes("a"), w.Changes("b")
	w.signalAll()
	w.signalAll()
	signalled(t, "a", a)
	signalled(t, "b", b)
	select {
	case <-a:
		t.Error("signals are not merged")
	default:
	}
	if never := w.Changes("../x"); never == nil {
		t.Error("a hostile name has no channel")
	}
}

// Without events every mailbox is checked periodically, and the removal of the
// directory is detected.
func TestWatchWithoutEvents(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "inboxes")
	hub := &dirwatch.Hub{Every: 5 * time.Millisecond, Open: func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }}
	w, err := WatchBy(t.Context(), hub, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	ch := w.Changes("bob")
	for range 3 {
		signalled(t, "bob's mailbox", ch)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	signalled(t, "the directory is gone", w.Done())
	if !errors.Is(w.Err(), os.ErrNotExist) {
		t.Errorf("reason: %v", w.Err())
	}
}
