package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// places reports where a teammate is running.
type places struct {
	*faultRig
	person, window string // socket of the person's tmux server, and their window
	tmux           []string
}

// newPlaces starts a tmux server for a person.
func newPlaces(t *testing.T) *places {
	r := newFaultRig(t)
	p := &places{faultRig: r, person: r.dir + "/p"}
	tm := func(args ...string) string {
		return strings.TrimSpace(r.command(append([]string{"tmux", "-S", p.person, "-f", "/dev/null"}, args...)...))
	}
	tm("new-session", "-d", "-x", "200", "-y", "50", "cat")
	t.Cleanup(func() { tm("kill-server") })
	var pane, server string
	server, p.window, _ = strings.Cut(tm("display-message", "-p", "#{socket_path},#{pid},0 #{window_id} #{pane_id}"), " ")
	p.window, pane, _ = strings.Cut(p.window, " ")
	p.tmux = []string{"TMUX=" + server, "TMUX_PANE=" + pane}
	return p
}

// of describes where a member is running.
func (p *places) of(m ledger.Member) string {
	p.Helper()
	name := m.Name
	if m.Spec.Backend != "tmux" {
		return m.Spec.Backend
	}
	pane, err := bundle.ReadPane(p.layout.Bundle(name), "")
	if err != nil {
		p.Fatal(err)
	}
	// The process of the pane is the shim itself, a child of the server: nothing was typed into a
	// shell.
	facts := strings.Fields(p.command("tmux", "-S", pane.Socket, "display-message", "-p", "-t", pane.PaneID, "#{pane_pid} #{pid} #{window_panes} #{window_id} #{pane_title}"))
	shimPID := strconv.Itoa(p.proc(name).Shim.PID)
	if len(facts) != 5 || facts[0] != shimPID || parent(p.T, shimPID) != facts[1] || !strings.Contains(facts[4], name) {
		p.Errorf("%s: %q, and its shim is %s", name, facts, shimPID)
	}
	where := map[bool]string{false: "pane of", true: "window on"}[facts[2] == "1"]
	switch {
	case strings.HasPrefix(pane.Socket, p.dir+"/r/") && pane.Private:
		return where + " the team's server"
	case pane.Socket == p.person && !pane.Private && (pane.WindowID == p.window) == (where == "pane of"):
		return where + " the person's server"
	}
	return "nowhere known"
}

// parent returns the pid of a process's parent.
func parent(t *testing.T, pid string) string {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return f[1]
}

// TestWhereTeammatesRun checks that the requested place and the person's place decide where a
// teammate runs. A request for an impossible place is refused and leaves nothing behind.
func TestWhereTeammatesRun(t *testing.T) {
	p := newPlaces(t)
	gone := []string{"TMUX=" + p.dir + "/nobody,1,0", "TMUX_PANE=%0"}
	const (
		splitOwn, windowOwn       = "pane of the team's server", "window on the team's server"
		splitPerson, windowPerson = "pane of the person's server", "window on the person's server"
		refused                   = ""
	)
	places := map[string][]string{"outside": nil, "inside": p.tmux, "gone": gone}
	home := p.env
	for i, c := range []struct{ from, flags, want string }{
		{"outside", "", splitOwn},
		{"outside", "--backend tmux", splitOwn},
		{"outside", "--split", splitOwn},
		{"outside", "--window", windowOwn},
		{"outside", "--session", splitOwn},
		{"inside", "", splitPerson},
		{"inside", "--split", splitPerson},
		{"inside", "--window", windowPerson},
		{"inside", "--session", splitOwn},
		{"gone", "", splitOwn},
		{"gone", "--session", splitOwn},
		{"gone", "--split", refused},
		{"gone", "--window", refused},
		{"outside", "--backend pty", "pty"},
		{"inside", "--backend pty", "pty"},
		{"outside", "--backend in-process", "in-process"},
	} {
		name := "m" + strconv.Itoa(i)
		what := c.from + " tmux: spawn " + c.flags
		p.env = append(home[:len(home):len(home)], places[c.from]...)
		args := append([]string{p.exe, "spawn", name, "--worktree", "none", "--restart", "never", "--json"}, strings.Fields(c.flags)...)
		if c.want != "in-process" {
			args = append(args, "--", "sleep", "1000")
		}
		_, err := p.try(args...)
		if c.want == refused {
			if exitCode(err) != 7 || len(p.members()) != 0 {
				t.Errorf("%s: %v, and there are %v", what, err, p.members())
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got := p.of(p.state(name, team.Running)); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
		p.teamctl("kill", name, "--force")
	}
	p.env = home
}

// TestModePlanIsPlanModeRequired checks that a member that must plan first is in mode plan, and
// that the roster for other programs marks no other member.
func TestModePlanIsPlanModeRequired(t *testing.T) {
	r := newFaultRig(t)
	for name, mode := range map[string]string{"planner": "plan", "editor": "acceptEdits", "plain": "default"} {
		var out struct {
			Members []map[string]any
		}
		args := []string{"spawn", name, "--worktree", "none", "--backend", "pty", "--permission-mode", mode, "--json", "--", "sleep", "1000"}
		if err := json.Unmarshal([]byte(r.teamctl(args...)), &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Members) != 1 || out.Members[0]["plan_mode_required"] != (mode == "plan") {
			t.Errorf("%s: %v", mode, out)
		}
		cfg, err := team.ReadConfig(r.layout.Config())
		if err != nil {
			t.Fatal(err)
		}
		found := errors.New("not on the roster")
		for _, m := range cfg.Members {
			if m.Name != name {
				continue
			}
			found = nil
			if m.PlanModeRequired == nil || *m.PlanModeRequired != (mode == "plan") || mode == "plan" && string(m.Mode) != mode {
				t.Errorf("%s: %+v", mode, m)
			}
		}
		if found != nil {
			t.Errorf("%s: %v", name, found)
		}
	}
}
