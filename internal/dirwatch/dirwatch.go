// Package dirwatch reports changes in directories to any number of listeners
// with one inotify instance: by default the kernel gives a user 128 of them,
// and a team of workers needs one each.
//
// If no instance or watch is available the hub does not fail: it asks every
// listener once a second to check for itself, reports the reason (Reason), and
// returns to events as soon as they are available.
package dirwatch

import (
	"errors"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/team"
)

// Look is the interval at which a hub without events asks its listeners to
// check.
const Look = time.Second

// Event is a change, in the word of package team.
type Event = team.FileEvent

// Hub is a [team.Watcher] that serves a process or a part of one. Its zero value is ready to use; it
// holds no resources without listeners.
type Hub struct {
	// Degraded is called with the reason when events become unavailable, and
	// with nil when they are available again; it may be nil, and must not call
	// the hub. Set it before the first Watch.
	Degraded func(reason error)

	// Open creates an instance, Every is the interval of checks without one;
	// the defaults are fsnotify.NewWatcher and Look. Tests set them.
	Open  func() (*fsnotify.Watcher, error)
	Every time.Duration

	// Rest is how long the hub stops reading after it has reported a write.
	// Writes to one file during that time are reported as one; without it each
	// write of a burst wakes the process. Set it before the first Watch.
	Rest time.Duration

	telling sync.Mutex // held while listeners are called

	mu    sync.Mutex
	fs    *fsnotify.Watcher // nil without events
	why   error             // why there are no events
	dirs  map[string]map[*listener]struct{}
	now   *worker   // the goroutine that calls listeners, or nil
	ended []*worker // earlier goroutines, which may not have ended yet
}

type worker struct{ quit, done chan struct{} }

type listener struct {
	hub  *Hub
	dir  string
	tell func(Event)
}

// Watch implements [team.Watcher].
func (h *Hub) Watch(dir string, tell func(Event)) (stop func(), err error) {
	dir = filepath.Clean(dir)
	l := &listener{hub: h, dir: dir, tell: tell}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dirs == nil {
		h.dirs = map[string]map[*listener]struct{}{}
	}
	if err := h.add(dir); err != nil {
		return nil, err
	}
	if h.dirs[dir] == nil {
		h.dirs[dir] = map[*listener]struct{}{}
	}
	h.dirs[dir][l] = struct{}{}
	h.run()
	return sync.OnceFunc(l.stop), nil
}

// add watches a directory. Limits of the kernel are not an error: they leave
// the hub without events.
func (h *Hub) add(dir string) error {
	if h.fs == nil && h.why == nil {
		fs, err := h.watcher()
		if err != nil {
			return h.degrade(err)
		}
		h.fs = fs
	}
	if h.fs == nil {
		var st syscall.Stat_t
		return syscall.Stat(dir, &st)
	}
	if err := h.fs.Add(dir); err != nil {
		return h.degrade(err)
	}
	return nil
}

// degrade continues without events if err is one of the kernel's limits.
func (h *Hub) degrade(err error) error {
	if !limited(err) {
		h.drop()
		return err
	}
	h.stopRunning()
	if h.fs != nil {
		_ = h.fs.Close()
		h.fs = nil
	}
	h.why = err
	if h.Degraded != nil {
		h.Degraded(err)
	}
	h.run()
	return nil
}

// limited reports whether err means too many instances, watches or descriptors.
func limited(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOMEM)
}

// run starts the hub's goroutine if it needs one.
func (h *Hub) run() {
	if h.now != nil || len(h.dirs) == 0 {
		return
	}
	w := &worker{make(chan struct{}), make(chan struct{})}
	h.now = w
	fs := h.fs
	go func() {
		defer close(w.done)
		if fs != nil {
			h.read(fs, w.quit)
		} else {
			h.poll(w)
		}
	}()
}

func (h *Hub) stopRunning() {
	if h.now != nil {
		close(h.now.quit)
		h.ended, h.now = append(h.ended, h.now), nil
	}
}

// drop releases everything once there are no listeners; the caller must wait
// for the returned workers without h.mu.
func (h *Hub) drop() []*worker {
	if len(h.dirs) > 0 {
		return nil
	}
	h.stopRunning()
	if h.fs != nil {
		_ = h.fs.Close()
	}
	h.fs, h.why = nil, nil
	ended := h.ended
	h.ended = nil
	return ended
}

func (l *listener) stop() {
	h := l.hub
	for _, w := range h.forget(l) {
		<-w.done
	}
	h.telling.Lock()   // wait for a running call of the listener
	h.telling.Unlock() //nolint:staticcheck // an empty section: only the wait matters
}

func (h *Hub) forget(l *listener) []*worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.dirs[l.dir], l)
	if len(h.dirs[l.dir]) > 0 {
		return nil
	}
	delete(h.dirs, l.dir)
	if h.fs != nil {
		_ = h.fs.Remove(l.dir) // it may not exist any more
	}
	return h.drop()
}

func (h *Hub) read(fs *fsnotify.Watcher, quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case e, ok := <-fs.Events:
			if !ok {
				return
			}
			// The second directory is for the removal of a directory itself.
			h.tell(event(e), filepath.Dir(e.Name), e.Name)
			if h.Rest > 0 && e.Op == fsnotify.Write && !rest(h.Rest, quit) {
				return
			}
		case _, ok := <-fs.Errors:
			if !ok {
				return
			}
			h.tell(Event{Lost: true})
		}
	}
}

func event(e fsnotify.Event) Event {
	return Event{Name: e.Name, Created: e.Has(fsnotify.Create), Written: e.Has(fsnotify.Write), Gone: e.Has(fsnotify.Remove | fsnotify.Rename)}
}

// rest returns false if quit came first. Meanwhile fsnotify keeps what it has
// read and reads no more, and the kernel merges equal events.
func rest(d time.Duration, quit <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-quit:
		return false
	case <-t.C:
		return true
	}
}

// poll replaces events, and checks whether they are available again.
func (h *Hub) poll(w *worker) {
	d := h.Every
	if d == 0 {
		d = Look
	}
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-t.C:
		}
		if h.recover(w) {
			h.tell(Event{Lost: true}) // for changes between the last check and the first event
			return
		}
		h.tell(Event{Poll: true})
	}
}

// recover returns to events if all directories can be watched.
func (h *Hub) recover(w *worker) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now != w {
		return true // stopped meanwhile
	}
	fs, err := h.watcher()
	if err != nil {
		return false
	}
	for dir := range h.dirs {
		if err := fs.Add(dir); limited(err) {
			_ = fs.Close()
			return false
		}
	}
	h.fs, h.why = fs, nil
	h.ended, h.now = append(h.ended, w), nil
	if h.Degraded != nil {
		h.Degraded(nil)
	}
	h.run()
	return true
}

func (h *Hub) watcher() (*fsnotify.Watcher, error) {
	if h.Open != nil {
		return h.Open()
	}
	return fsnotify.NewWatcher()
}

// tell calls the listeners of the directories; without any, all listeners.
func (h *Hub) tell(e Event, dirs ...string) {
	h.telling.Lock()
	defer h.telling.Unlock()
	var ls []*listener
	h.mu.Lock()
	if len(dirs) == 0 {
		for d := range h.dirs {
			dirs = append(dirs, d)
		}
	}
	for _, d := range dirs {
		for l := range h.dirs[d] {
			ls = append(ls, l)
		}
	}
	h.mu.Unlock()
	for _, l := range ls {
		l.tell(e)
	}
}

// Advice is what the user can do about a Reason.
const Advice = "sysctl fs.inotify.max_user_instances=1024, or end other watching programs"

// Try returns nil if events are currently available, otherwise the reason.
func Try() error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	return w.Close()
}
