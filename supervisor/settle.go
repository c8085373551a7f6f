package supervisor

import (
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/team"
)

// settler tells when a member's output has come to rest: that is when an agent
// that cannot say it is ready is taken to be ready. There is one watcher for all
// members, and none while nobody is waited for.
type settler struct {
	quiet time.Duration // how long an output that has begun must rest
	tell  func(session, generation string)

	mu      sync.Mutex
	watcher *fsnotify.Watcher
	waiting map[string]*settling // by bundle directory
	done    sync.WaitGroup
}

type settling struct {
	session, generation string
	timer               *time.Timer
}

func newSettler(quiet time.Duration, tell func(session, generation string)) *settler {
	return &settler{quiet: quiet, tell: tell, waiting: map[string]*settling{}}
}

// wait begins to wait for a generation's output to settle. Output that never
// begins settles after silent.
func (s *settler) wait(b team.Bundle, session, generation string, silent time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		s.watcher = w
		s.done.Go(func() { s.read(w) })
	}
	dir := string(b)
	s.forget(dir)
	if err := s.watcher.Add(dir); err != nil {
		s.closeIfIdle()
		return err
	}
	w := &settling{session: session, generation: generation}
	w.timer = time.AfterFunc(silent, func() { s.settled(dir, w) })
	s.waiting[dir] = w
	return nil
}

// stop ends the waiting for a member.
func (s *settler) stop(b team.Bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(string(b))
	s.closeIfIdle()
}

// close ends all waiting.
func (s *settler) close() {
	s.mu.Lock()
	for dir := range s.waiting {
		s.forget(dir)
	}
	s.closeIfIdle()
	s.mu.Unlock()
	s.done.Wait()
}

func (s *settler) read(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if filepath.Base(e.Name) != "output.log" {
				continue
			}
			s.mu.Lock()
			if x := s.waiting[filepath.Dir(e.Name)]; x != nil {
				x.timer.Reset(s.quiet)
			}
			s.mu.Unlock()
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
		}
	}
}

func (s *settler) settled(dir string, w *settling) {
	s.mu.Lock()
	mine := s.waiting[dir] == w
	if mine {
		s.forget(dir)
		s.closeIfIdle()
	}
	s.mu.Unlock()
	if mine {
		s.tell(w.session, w.generation)
	}
}

func (s *settler) forget(dir string) {
	if w := s.waiting[dir]; w != nil {
		w.timer.Stop()
		delete(s.waiting, dir)
		_ = s.watcher.Remove(dir)
	}
}

func (s *settler) closeIfIdle() {
	if s.watcher != nil && len(s.waiting) == 0 {
		_ = s.watcher.Close()
		s.watcher = nil
	}
}
