// Package rest reports when the output of a member has come to rest: an agent that cannot report
// that it is ready counts as ready then.
package rest

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
)

// Watcher reports each output once it rests. One watch serves all members whose output has not
// begun, and none exists while no output is awaited. Output that has begun is polled at growing
// intervals, since a watch on output that never rests would wake the process for every line.
type Watcher struct {
	quiet time.Duration // how long an output that has begun must rest
	tell  func(session, generation string)
	hub   dirwatch.Hub // its lock may be held when ours is taken, never the other way round

	mu      sync.Mutex
	waiting map[string]*settling // by bundle directory
}

// settleSeldom is the longest pause between two polls of an output.
const settleSeldom = 10 * time.Second

// settling is an awaited output.
type settling struct {
	session, generation string
	timer               *time.Timer
	unwatch             func()        // nil once it is not watched
	begun               bool          // something was written
	pause               time.Duration // between two polls, once something was written
	seen                os.FileInfo   // of the log, at the last poll; nil if it was missing
}

// New returns a Watcher. Output that has begun must rest for quiet; tell is called without a lock,
// from any goroutine.
func New(quiet time.Duration, tell func(session, generation string)) *Watcher {
	return &Watcher{quiet: quiet, tell: tell, waiting: map[string]*settling{}}
}

// Wait starts waiting for a generation's output to settle. Output that never begins settles after
// silent.
func (s *Watcher) Wait(b team.Bundle, session, generation string, silent time.Duration) error {
	s.Stop(b)
	dir := string(b)
	w := &settling{session: session, generation: generation, seen: look(dir)}
	s.mu.Lock()
	s.waiting[dir] = w
	w.timer = time.AfterFunc(silent, func() { s.settled(dir, w) })
	s.mu.Unlock()
	unwatch, err := s.hub.Watch(dir, func(e dirwatch.Event) { s.heard(dir, w, e) })
	if err != nil {
		s.forget(dir, w)
		return err
	}
	s.mu.Lock()
	if s.waiting[dir] == w {
		w.unwatch, unwatch = unwatch, nil
	}
	s.mu.Unlock()
	if unwatch != nil { // settled or removed in between
		unwatch()
	}
	return nil
}

// Stop stops waiting for a member's output.
func (s *Watcher) Stop(b team.Bundle) {
	s.mu.Lock()
	w := s.waiting[string(b)]
	s.mu.Unlock()
	s.forget(string(b), w)
}

// Close stops all waiting.
func (s *Watcher) Close() {
	s.mu.Lock()
	var dirs []string
	for dir := range s.waiting {
		dirs = append(dirs, dir)
	}
	s.mu.Unlock()
	for _, dir := range dirs {
		s.Stop(team.Bundle(dir))
	}
}

// heard handles an event of the hub about a bundle.
func (s *Watcher) heard(dir string, w *settling, e dirwatch.Event) {
	if !e.Lost && !e.Poll && filepath.Base(e.Name) != "output.log" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[dir] != w || w.begun {
		return
	}
	now := look(dir)
	if (e.Lost || e.Poll) && same(w.seen, now) {
		return
	}
	if !w.timer.Stop() {
		return // settled just now
	}
	w.begun, w.seen, w.pause = true, now, s.quiet
	w.timer = time.AfterFunc(w.pause, func() { s.look(dir, w) })
}

// look checks whether the log was unchanged since the last poll, which was at least quiet ago.
func (s *Watcher) look(dir string, w *settling) {
	s.mu.Lock()
	unwatch := w.unwatch
	w.unwatch = nil
	s.mu.Unlock()
	if unwatch != nil { // it has begun: no more events are needed
		unwatch()
	}
	now := look(dir)
	if now != nil && same(w.seen, now) {
		s.settled(dir, w)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[dir] != w {
		return
	}
	w.seen, w.pause = now, min(w.pause*5/4, max(settleSeldom, s.quiet))
	w.timer.Reset(w.pause)
}

func look(dir string) os.FileInfo {
	fi, err := os.Stat(team.Bundle(dir).Log())
	if err != nil {
		return nil // being rotated
	}
	return fi
}

// same reports whether a log was unchanged between two polls.
func same(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

func (s *Watcher) settled(dir string, w *settling) {
	if s.forget(dir, w) {
		s.tell(w.session, w.generation)
	}
}

// forget stops one wait; it returns false if the wait was over already.
func (s *Watcher) forget(dir string, w *settling) bool {
	s.mu.Lock()
	if w == nil || s.waiting[dir] != w {
		s.mu.Unlock()
		return false
	}
	delete(s.waiting, dir)
	w.timer.Stop()
	unwatch := w.unwatch
	w.unwatch = nil
	s.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	return true
}

// Watch calls f for events in a directory, by the same watch; see [dirwatch.Hub.Watch].
func (s *Watcher) Watch(dir string, f func(dirwatch.Event)) (unwatch func(), err error) {
	return s.hub.Watch(dir, f)
}
