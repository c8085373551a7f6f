package courier

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// hub rings when a file is written. There is one watcher for all members, and none
// while nobody waits: every watcher costs one of the 128 that a user has.
type hub struct {
	mu      sync.Mutex
	watcher *fsnotify.Watcher
	bells   map[string][]*bell // by directory
	done    sync.WaitGroup
}

type bell struct {
	file string // base name
	c    chan struct{}
}

func newHub() *hub { return &hub{bells: map[string][]*bell{}} }

// listen rings for writes to one file, which need not exist; its directory must.
func (h *hub) listen(path string) (<-chan struct{}, func(), error) {
	dir, file := filepath.Split(path)
	dir = filepath.Clean(dir)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watcher == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return nil, nil, err
		}
		h.watcher = w
		h.done.Go(func() { h.read(w) })
	}
	if len(h.bells[dir]) == 0 {
		if err := h.watcher.Add(dir); err != nil {
			h.rest()
			return nil, nil, err
		}
	}
	b := &bell{file, make(chan struct{}, 1)}
	h.bells[dir] = append(h.bells[dir], b)
	return b.c, func() { h.leave(dir, b) }, nil
}

func (h *hub) leave(dir string, b *bell) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.bells[dir]
	for i := range list {
		if list[i] == b {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if h.bells[dir] = list; len(list) == 0 {
		delete(h.bells, dir)
		if h.watcher != nil {
			_ = h.watcher.Remove(dir)
		}
	}
	h.rest()
}

// rest ends a watcher that nobody needs.
func (h *hub) rest() {
	if h.watcher != nil && len(h.bells) == 0 {
		_ = h.watcher.Close()
		h.watcher = nil
	}
}

func (h *hub) read(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			h.mu.Lock()
			for _, b := range h.bells[filepath.Dir(e.Name)] {
				if b.file == filepath.Base(e.Name) {
					select {
					case b.c <- struct{}{}:
					default:
					}
				}
			}
			h.mu.Unlock()
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	if h.watcher != nil {
		_ = h.watcher.Close()
		h.watcher = nil
	}
	h.mu.Unlock()
	h.done.Wait()
}
