package tmux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// personServer is a tmux server in the role of the user's own.
type personServer struct {
	t      *testing.T
	socket string
}

func newPerson(t *testing.T) personServer {
	t.Helper()
	dir, err := os.MkdirTemp(strays.Short(), "tp")
	if err != nil {
		t.Fatal(err)
	}
	p := personServer{t, filepath.Join(dir, "s")}
	t.Cleanup(func() { // it may have exited with its last window
		_ = exec.Command("tmux", "-S", p.socket, "kill-server").Run()
		_ = os.RemoveAll(dir)
	})
	p.tmux("new-session", "-d", "-s", "mine", "-x", "160", "-y", "48", "cat")
	if p.tmux("display-message", "-p", "-t", "mine", "#{window_width}") != "160" { // tmux 3.2 ignores the size given by a client without a terminal
		p.tmux("resize-window", "-t", "mine:0", "-x", "160", "-y", "48")
		p.tmux("set-option", "-wu", "-t", "mine:0", "window-size")
	}
	return p
}

func (p personServer) tmux(args ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", p.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// state returns what a user would notice of a change: options, focus, windows.
func (p personServer) state() string {
	return strings.Join([]string{
		p.tmux("show-options", "-g"), p.tmux("show-options", "-s"), p.tmux("show-options", "-t", "mine"),
		p.tmux("show-options", "-gw"), p.tmux("show-options", "-w", "-t", "mine:0"),
		p.tmux("display-message", "-p", "-t", "mine", "focus #{window_id} #{pane_id} #{session_windows}"),
		p.tmux("list-panes", "-s", "-t", "mine", "-F", "#{pane_id} #{pane_width}x#{pane_height} #{pane_title}"),
		p.tmux("show-hooks", "-g"), p.tmux("list-clients"), p.tmux("list-buffers"),
	}, "\n--\n")
}

func (p personServer) place(layout team.PaneLayout) team.Place {
	return team.Place{
		Layout:   layout,
		TMUX:     p.tmux("display-message", "-p", "#{socket_path},#{pid},0"),
		TMUXPane: p.tmux("display-message", "-p", "-t", "mine:0.0", "#{pane_id}"),
	}
}

func ctxFor(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustStart(t *testing.T, b *Backend, l backends.Launch) backends.Handle {
	t.Helper()
	h, err := b.Start(ctxFor(t), l)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func mustEnd(t *testing.T, h backends.Attached) {
	t.Helper()
	if err := h.Stop(ctxFor(t), time.Second); err != nil {
		t.Fatal(err)
	}
	<-h.Exited()
	if err := h.Dispose(ctxFor(t)); err != nil {
		t.Fatal(err)
	}
}

func TestSplitOfThePersonsWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	p := newPerson(t)
	p.tmux("set-option", "-w", "-t", "mine:0", "pane-border-format", "mine #P")
	before := p.state()
	focus := p.tmux("display-message", "-p", "-t", "mine", "#{window_id} #{pane_id}")
	var hs []backends.Handle
	for i := range 4 {
		l := backendtest.Launch(t, r, fmt.Sprintf("mate%d", i), "idle")
		l.Place = p.place(team.PaneAuto)
		l.Title = "mate #(touch /tmp/never) " + l.Agent
		h := mustStart(t, b, l)
		if h.Pane().Private || h.Pane().Socket != p.socket {
			t.Fatalf("pane = %+v; want the person's server", h.Pane())
		}
		hs = append(hs, h)
	}
	if got := p.tmux("display-message", "-p", "-t", "mine", "#{window_id} #{pane_id}"); got != focus {
		t.Errorf("focus went from %s to %s", focus, got)
	}
	if got := p.tmux("list-clients"); got != "" {
		t.Errorf("clients on the person's server: %s", got)
	}
	// The user keeps the left half, the teammates tile the right one.
	lines := strings.Split(p.tmux("list-panes", "-t", "mine:0", "-F", "#{pane_left} #{pane_width} #{@teamctl_agent}|#{pane_title}|#{pane_dead}"), "\n")
	if len(lines) != 5 {
		t.Fatalf("panes: %q", lines)
	}
	if !strings.HasPrefix(lines[0], "0 79 |") {
		t.Errorf("the person's pane: %q", lines[0])
	}
	for i, l := range lines[1:] {
		var left, width int
		if _, err := fmt.Sscan(l, &left, &width); err != nil || left < 80 || width < minCols {
			t.Errorf("teammate %d: %q", i, l)
		}
		if !strings.Contains(l, "|mate #(touch /tmp/never) mate") && !strings.Contains(l, "|mate (touch /tmp/never) mate") {
			t.Errorf("title of teammate %d: %q", i, l)
		}
	}
	if _, err := os.Stat("/tmp/never"); err == nil {
		t.Error("the title was executed")
	}
	if got := p.tmux("show-options", "-wv", "-t", "mine:0", "pane-border-status"); got != "top" {
		t.Errorf("pane-border-status = %q", got)
	}
	for _, h := range hs {
		mustEnd(t, h)
	}
	if diff := cmp.Diff(before, p.state()); diff != "" {
		t.Errorf("the person's server is not as before:\n%s", diff)
	}
}

func TestWindowOnThePersonsServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	p := newPerson(t)
	before := p.state()
	// A zoomed window, one with panes arranged by the user, and --window.
	for _, c := range []struct {
		name    string
		layout  team.PaneLayout
		prepare []string
		windows string
	}{
		{"window", team.PaneWindow, nil, "2"},
		{"zoomed", team.PaneSplit, []string{"resize-pane", "-Z", "-t", "mine:0.0"}, "2"},
	} {
		if c.name == "zoomed" {
			p.tmux("split-window", "-d", "-t", "mine:0", "cat")
		}
		if c.prepare != nil {
			p.tmux(c.prepare...)
		}
		l := backendtest.Launch(t, r, c.name, "idle")
		l.Place = p.place(c.layout)
		h := mustStart(t, b, l)
		if got := p.tmux("display-message", "-p", "-t", "mine", "#{session_windows} #{window_index}"); got != c.windows+" 0" {
			t.Errorf("%s: windows and current one: %s", c.name, got)
		}
		mustEnd(t, h)
	}
	p.tmux("kill-pane", "-t", "mine:0.1")
	if diff := cmp.Diff(before, p.state()); diff != "" {
		t.Errorf("the person's server is not as before:\n%s", diff)
	}
}

// The user's own arrangement of panes is unchanged except for the pane that is
// split.
func TestSplitBesideThePersonsPanes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	p := newPerson(t)
	p.tmux("split-window", "-d", "-v", "-l", "10", "-t", "mine:0", "cat")
	small := p.tmux("display-message", "-p", "-t", "mine:0.1", "#{pane_id} #{pane_width}x#{pane_height}")
	var hs []backends.Handle
	for i := range 3 {
		l := backendtest.Launch(t, r, fmt.Sprintf("mate%d", i), "idle")
		l.Place = p.place(team.PaneSplit)
		hs = append(hs, mustStart(t, b, l))
	}
	id, _, _ := strings.Cut(small, " ")
	if got := p.tmux("display-message", "-p", "-t", id, "#{pane_id} #{pane_width}x#{pane_height}"); got != small && got != strings.Replace(small, "x10", "x9", 1) {
		t.Errorf("the person's other pane went from %s to %s", small, got)
	}
	for _, h := range hs {
		mustEnd(t, h)
	}
}

func TestPlaceThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "idle")
	l.Place = team.Place{TMUX: "/nonexistent/socket,1,0", TMUXPane: "%0"}
	h := mustStart(t, b, l) // auto: the team's own server
	if !h.Pane().Private {
		t.Errorf("pane = %+v; want the private server", h.Pane())
	}
	mustEnd(t, h)
	l = backendtest.Launch(t, r, "b", "idle")
	l.Place = team.Place{TMUX: "/nonexistent/socket,1,0", TMUXPane: "%0", Layout: team.PaneSplit}
	if _, err := b.Start(ctxFor(t), l); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("split of a terminal that is gone: %v; want unavailable", err)
	}
}

func TestAttachArgv(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.Open(t).(*Backend)
	h := mustStart(t, b, backendtest.Launch(t, r, "a", "idle"))
	socket := r.Layout.TmuxSocket()
	env := []string{"A=b", "TMUX=/elsewhere,1,0"}
	argv, runEnv, err := b.AttachArgv(ctxFor(t), h.Pane(), env)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(argv[1:], " ")
	if want := fmt.Sprintf("-u -S %s select-window -t %s ; select-pane -t %s ; attach-session -t %s", socket, h.Pane().WindowID, h.Pane().PaneID, h.Pane().SessionID); got != want {
		t.Errorf("argv = %s; want %s", got, want)
	}
	if strings.Join(runEnv, " ") != "A=b" {
		t.Errorf("env = %v", runEnv)
	}
	argv, runEnv, err = b.AttachArgv(ctxFor(t), h.Pane(), []string{"TMUX=" + socket + ",1,0"})
	if err != nil || argv[len(argv)-3] != "switch-client" || len(runEnv) != 1 {
		t.Errorf("on the same server: %v, %v, %v", argv, runEnv, err)
	}
	argv, _, err = b.AttachArgv(ctxFor(t), team.Pane{}, nil)
	if err != nil || strings.Join(argv[3:], " ") != socket+" attach-session -t "+h.Pane().SessionID {
		t.Errorf("team: %v, %v", argv, err)
	}
	stale := h.Pane()
	stale.ServerStart++
	if _, _, err := b.AttachArgv(ctxFor(t), stale, nil); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("attach to a pane of another server: %v; want not found", err)
	}
	mustEnd(t, h)
	if _, _, err := b.AttachArgv(ctxFor(t), h.Pane(), nil); !team.IsCode(err, team.CodeNotFound) {
		t.Errorf("attach to a disposed pane: %v; want not found", err)
	}
}

func TestHideAndShow(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"private", "person"} {
		t.Run(where, func(t *testing.T) {
			r := newRig(t)
			b := r.Open(t).(*Backend)
			place := team.Place{}
			if where == "person" {
				place = newPerson(t).place(team.PaneAuto)
			}
			var hs []backends.Handle
			for i := range 3 {
				l := backendtest.Launch(t, r, fmt.Sprintf("m%d", i), "idle")
				l.Place = place
				hs = append(hs, mustStart(t, b, l))
			}
			window := func(h backends.Handle) string {
				_, q, err := b.locate(ctxFor(t), h.Pane())
				if err != nil {
					t.Fatal(err)
				}
				return q.window
			}
			home := window(hs[0])
			for range 2 {
				for range 2 { // hiding a hidden pane changes nothing
					if err := b.Hide(ctxFor(t), hs[1].Pane()); err != nil {
						t.Fatal(err)
					}
				}
				if w := window(hs[1]); w == home {
					t.Errorf("still in window %s", w)
				}
				for range 2 {
					if err := b.Show(ctxFor(t), hs[1].Pane()); err != nil {
						t.Fatal(err)
					}
				}
				if w := window(hs[1]); w != home {
					t.Errorf("in window %s, not in %s", w, home)
				}
			}
			if err := b.Hide(ctxFor(t), hs[2].Pane()); err != nil {
				t.Fatal(err)
			}
			for _, h := range hs { // a hidden pane is stopped and removed like any other
				mustEnd(t, h)
			}
			if err := b.Hide(ctxFor(t), hs[0].Pane()); !team.IsCode(err, team.CodeNotFound) {
				t.Errorf("hide a gone pane: %v; want not found", err)
			}
		})
	}
}
