package ledger

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/internal/dirwatch"
)

// Without inotify instances, commits of another process are still noticed, a
// little later, and there are no spurious wakes.
func TestChangesWithoutEvents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	db, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	degraded := make(chan error, 1)
	hub := &dirwatch.Hub{Degraded: func(err error) { degraded <- err }, Every: 5 * time.Millisecond, Open: func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }}
	other, err := Open(t.Context(), path, Options{Watch: hub})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	changes, stop, err := New(other, Direct(other)).Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	<-changes // the first one is unconditional
	if err := <-degraded; !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("degraded because of %v", err)
	}
	quiet := time.NewTimer(100 * time.Millisecond) // about twenty checks
	defer quiet.Stop()
	select {
	case <-changes:
		t.Error("woken although nothing was written")
	case <-quiet.C:
	}
	for range 3 {
		if _, err := New(db, Direct(db)).Event(t.Context(), Event{What: "test"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changes:
		case <-time.After(5 * time.Minute):
			t.Fatal("a commit was not seen")
		}
	}
}
