package supervisor

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/dirwatch"
	"github.com/teamctl/teamctl/team"
)

// settler tells when a member's output has come to rest: that is when an agent
// that cannot say it is ready is taken to be ready. There is one watch for all
// members, for those whose output has not begun, and none while nobody is waited
// for. Output that has begun is looked at now and then, ever more seldom: one that
// never rests would wake us with every line.
type settler struct {
	quiet time.Duration // how long an output that has begun must rest
	tell  func(session, generation string)
	hub   dirwatch.Hub // its lock may be held when ours is taken, never the other way round

	mu      sync.Mutex
	waiting map[string]*settling // by bundle directory
}

// settleSeldom is the longest pause between two looks at an output.
const settleSeldom = 10 * time.Second

type settling struct {
	session, generation string
	timer               *time.Timer
	unwatch             func()        // nil once it is not watched any more
	begun               bool          // something was written
	pause               time.Duration // between two looks, once something was
	seen                os.FileInfo   // of the log, at the last look; nil if it was not there
}

func newSettler(quiet time.Duration, tell func(session, generation string)) *settler {
	return &settler{quiet: quiet, tell: tell, waiting: map[string]*settling{}}
}

// wait begins to wait for a generation's output to settle. Output that never
// begins settles after silent.
func (s *settler) wait(b team.Bundle, session, generation string, silent time.Duration) error {
	s.stop(b)
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
	if unwatch != nil { // settled, or forgotten, in between
		unwatch()
	}
	return nil
}

// stop ends the waiting for a member.
func (s *settler) stop(b team.Bundle) {
	s.mu.Lock()
	w := s.waiting[string(b)]
	s.mu.Unlock()
	s.forget(string(b), w)
}

// close ends all waiting.
func (s *settler) close() {
	s.mu.Lock()
	var dirs []string
	for dir := range s.waiting {
		dirs = append(dirs, dir)
	}
	s.mu.Unlock()
	for _, dir := range dirs {
		s.stop(team.Bundle(dir))
	}
}

// heard takes what the hub tells of a bundle.
func (s *settler) heard(dir string, w *settling, e dirwatch.Event) {
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

// look sees whether the log has rested since the last look, which is at least quiet
// ago.
func (s *settler) look(dir string, w *settling) {
	s.mu.Lock()
	unwatch := w.unwatch
	w.unwatch = nil
	s.mu.Unlock()
	if unwatch != nil { // it has begun: there is nothing more to hear
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

// same reports that a log was not written to between two looks.
func same(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return now.Size() == before.Size() && now.ModTime().Equal(before.ModTime())
}

func (s *settler) settled(dir string, w *settling) {
	if s.forget(dir, w) {
		s.tell(w.session, w.generation)
	}
}

// forget ends one waiting; false when it was over already.
func (s *settler) forget(dir string, w *settling) bool {
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
