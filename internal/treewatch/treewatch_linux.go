package treewatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mask selects the changes: a file that was written and closed, created,
// deleted or moved, or whose mode changed. Each watch reports once (see
// inotify(7)).
const mask = unix.IN_CLOSE_WRITE | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ATTRIB |
	unix.IN_ONESHOT | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW | unix.IN_EXCL_UNLINK

// Watch is one inotify instance for any number of trees, each with a key.
type Watch struct {
	file *os.File
	tell func(key string)
	done chan struct{}

	mu    sync.Mutex
	trees map[string]map[string]int32 // by key: armed directories
	dirs  map[int32]place
}

type place struct{ key, dir string }

// New returns a watch. It calls tell from one goroutine with the key of a tree
// in which something has changed; tell must not call the watch, and may block.
func New(tell func(key string)) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open inotify: %w", err)
	}
	w := &Watch{file: os.NewFile(uintptr(fd), "inotify"), tell: tell, done: make(chan struct{}),
		trees: map[string]map[string]int32{}, dirs: map[int32]place{}}
	go w.read()
	return w, nil
}

// Close ends the watch; it does not wait for a running call of tell.
func (w *Watch) Close() { _ = w.file.Close() }

// Done returns a channel that is closed once tell is no longer called.
func (w *Watch) Done() <-chan struct{} { return w.done }

// Arm watches directories of a tree: each directory that is not armed reports
// its next change, and then none until it is armed again. A missing directory
// is skipped; its parent reports its creation. If the kernel allows no more
// watches (max_user_watches) the error is ENOSPC, and the directories armed so
// far remain armed.
func (w *Watch) Arm(key string, dirs []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree := w.trees[key]
	if tree == nil {
		tree = map[string]int32{}
		w.trees[key] = tree
	}
	conn, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		if _, armed := tree[dir]; armed {
			continue
		}
		var wd int
		var refused error
		if err := conn.Control(func(fd uintptr) { wd, refused = unix.InotifyAddWatch(int(fd), dir, mask) }); err != nil {
			return err // closed
		}
		switch {
		case refused == nil:
		case errors.Is(refused, syscall.ENOENT), errors.Is(refused, syscall.ENOTDIR), errors.Is(refused, syscall.EACCES), errors.Is(refused, syscall.ELOOP):
			continue
		default:
			return fmt.Errorf("watch %s: %w", dir, refused)
		}
		tree[dir], w.dirs[int32(wd)] = int32(wd), place{key, dir} // the kernel's int
	}
	return nil
}

// Drop removes a tree.
func (w *Watch) Drop(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	conn, err := w.file.SyscallConn()
	for _, wd := range w.trees[key] {
		if delete(w.dirs, wd); err == nil {
			_ = conn.Control(func(fd uintptr) { _, _ = unix.InotifyRmWatch(int(fd), uint32(wd)) }) // as it came
		}
	}
	delete(w.trees, key)
}

// read reports changes until the file is closed.
func (w *Watch) read() {
	defer close(w.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for _, key := range w.changed(buf[:n]) {
			w.tell(key)
		}
	}
}

// changed returns the keys of the events in b, without duplicates.
func (w *Watch) changed(b []byte) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b)) // the kernel's int
		what, size := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
		b = b[min(len(b), unix.SizeofInotifyEvent+int(size)):]
		if what&unix.IN_Q_OVERFLOW != 0 {
			for key := range w.trees {
				seen[key] = true
			}
			continue
		}
		p, known := w.dirs[wd]
		if !known {
			continue // dropped meanwhile, or the end of a watch that has reported
		}
		delete(w.dirs, wd)
		delete(w.trees[p.key], p.dir)
		seen[p.key] = true
	}
	keys := make([]string, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	return keys
}
