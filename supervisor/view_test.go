package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

// captured is the screen of every agent.
func (m *machine) captured() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	return m.screen
}

func (m *machine) shows(screen string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.screen = screen
}

// writes appends to a member's log, which exists.
func (r *rig) writes(name string) {
	r.Helper()
	f, err := os.OpenFile(r.layout.Bundle(name).Log(), os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString("x")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.Fatal(err)
	}
}

// A screen that is followed is looked at once for each write of its own member, and shown when it has changed.
func TestView(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	for _, name := range []string{"a", "b"} {
		r.spawn(s, name, team.RestartNever)
		mkdir(t, filepath.Dir(r.layout.Bundle(name).Log()))
		if err := os.WriteFile(r.layout.Bundle(name).Log(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.m.shows("\x1b[31mone\n\x1b]0;t\x07two\n")
	frames, done := make(chan []string), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	view := func() { done <- s.View(ctx, "a", func(lines []string) { frames <- lines }) }
	go view()
	if got, want := <-frames, []string{"\x1b[0;31mone\x1b[0m", "\x1b[0;31mtwo\x1b[0m"}; !slices.Equal(got, want) {
		t.Errorf("first: %q, want %q", got, want)
	}
	for range 100 {
		r.writes("b")
	}
	r.m.shows("three")
	r.writes("a")
	if got := <-frames; !slices.Equal(got, []string{"three"}) {
		t.Errorf("then: %q", got)
	}
	r.m.mu.Lock()
	if r.m.looks != 2 {
		t.Errorf("%d looks for one write of the member and 100 of another, want 2", r.m.looks)
	}
	r.m.mu.Unlock()
	r.writes("a") // what it shows is the same: the next frame is the next change
	r.m.shows("four")
	r.writes("a")
	if got := <-frames; !slices.Equal(got, []string{"four"}) {
		t.Errorf("at last: %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("nobody looks any more: %v", err)
	}
	ctx = t.Context()
	go view()
	<-frames
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	if err := <-done; !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("its exit: %v, want not found", err)
	}
	if err := s.View(ctx, "nobody", nil); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("nobody's screen: %v, want not found", err)
	}
}
