package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// guest is a client of a tmux server in a terminal of its own.
type guest struct {
	tty  *os.File
	name string // of the terminal, and thus of the client
	mu   sync.Mutex
	said bytes.Buffer
}

func (g *guest) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said.Write(b)
}

func (g *guest) has(text string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return bytes.Contains(g.said.Bytes(), []byte(text))
}

// TestFullScreenPopup checks that going to a member from a screen in a popup of the member's
// tmux server ends the screen, and with it the popup, and takes the client with the popup to the member's
// pane, even if another client was used since.
func TestFullScreenPopup(t *testing.T) {
	r := newFaultRig(t)
	r.teamctl("spawn", "ann", "--backend", "tmux", "--", "cat")
	_, pane := r.server("ann")
	if out, err := r.try("tmux", "-S", pane.Socket, "list-commands", "display-popup"); err != nil {
		t.Skipf("no display-popup, which tmux has since 3.2: %s", out)
	}
	tmux := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(r.command(append([]string{"tmux", "-u", "-S", pane.Socket}, args...)...))
	}
	clients := func() string { return tmux("list-clients", "-F", "#{client_name} #{session_name} #{pane_id}") }
	guests := []*guest{}
	for _, session := range []string{"one", "two"} {
		tmux("new-session", "-d", "-x", "120", "-y", "36", "-s", session, "cat")
		c := exec.Command("tmux", "-u", "-S", pane.Socket, "attach-session", "-t", session)
		c.Dir, c.Env = r.dir, append(r.env, "TERM=xterm-256color", "TMUX=")
		g := &guest{}
		g.tty = startOnTerminal(t, c, 120, 36)
		out := readTerminal(g.tty, g)
		guests = append(guests, g)
		defer func() {
			_, _ = r.try("tmux", "-S", pane.Socket, "detach-client", "-s", "=two")
			_, _ = r.try("tmux", "-S", pane.Socket, "detach-client", "-t", g.name)
			out.close()
			_ = c.Wait()
		}()
		r.until("a client of "+session, func() bool {
			g.name = tmux("list-clients", "-t", session, "-F", "#{client_name}")
			return g.name != ""
		})
	}
	one, two := guests[0], guests[1]
	types := func(g *guest, keys string) {
		t.Helper()
		if _, err := g.tty.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	ended := filepath.Join(r.dir, "ended")
	tmux("bind-key", "t", "display-popup", "-E", "-w", "90%", "-h", "90%",
		"env "+team.EnvHome+"="+r.layout.Home.Dir+" "+team.EnvRuntime+"="+r.dir+"/r "+r.exe+" ui --team f --select ann; touch "+ended)
	types(one, "\x02t")
	r.until("the screen", func() bool { return one.has("TASKS 0") })
	types(two, "x")
	r.until("the other client in use", func() bool { return strings.HasPrefix(tmux("capture-pane", "-p", "-t", "two"), "x") })
	types(one, "o")
	r.until("the menu", func() bool { return one.has("teamctl attach ann") })
	types(one, "attach\r")
	r.until("the end of the screen", func() bool { _, err := os.Stat(ended); return err == nil })
	if got := clients(); !strings.Contains(got, one.name+" teamctl-f "+pane.PaneID) || !strings.Contains(got, two.name+" two ") {
		t.Fatalf("clients are\n%s\nwant %s at %s of teamctl-f, %s in two", got, one.name, pane.PaneID, two.name)
	}
	r.until("what is typed in the member's pane", func() bool {
		types(one, "hello\r")
		return strings.Contains(tmux("capture-pane", "-p", "-t", pane.PaneID), "hello")
	})
}
