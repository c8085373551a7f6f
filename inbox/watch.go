package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/team"
)

// Watcher tells of changes to the mailboxes of one directory. One is enough for a
// team: inotify instances are few. It watches the directory, because a mailbox gets
// a new inode with every rewrite.
type Watcher struct {
	fs     *fsnotify.Watcher
	dir    string
	cancel context.CancelFunc
	done   chan struct{}

	mu    sync.Mutex
	boxes map[string]chan struct{} // by file name
	err   error
}

// Watch watches dir, which is created when its parent has none, until ctx ends or
// Close is called. Ask for Changes first and read the mailbox then: what was there
// before gives no event.
func Watch(ctx context.Context, dir string) (*Watcher, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "watch %s: %w", dir, err)
	}
	if err := makeDir(dir); err != nil {
		return nil, team.Errorf(team.CodeNotFound, "watch the mailboxes: %w", err)
	}
	fw, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "watch %s: %w", dir, err).
			WithHint("raise fs.inotify.max_user_instances, or end other watching programs")
	}
	if err := fw.Add(dir); err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "watch %s: %w", dir, errors.Join(err, fw.Close()))
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{fs: fw, dir: dir, cancel: cancel, done: make(chan struct{}), boxes: make(map[string]chan struct{})}
	go w.run(ctx)
	return w, nil
}

// Changes gives one signal for any number of changes to agent's mailbox since the
// last one was taken. All calls for one agent return the same channel, so it is for
// one receiver. It is never closed; see Done.
func (w *Watcher) Changes(agent string) <-chan struct{} {
	name, err := team.InboxName(agent)
	if err != nil {
		name = "" // no file has this name: a channel without signals
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := w.boxes[name]
	if ch == nil {
		ch = make(chan struct{}, 1)
		w.boxes[name] = ch
	}
	return ch
}

// Done is closed when the watcher has ended: closed, out of context, or its
// directory is gone.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Err is why the watcher ended by itself; nil before that and after Close.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close ends the watcher and waits for it.
func (w *Watcher) Close() error {
	w.cancel()
	<-w.done
	return nil
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	defer w.cancel()
	err := w.loop(ctx)
	err = errors.Join(err, w.fs.Close())
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
}

func (w *Watcher) loop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev, ok := <-w.fs.Events:
			if !ok {
				return nil
			}
			if ev.Name == w.dir && ev.Has(fsnotify.Remove|fsnotify.Rename) {
				return fmt.Errorf("watch %s: %w", w.dir, os.ErrNotExist)
			}
			if !ev.Has(fsnotify.Create | fsnotify.Write) {
				continue
			}
			if name, ok := strings.CutSuffix(filepath.Base(ev.Name), ".json"); ok {
				w.signal(name)
			}
		case err, ok := <-w.fs.Errors:
			if !ok {
				return nil
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watch %s: %w", w.dir, err)
			}
			w.signalAll() // events were lost, of any mailbox
		}
	}
}

func (w *Watcher) signal(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.boxes[name]; ch != nil {
		wake(ch)
	}
}

func (w *Watcher) signalAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.boxes {
		wake(ch)
	}
}

func wake(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default: // a signal waits already
	}
}
