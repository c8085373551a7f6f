package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullScreenKeys checks that a person's own keys are shown and work. A mistake in ui.yaml is
// reported with its position by doctor and on the screen, which then uses the default keys.
func TestFullScreenKeys(t *testing.T) {
	r := newFaultRig(t)
	conf := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dir, "t", "ui.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf("mouse: off\nkeys: {quit: '&', add-task: T}\n")
	s := r.sit("p", 100, 30)
	s.run("teamctl")
	s.shows("& quit")
	if got := strings.TrimSpace(s.tmux("display-message", "-p", "-t", s.name, "#{mouse_any_flag}")); got != "0" {
		t.Error("the mouse is taken")
	}
	s.types("q")
	s.shows("q does nothing here")
	s.types("&")
	s.left()

	conf("keys:\n  quit: '&'\n  reject: j\n")
	s.run("clear; teamctl")
	s.shows("ui.yaml:3:11: key j means both")
	s.types("&")
	s.shows("& does nothing here")
	s.types("q")
	s.left()
	if out := r.teamctl("doctor"); !strings.Contains(out, "ui.yaml:3:11: key j means both") {
		t.Errorf("the doctor says\n%s", out)
	}

	conf("plain: on\n")
	s.run("clear; teamctl")
	s.shows("plain screen: on by ui.yaml.")
	s.run("quit")
	s.shows("shell>")
	s.run("clear; TEAMCTL_PLAIN=0 teamctl")
	s.shows("q quit")
	s.types("q")
	s.left()
}
