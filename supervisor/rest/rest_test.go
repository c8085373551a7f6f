package rest

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/teamctl/teamctl/team"
)

// TestLetsChattyOutputBe: continuing output is not watched line by line, and has settled once it
// rests.
func TestLetsChattyOutputBe(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	log, err := os.Create(b.Log())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	told := make(chan string, 1)
	s := New(200*time.Millisecond, func(session, _ string) { told <- session })
	defer s.Close()
	if err := s.Wait(b, "m", "g", time.Hour); err != nil {
		t.Fatal(err)
	}
	last, rest := time.Now(), time.Duration(0) // rest is the longest time between two lines
	line := func() {
		now := time.Now()
		if _, err := log.WriteString("a line\n"); err != nil {
			t.Fatal(err)
		}
		rest, last = max(rest, time.Since(last)), now
	}
	line()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	enough := time.NewTimer(time.Second)
	defer enough.Stop()
	late := time.Now().Add(5 * time.Minute)
	for writing := true; writing; {
		select {
		case <-tick.C:
			line()
		case <-told:
			if rest = max(rest, time.Since(last)); rest < s.quiet {
				t.Fatalf("settled while it goes on, with at most %s between lines", rest)
			}
			// The test was delayed and the output did rest: try again.
			last, rest = time.Now(), 0
			if err := s.Wait(b, "m", "g", time.Hour); err != nil {
				t.Fatal(err)
			}
			line()
			enough.Reset(time.Second)
		case <-enough.C:
			s.mu.Lock()
			w := s.waiting[string(b)] // nil if it did rest
			writing = w == nil || w.unwatch != nil || w.pause <= s.quiet
			s.mu.Unlock()
			if writing && time.Now().After(late) {
				t.Fatal("output that goes on is watched, or looked at as often as at first")
			}
			enough.Reset(50 * time.Millisecond)
		}
	}
	select {
	case who := <-told:
		if who != "m" {
			t.Errorf("%q has settled", who)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("it rests and has not settled")
	}
	if fi, err := os.Stat(b.Log()); err != nil || time.Since(fi.ModTime()) < s.quiet {
		t.Errorf("settled %s after the last line: %v", time.Since(fi.ModTime()), err)
	}
}

// TestWithoutWatches: if the kernel has no watch left, the log is polled instead, and a missing
// log is not evidence.
func TestWithoutWatches(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	if err := os.WriteFile(b.Log(), []byte("of the generation before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 1)
	s := New(50*time.Millisecond, func(session, _ string) { told <- session })
	s.hub.Every = 5 * time.Millisecond
	s.hub.Open = func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }
	defer s.Close()
	if err := s.Wait(b, "m", "g", time.Hour); err != nil {
		t.Fatal(err)
	}
	silent := time.NewTimer(300 * time.Millisecond)
	defer silent.Stop()
	select {
	case <-told:
		t.Fatal("settled without output")
	case <-silent.C:
	}
	if err := os.WriteFile(b.Log(), []byte("ready, and a longer line than before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(5 * time.Minute):
		t.Fatal("its output was not found")
	}
}
