package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
)

// seat is a terminal of a person: a shell in a pane of a private tmux server.
type seat struct {
	*faultRig
	name   string
	remote *remote // nil until it is needed
}

// sit opens a terminal with a shell that waits for a command.
func (r *faultRig) sit(name string, cols, rows int) *seat {
	r.Helper()
	s := &seat{faultRig: r, name: name}
	r.Cleanup(func() { _, _ = r.try("tmux", "-S", r.dir+"/seat", "kill-server") })
	s.tmux("new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-s", name,
		"exec env -u TMUX -u TMUX_PANE -u NO_COLOR LC_ALL=C.UTF-8 PS1='shell> ' PATH="+filepath.Dir(r.exe)+":$PATH bash --norc --noprofile")
	s.shows("shell>")
	s.run("stty -g > " + name + ".before")
	return s
}

// keys sends keys in one burst.
func (s *seat) keys(keys ...string) {
	s.Helper()
	s.tmux(append([]string{"send-keys", "-t", s.name}, keys...)...)
}

// types sends keys one by one, each after a pause like that of a person who reads the screen
// first.
func (s *seat) types(keys ...string) {
	s.Helper()
	for _, k := range keys {
		look := time.NewTimer(800 * time.Millisecond)
		<-look.C
		s.keys(k)
	}
}

// answers types a key that answers a request until the screen shows the result. A screen that was
// painted late reports that it has not accepted the key yet.
func (s *seat) answers(key, want string) {
	s.Helper()
	s.insists(want, func() { s.types(key) })
}

// at selects the row with the words and types a key there until the screen shows the result.
func (s *seat) at(key, want, move string, words ...string) {
	s.Helper()
	s.insists(want, func() {
		s.selects(move, words...)
		s.types(key)
	})
}

// insists repeats typing while the screen reports that the keys had no effect.
func (s *seat) insists(want string, typing func()) {
	s.Helper()
	typing()
	typed := time.Now()
	s.sees("a screen with "+want, func(text string) bool {
		nothing := strings.Contains(text, "nothing was answered") || strings.Contains(text, "nothing was done: ") || strings.Contains(text, "does nothing here")
		if !strings.Contains(text, want) && nothing && time.Since(typed) > 2*time.Second {
			typing()
			typed = time.Now()
		}
		return strings.Contains(text, want)
	})
}

func (s *seat) run(line string) { s.Helper(); s.keys("-l", line); s.keys("Enter") }

// kill kills the screen with SIGKILL, and no other process of the terminal.
func (s *seat) kill() {
	s.Helper()
	shell := strings.TrimSpace(s.tmux("display-message", "-p", "-t", s.name, "#{pane_pid}"))
	children, err := os.ReadFile("/proc/" + shell + "/task/" + shell + "/children")
	if err != nil {
		s.Skipf("no list of children: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil {
		s.Fatal(err)
	}
	id, err := proc.Identify(pid)
	if err != nil {
		s.Fatal(err)
	}
	s.faultRig.kill(id)
	s.shows("shell>")
}

func (s *seat) screen() string { s.Helper(); return s.tmux("capture-pane", "-p", "-t", s.name) }

func (s *seat) lines() []string { return strings.Split(strings.TrimRight(s.screen(), "\n "), "\n") }

func (s *seat) shows(want string) {
	s.Helper()
	s.sees("a screen with "+want, func(text string) bool { return strings.Contains(text, want) })
}

func (s *seat) sees(what string, ok func(text string) bool) {
	s.Helper()
	last := ""
	defer func() {
		if s.Failed() {
			s.Logf("the screen of %s:\n%s", s.name, last)
		}
	}()
	s.until(what, func() bool {
		last = s.screen()
		return ok(last)
	})
}

// left checks that the shell's terminal is in the same state as before the screen.
func (s *seat) left() {
	s.Helper()
	s.sees("the shell", func(text string) bool { return strings.HasSuffix(strings.TrimRight(text, "\n "), "shell>") })
	s.run("stty -g > " + s.name + ".after")
	s.until("what the shell says of its terminal", func() bool {
		b, err := os.ReadFile(filepath.Join(s.dir, s.name+".after"))
		return err == nil && strings.HasSuffix(string(b), "\n")
	})
	before, after := s.file(s.name+".before"), s.file(s.name+".after")
	if before != after {
		s.Errorf("the modes of the terminal are %s, and were %s", after, before)
	}
	if got := strings.TrimSpace(s.tmux("display-message", "-p", "-t", s.name, "#{alternate_on} #{mouse_any_flag} #{cursor_flag} #{keypad_cursor_flag}")); got != "0 0 1 0" {
		s.Errorf("alternate screen, mouse, cursor, keypad of the terminal are left as %s", got)
	}
	if err := os.Remove(filepath.Join(s.dir, s.name+".after")); err != nil {
		s.Error(err)
	}
}

func (r *faultRig) file(name string) string {
	r.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(b)
}

// selects presses a key until the row with all these words is selected.
func (s *seat) selects(key string, words ...string) {
	s.Helper()
	last := ""
	for range 60 {
		s.caughtUp()
		row := s.selected()
		all := row != ""
		for _, w := range words {
			all = all && strings.Contains(row, w)
		}
		if all {
			return
		}
		if row == last { // the end of the list: the row may have got its words since it was passed
			s.types("g")
		} else {
			s.types(key)
		}
		last = row
	}
	s.Fatalf("no row with %q can be selected:\n%s", words, s.screen())
}

// caughtUp waits until the screen has handled all keys. On a busy machine the selected row may be
// one that an earlier key will leave.
func (s *seat) caughtUp() {
	s.Helper()
	help := func(text string) bool { return regexp.MustCompile(`(?m)^ keys  /`).MatchString(text) }
	s.keys("?")
	s.sees("the keys of the place", help)
	s.keys("Escape")
	s.sees("the place again", func(text string) bool { return !help(text) })
}

// selected returns the selected row.
func (s *seat) selected() string {
	for _, line := range s.lines() {
		if strings.HasPrefix(line, " › ") {
			return line
		}
	}
	return ""
}

func (r *faultRig) approvals() []ledger.Approval {
	r.Helper()
	var out struct {
		Approvals []ledger.Approval `json:"approvals"`
	}
	if err := json.Unmarshal([]byte(r.teamctl("approvals", "--all", "--json")), &out); err != nil {
		r.Fatal(err)
	}
	return out.Approvals
}

func (r *faultRig) approval(id int64) ledger.Approval {
	r.Helper()
	for _, x := range r.approvals() {
		if x.ID == id {
			return x
		}
	}
	return ledger.Approval{}
}

// asks spawns a member that makes a request, and reads its mail when Enter is pressed at its
// screen.
func (r *faultRig) asks(name, ask string) {
	r.Helper()
	r.teamctl("spawn", name, "--backend", "tmux", "--worktree", "none", "--", "sh", "-c",
		r.exe+" ask "+ask+" && echo it has asked && read x; "+r.exe+" inbox --consume; exec sleep 10000")
	r.until("what "+name+" asks", func() bool {
		log, err := os.ReadFile(r.layout.Bundle(name).Log())
		return err == nil && strings.Contains(string(log), "it has asked")
	})
}
