package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// kitty is a terminal around tmux. It identifies itself as kitty and can lose the focus.
type kitty struct {
	tty  *os.File
	mu   sync.Mutex
	said bytes.Buffer
	told bool // has identified itself
}

func (k *kitty) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.said.Write(b)
	if !k.told && bytes.Contains(k.said.Bytes(), []byte("\x1b[>q")) {
		k.told = true
		_, _ = k.tty.WriteString("\x1bP>|kitty(0.31.0)\x1b\\")
	}
	return len(b), nil
}

func (k *kitty) has(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return bytes.Contains(k.said.Bytes(), []byte(text))
}

// TestFullScreenAlerts checks that in a tmux that allows it, a terminal without focus gets a
// notification of whatever begins to need the person, but not of what the screen has shown from
// the start.
func TestFullScreenAlerts(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	s := r.sit("one", 120, 36)
	if out, err := r.try("tmux", "-S", r.dir+"/seat", "set-option", "-g", "allow-passthrough", "on"); err != nil {
		t.Skipf("this tmux has no such option: %s", out)
	}
	s.tmux("set-option", "-g", "focus-events", "on")
	attach := exec.Command("tmux", "-u", "-S", r.dir+"/seat", "attach-session", "-t", "one")
	attach.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=")
	k := &kitty{}
	k.tty = startOnTerminal(t, attach, 120, 36)
	out := readTerminal(k.tty, k)
	defer func() {
		_, _ = r.try("tmux", "-S", r.dir+"/seat", "kill-server")
		_ = attach.Wait()
		out.close()
	}()
	r.until("what the terminal is", func() bool {
		return strings.HasPrefix(s.tmux("display-message", "-p", "-t", "one", "#{client_termtype}"), "kitty")
	})
	in := strings.TrimSpace(s.tmux("display-message", "-p", "-t", "one", "TMUX='#{socket_path},#{pid},0' TMUX_PANE='#{pane_id}'"))
	s.run(in + " teamctl ui")
	s.shows("1 NEED YOU")
	s.caughtUp()
	const notification = "\x1b]99;i=teamctl:d=0;teamctl f\x1b\\\x1b]99;i=teamctl:p=body;"
	if k.has(notification) {
		t.Error("there is a notification of what the screen shows from the start")
	}
	last := time.Time{}
	n := 0
	r.until("a notification", func() bool {
		if time.Since(last) > 5*time.Second { // the screen may not have noticed yet that it has lost the focus
			if _, err := k.tty.WriteString("\x1b[O"); err != nil {
				t.Fatal(err)
			}
			n++
			r.teamctl("task", "add", "integration "+strings.Repeat("x", n))
			id := strconv.Itoa(n)
			r.teamctl("task", "claim", id)
			r.teamctl("task", "fail", id, "--error", "2 of 40 failed")
			last = time.Now()
		}
		return k.has(notification+"task ") || k.has(notification+"2 need you: task ")
	})
	s.types("q")
	s.left()
}
