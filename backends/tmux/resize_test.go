package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/team"
)

// follow waits until a condition holds that depends on other processes.
func follow(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := until(ctxFor(t), time.Minute, ok); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// widths are those of the panes of the team's first window.
func widths(t *testing.T, socket, session string) string {
	t.Helper()
	out, err := exec.Command("tmux", "-u", "-S", socket, "list-panes", "-t", session+":0", "-F", "#{pane_width}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// resized is a team's window with the lead's pane and those of four agents, which a person has
// attached to in a window of another tmux server.
type resized struct {
	personServer
	b               *Backend
	socket, session string
}

func newResized(t *testing.T) resized {
	t.Helper()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	if err := b.Check(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if !b.version.atLeast(3, 2) {
		t.Skip("without a control client nobody is told of another size")
	}
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	t.Cleanup(func() { mustEnd(t, h) })
	for _, name := range []string{"b", "c", "d"} {
		h := mustStart(t, b, backendtest.Launch(t, r, name, "idle"))
		t.Cleanup(func() { mustEnd(t, h) })
	}
	socket, session := r.Layout.TmuxSocket(), h.Pane().SessionID
	if got := widths(t, socket, session); got != "99 50 49 50 49" {
		t.Fatalf("widths before: %s", got)
	}
	argv, _, err := b.AttachArgv(ctxFor(t), team.Pane{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newPerson(t)
	p.tmux(append([]string{"new-window", "-d", "-t", "mine:9", "env", "-u", "TMUX"}, argv...)...)
	p.tmux("set-option", "-w", "-t", "mine:9", "remain-on-exit", "on")
	return resized{p, b, socket, session}
}

// team runs tmux on the team's server.
func (r resized) team(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", r.socket}, args...)...).Output()
	if err != nil {
		r.t.Fatalf("tmux %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// resize changes the size of the person's terminal.
func (r resized) resize(w, h string) { r.tmux("resize-window", "-t", "mine:9", "-x", w, "-y", h) }

// shared waits until the panes have the widths want.
func (r resized) shared(t *testing.T, want string) {
	t.Helper()
	got := ""
	defer func() {
		if t.Failed() {
			clients, _ := exec.Command("tmux", "-u", "-S", r.socket, "list-clients", "-F", "#{client_pid} #{client_width}x#{client_height} #{client_flags}").Output()
			t.Logf("widths %s, want %s\nclients:\n%sthe person's pane: %s\n%s", got, want, clients,
				r.tmux("list-panes", "-t", "mine:9", "-F", "#{pane_pid} #{pane_width}x#{pane_height} dead=#{pane_dead} #{pane_dead_status}"),
				r.tmux("capture-pane", "-p", "-t", "mine:9"))
		}
	}()
	follow(t, "the panes share the columns", func() bool {
		got = widths(t, r.socket, r.session)
		return got == want
	})
}

// TestRetile: a client of another size makes the team's window another size, and the panes
// share that as they share every size.
func TestRetile(t *testing.T) {
	t.Parallel()
	r := newResized(t)
	r.resize("120", "36")
	r.shared(t, "59 30 29 30 29")
	r.resize("170", "50")
	r.shared(t, "84 42 42 42 42")
}

// TestRetileUnzoomed: a window whose size changes while it is zoomed is laid out when it is unzoomed.
func TestRetileUnzoomed(t *testing.T) {
	t.Parallel()
	r := newResized(t)
	r.shared(t, "79 40 39 40 39")
	r.team("resize-pane", "-Z", "-t", r.session+":0.1")
	r.resize("131", "40")
	follow(t, "the zoomed window has another size", func() bool {
		return r.team("display-message", "-p", "-t", r.session+":0", "#{window_zoomed_flag} #{window_width}") == "1 131"
	})
	r.team("resize-pane", "-Z", "-t", r.session+":0.1")
	r.shared(t, "65 32 32 32 32")
}

// TestRetileWhileZoomed: a window that was zoomed when it was to be laid out is laid out when it is unzoomed.
func TestRetileWhileZoomed(t *testing.T) {
	t.Parallel()
	r := newResized(t)
	r.shared(t, "79 40 39 40 39")
	r.team("select-layout", "-t", r.session+":0", "even-horizontal")
	if got := widths(t, r.socket, r.session); got == "79 40 39 40 39" {
		t.Fatal("the layout is the same")
	}
	r.team("resize-pane", "-Z", "-t", r.session+":0.1")
	r.b.mu.Lock()
	s := r.b.servers[r.socket]
	r.b.mu.Unlock()
	if err := s.relayout(ctxFor(t), r.team("display-message", "-p", "-t", r.session+":0", "#{window_id}")); err != nil {
		t.Fatal(err)
	}
	r.team("resize-pane", "-Z", "-t", r.session+":0.1")
	r.shared(t, "79 40 39 40 39")
}

// TestAttachStartsTheLead: the program of the lead's pane that has exited is started again
// by the command that attaches, and one that runs is left alone.
func TestAttachStartsTheLead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	exe := r.Open(t).(*Backend).opt.ShimArgv
	b := New(Options{Layout: r.Layout, ShimArgv: exe, LeadArgv: []string{"sh", "-c", "echo begun; read x; exit 3"}})
	t.Cleanup(func() { _ = b.Close() })
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	defer mustEnd(t, h)
	socket, session := r.Layout.TmuxSocket(), h.Pane().SessionID
	tmux := func(args ...string) string {
		out, err := exec.Command("tmux", append([]string{"-u", "-S", socket}, args...)...).Output()
		if err != nil {
			t.Fatalf("tmux %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	lead := func() string { return tmux("display-message", "-p", "-t", session+":0.0", "#{pane_dead} #{pane_pid}") }
	attach := func() []string {
		argv, _, err := b.AttachArgv(ctxFor(t), team.Pane{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return argv
	}
	if got := strings.Join(attach(), " "); strings.Contains(got, "respawn") {
		t.Errorf("a pane whose program runs: %s", got)
	}
	before := lead()
	tmux("run-shell", "kill -9 "+strings.Fields(before)[1])
	follow(t, "the program exits", func() bool { return strings.HasPrefix(lead(), "1 ") })
	first, second := attach(), attach()
	p := newPerson(t)
	enter := func(window string, argv []string) {
		p.tmux(append([]string{"new-window", "-d", "-t", window, "env", "-u", "TMUX"}, escapeAll(argv)...)...)
	}
	enter("mine:9", first)
	follow(t, "the program runs again", func() bool { return strings.HasPrefix(lead(), "0 ") && lead() != before })
	before = lead()
	enter("mine:10", second)
	follow(t, "two clients are attached", func() bool {
		return strings.Count(tmux("list-clients", "-F", "person #{client_control_mode}")+"\n", "person 0\n") == 2
	})
	if after := lead(); after != before {
		t.Errorf("the second command that attaches has started the program again: %s, before %s", after, before)
	}
}

// TestLeadAgain: the program of the lead's pane that has ended is started again without a command that attaches,
// after a pause that gets longer and that the pane shows.
func TestLeadAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	exe := r.Open(t).(*Backend).opt.ShimArgv
	runs := filepath.Join(t.TempDir(), "runs")
	b := New(Options{Layout: r.Layout, ShimArgv: exe, LeadArgv: []string{"sh", "-c", `printf '\033[?1049hshown'; echo run >>"$0"; kill -9 $$`, runs}})
	t.Cleanup(func() { _ = b.Close() })
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	defer mustEnd(t, h)
	pane := func() string {
		out, err := exec.Command("tmux", "-u", "-S", r.Layout.TmuxSocket(), "capture-pane", "-p", "-t", h.Pane().SessionID+":0.0").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	follow(t, "the second pause, which is longer", func() bool {
		text := pane()
		return strings.Contains(text, "(exit 137): it starts again in 1 s\n") && strings.Contains(text, "it starts again in 2 s\n") && !strings.Contains(text, "shown")
	})
	follow(t, "the third run", func() bool {
		data, _ := os.ReadFile(runs)
		return strings.Count(string(data), "run\n") >= 3
	})
}
