package supervisor

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/team"
)

// settler tells when a member's output has come to rest: that is when an agent
// that cannot say it is ready is taken to be ready. There is one watcher for all
// members, for those whose output has not begun, and none while nobody is waited
// for. Output that has begun is looked at now and then, ever more seldom: one that
// never rests would wake us with every line.
type settler struct {
	quiet time.Duration // how long an output that has begun must rest
	tell  func(session, generation string)

	mu      sync.Mutex
	watcher *fsnotify.Watcher
	watched int
	waiting map[string]*settling // by bundle directory
	done    sync.WaitGroup
}

// settleSeldom is the longest pause between two looks at an output.
const settleSeldom = 10 * time.Second

type settling struct {
	session, generation string
	timer               *time.Timer
	watched             bool          // its directory is watched: nothing was written yet
	pause               time.Duration // between two looks, once something was
	seen                os.FileInfo   // of the log, at the last look; nil if it was not there
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
	s.watched++
	w := &settling{session: session, generation: generation, watched: true}
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
			s.begun(filepath.Dir(e.Name))
		case _, ok := <-w.Errors:
			if !ok {
				return
			}
		}
	}
}

// begun goes on by looking at an output that has begun.
func (s *settler) begun(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting[dir]
	if w == nil || !w.watched || !w.timer.Stop() {
		return // settled just now, or told twice
	}
	s.unwatch(dir, w)
	s.closeIfIdle()
	w.pause = s.quiet
	w.seen = look(dir)
	w.timer = time.AfterFunc(w.pause, func() { s.look(dir, w) })
}

// look sees whether the log has rested since the last look, which is at least quiet
// ago.
func (s *settler) look(dir string, w *settling) {
	now := look(dir)
	if w.seen != nil && now != nil && now.Size() == w.seen.Size() && now.ModTime().Equal(w.seen.ModTime()) {
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
		s.unwatch(dir, w)
	}
}

func (s *settler) unwatch(dir string, w *settling) {
	if w.watched {
		w.watched = false
		s.watched--
		_ = s.watcher.Remove(dir)
	}
}

func (s *settler) closeIfIdle() {
	if s.watcher != nil && s.watched == 0 {
		_ = s.watcher.Close()
		s.watcher = nil
	}
}
