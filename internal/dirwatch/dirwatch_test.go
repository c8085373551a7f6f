package dirwatch

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ear returns a channel of the events of a directory.
func ear(t *testing.T, h *Hub, dir string) (<-chan Event, func()) {
	t.Helper()
	c := make(chan Event, 1000)
	stop, err := h.Watch(dir, func(e Event) { c <- e })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return c, stop
}

func hears(t *testing.T, c <-chan Event, what string, ok func(Event) bool) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case e := <-c:
			if ok(e) {
				return
			}
		case <-limit:
			t.Fatalf("never heard: %s", what)
		}
	}
}

func named(name string) func(Event) bool {
	return func(e Event) bool { return filepath.Base(e.Name) == name }
}

func touch(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// One instance serves many listeners, each gets the events of its own
// directory, and the last one releases it.
func TestOneInstanceForMany(t *testing.T) {
	t.Parallel()
	opened := 0
	h := &Hub{Open: func() (*fsnotify.Watcher, error) { opened++; return fsnotify.NewWatcher() }}
	parent := t.TempDir()
	child := filepath.Join(parent, "child")
	if err := os.Mkdir(child, 0o700); err != nil {
		t.Fatal(err)
	}
	a, stopA := ear(t, h, parent)
	b, stopB := ear(t, h, parent+"/")
	c, stopC := ear(t, h, child)
	touch(t, parent, "one")
	hears(t, a, "a file", named("one"))
	hears(t, b, "a file", named("one"))
	touch(t, child, "two")
	hears(t, c, "a file below", named("two"))
	stopA()
	for len(a) > 0 {
		<-a
	}
	touch(t, parent, "three")
	hears(t, b, "another file", named("three"))
	if len(a) > 0 {
		t.Error("told after its stop")
	}
	if err := os.RemoveAll(child); err != nil {
		t.Fatal(err)
	}
	hears(t, c, "the end of the directory", func(e Event) bool { return e.Name == child && e.Gone })
	stopB()
	stopC()
	if opened != 1 || h.fs != nil || h.now != nil || h.why != nil {
		t.Errorf("%d instances; left: %v %v %v", opened, h.fs, h.now, h.why)
	}
	if _, err := h.Watch(filepath.Join(parent, "missing"), func(Event) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if h.fs != nil {
		t.Error("a failed watch holds an instance")
	}
}

// Without an instance the hub asks its listeners to check, reports the reason,
// and has events again when an instance is available.
func TestLooksWhereThereIsNoInstance(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	full := true
	var told []error
	h := &Hub{
		Every:    5 * time.Millisecond,
		Degraded: func(err error) { mu.Lock(); told = append(told, err); mu.Unlock() },
		Open: func() (*fsnotify.Watcher, error) {
			mu.Lock()
			defer mu.Unlock()
			if full {
				return nil, os.NewSyscallError("inotify_init", syscall.EMFILE)
			}
			return fsnotify.NewWatcher()
		},
	}
	dir := t.TempDir()
	c, stop := ear(t, h, dir)
	hears(t, c, "to look", func(e Event) bool { return e.Poll })
	mu.Lock()
	if len(told) != 1 || !errors.Is(told[0], syscall.EMFILE) {
		t.Errorf("reason: %v", told)
	}
	mu.Unlock()
	if _, err := h.Watch(filepath.Join(dir, "missing"), func(Event) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	mu.Lock()
	full = false
	mu.Unlock()
	hears(t, c, "to look once more", func(e Event) bool { return e.Lost })
	touch(t, dir, "one")
	hears(t, c, "a file", named("one"))
	mu.Lock()
	if len(told) != 2 || told[0] == nil || told[1] != nil {
		t.Errorf("told %v", told)
	}
	mu.Unlock()
	stop()
}

// After a write the hub stops reading for its Rest, continues afterwards, and a
// stop does not wait for it.
func TestRestAfterWrite(t *testing.T) {
	t.Parallel()
	write := func(e Event) bool { return e.Written }
	dir := t.TempDir()
	long := &Hub{Rest: time.Hour}
	c, stop := ear(t, long, dir)
	touch(t, dir, "one")
	hears(t, c, "a write", write)
	for range 100 {
		touch(t, dir, "one")
	}
	stop()
	if n := len(c); n > 0 {
		t.Errorf("%d were told while it rested", n)
	}

	short := &Hub{Rest: time.Millisecond}
	c, _ = ear(t, short, dir)
	for _, name := range []string{"two", "three"} {
		touch(t, dir, name)
		hears(t, c, "a write after a rest", func(e Event) bool { return write(e) && named(name)(e) })
	}
	if err := os.Remove(filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	hears(t, c, "an end", func(e Event) bool { return e.Gone && named("two")(e) })
}
