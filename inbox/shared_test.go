package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/team"
)

// rewriteInPlace adds entries like a client that locks all mailboxes by flock
// and then reads, truncates and writes the file.
func rewriteInPlace(path, name string, loops int) error {
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(path), sharedName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	fmt.Println("ready")
	for i := range loops {
		if err := flock(lock, syscall.LOCK_EX); err != nil {
			return err
		}
		if err := addInPlace(path, numbered(name, i)); err != nil {
			return err
		}
		if err := flock(lock, syscall.LOCK_UN); err != nil {
			return err
		}
		<-time.After(time.Millisecond) // else it has the lock again before those who wait are run
	}
	return nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func addInPlace(path string, e Entry) error {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all []json.RawMessage
	if len(data) > 0 {
		if err := json.Unmarshal(data, &all); err != nil {
			return fmt.Errorf("the mailbox is not whole: %w", err)
		}
	}
	raw, err := e.text()
	if err != nil {
		return err
	}
	if data, err = json.MarshalIndent(append(all, raw), "", "  "); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for len(data) > 0 {
		runtime.Gosched()
		n := min(len(data), 1000)
		if _, err := f.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Clients lock by flock and rewrite in place, while processes and goroutines of
// teamctl append, read and mark: each sender's entries are present once and in
// order, and no operation finds a damaged file.
func TestBesideClientsThatRewriteInPlace(t *testing.T) {
	t.Parallel()
	const foreign, ours = 2, 2
	each := 150
	if testing.Short() {
		each = 40
	}
	b, dir := newBox(t)
	if err := os.MkdirAll(filepath.Dir(b.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(b.Path()), sharedName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range foreign {
		wg.Go(func() {
			if err := worker(t, "in-place", dir, fmt.Sprintf("f%d", p), each).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	for p := range ours {
		wg.Go(func() {
			if err := worker(t, "append", dir, fmt.Sprintf("w%d", p), each).Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		for range each {
			if _, err := b.Consume(bg(t), 1, nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Wait()
	inOrder(t, entries(t, b), (foreign+ours)*each)
	if got := strings.Join(names(t, filepath.Dir(b.Path())), " "); got != ".lock bob.json" {
		t.Errorf("left behind: %s", got)
	}
}

// Every operation, reads included, waits for a shared lock that another program
// holds.
func TestSharedLockIsObeyed(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	lock, err := os.Create(filepath.Join(filepath.Dir(b.Path()), sharedName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := flock(lock, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	short := func() (err error) {
		ctx, cancel := contextWithin(t, 30*time.Millisecond)
		defer cancel()
		_, err = b.Unread(ctx)
		return errors.Join(err, b.Append(ctx, Entry{From: "a", Text: "2"}))
	}
	if err := short(); !team.IsCode(err, team.CodeTimeout) {
		t.Errorf("beside the lock: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- b.Append(bg(t), Entry{From: "a", Text: "3"}) }()
	if err := flock(lock, syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if got := textsOf(entries(t, b)); got != "1|3" {
		t.Error(got)
	}
}

// A shared lock created while a mailbox is held is taken before anything is
// written.
func TestSharedLockMadeMeanwhile(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	raw, err := (&Entry{From: "a", Text: "2"}).text()
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	err = b.hold(bg(t), "write to", true, false, func(h *holding) error {
		if tries++; tries == 1 {
			if err := os.WriteFile(filepath.Join(b.dir, sharedName), nil, 0o600); err != nil {
				return err
			}
		}
		return h.append([][]byte{raw}, true)
	})
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	if got := textsOf(entries(t, b)); got != "1|2" {
		t.Error(got)
	}
}

// Something other than a file with the shared lock's name locks nothing.
func TestSharedLockOfAnotherKind(t *testing.T) {
	t.Parallel()
	b, _ := newBox(t)
	add(t, b, Entry{From: "a", Text: "1"})
	name := filepath.Join(b.dir, sharedName)
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	add(t, b, Entry{From: "a", Text: "2"})
	if err := errors.Join(os.Remove(name), os.Symlink(t.TempDir(), name)); err != nil {
		t.Fatal(err)
	}
	add(t, b, Entry{From: "a", Text: "3"})
	if got := textsOf(entries(t, b)); got != "1|2|3" {
		t.Error(got)
	}
}
