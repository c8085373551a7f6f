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

// TestRetile: a client of another size makes the team's window another size, and the panes
// share that as they share every size.
func TestRetile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	if err := b.Check(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
	if !b.version.atLeast(3, 2) {
		t.Skip("without a control client nobody is told of another size")
	}
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	defer mustEnd(t, h)
	for _, name := range []string{"b", "c", "d"} {
		defer mustEnd(t, mustStart(t, b, backendtest.Launch(t, r, name, "idle")))
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
	for _, size := range [][]string{{"120", "36", "59 30 29 30 29"}, {"170", "50", "84 42 42 42 42"}} {
		p.tmux("resize-window", "-t", "mine:9", "-x", size[0], "-y", size[1])
		got := ""
		defer func() {
			if t.Failed() {
				t.Logf("at %s: widths %s, want %s", size[0], got, size[2])
			}
		}()
		follow(t, "the panes share "+size[0]+" columns", func() bool {
			got = widths(t, socket, session)
			return got == size[2]
		})
	}
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
