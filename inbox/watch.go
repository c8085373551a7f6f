package inbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
)

// Watcher reports changes to the mailboxes of one directory. A team needs one:
// inotify instances are limited. It watches the directory because every rewrite
// gives a mailbox a new inode.
type Watcher struct {
	dir    string
	events chan team.FileEvent // for these mailboxes and the directory
	missed chan struct{}       // check everything: events were dropped, or are unavailable
	cancel context.CancelFunc
	done   chan struct{}

	named chan string // see Named

	mu    sync.Mutex
	boxes map[string]chan struct{} // by file name
	err   error
}

// Watch watches dir, which it creates if its parent exists, until ctx ends or
// Close is called. Call Changes before reading the mailbox: changes before
// Watch produce no event.
func Watch(ctx context.Context, dir string) (*Watcher, error) {
	return WatchBy(ctx, new(dirwatch.Hub), dir)
}

// WatchBy is Watch with a hub shared with others. If the hub has no events,
// every mailbox signals once a second.
func WatchBy(ctx context.Context, hub team.Watcher, dir string) (*Watcher, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "watch %s: %w", dir, err)
	}
	if err := makeDir(dir); err != nil {
		return nil, team.Errorf(team.CodeNotFound, "watch the mailboxes: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{
		dir: dir, cancel: cancel, done: make(chan struct{}), boxes: make(map[string]chan struct{}),
		named:  make(chan string, 256),
		events: make(chan team.FileEvent, 256), missed: make(chan struct{}, 1),
	}
	stop, err := hub.Watch(dir, w.heard)
	if err != nil {
		cancel()
		return nil, team.Errorf(team.CodeUnavailable, "watch %s: %w", dir, err)
	}
	go w.run(ctx, stop)
	return w, nil
}

// heard must not block.
func (w *Watcher) heard(e team.FileEvent) {
	if !e.Lost && !e.Poll {
		select {
		case w.events <- e:
			return
		default:
		}
	}
	wake(w.missed)
}

// Changes returns a channel that receives one signal for any number of changes
// to agent's mailbox since the last signal was received. All calls for one
// agent return the same channel, so it supports one receiver. It is never
// closed; see Done.
func (w *Watcher) Changes(agent string) <-chan struct{} {
	name, err := team.InboxName(agent)
	if err != nil {
		name = "" // no file has this name, so the channel never gets a signal
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

// Named returns a channel that receives the agent of each change to a mailbox,
// for one receiver. Changes that a slow receiver does not take are dropped.
func (w *Watcher) Named() <-chan string { return w.named }

// Done returns a channel that is closed when the watcher has ended: closed,
// context ended, or directory removed.
func (w *Watcher) Done() <-chan struct{} { return w.done }

// Err returns why the watcher ended by itself; nil before that and after Close.
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

func (w *Watcher) run(ctx context.Context, stop func()) {
	defer close(w.done)
	defer w.cancel()
	err := w.loop(ctx)
	stop()
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
}

func (w *Watcher) loop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ev := <-w.events:
			if ev.Name == w.dir {
				if ev.Gone {
					return fmt.Errorf("watch %s: %w", w.dir, os.ErrNotExist)
				}
				continue
			}
			if !ev.Created && !ev.Written {
				continue
			}
			if name, ok := strings.CutSuffix(filepath.Base(ev.Name), ".json"); ok {
				w.signal(name)
			}
		case <-w.missed:
			if _, err := os.Lstat(w.dir); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("watch %s: %w", w.dir, err)
			}
			w.signalAll()
		}
	}
}

func (w *Watcher) signal(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.boxes[name]; ch != nil {
		wake(ch)
	}
	select {
	case w.named <- name:
	default:
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
	default: // a signal is already pending
	}
}
