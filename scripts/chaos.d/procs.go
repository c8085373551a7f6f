package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/procfs"
	"github.com/teamctl/teamctl/team"
)

// process is one process of the team: its environment names our home.
type process struct {
	id         backends.ProcID
	args       []string
	member     string
	generation string // empty for what belongs to no agent
}

func (p process) String() string {
	return fmt.Sprintf("%d %s", p.id.PID, strings.Join(p.args, " "))
}

// processes lists every living process of the team but this one.
func (w *world) processes() ([]process, error) {
	pids, err := procfs.PIDs()
	if err != nil {
		return nil, err
	}
	mark := team.EnvHome + "=" + w.env.Home.Dir
	var out []process
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		raw := environ.Of(pid, nil)
		if !strings.Contains(string(raw), mark) {
			continue
		}
		id, err := proc.Identify(pid)
		if errors.Is(err, proc.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		env := strings.Split(string(raw), "\x00")
		if !slices.Contains(env, mark) {
			continue
		}
		p := process{id: id, args: procfs.Args(pid)}
		if !slices.Contains(env, team.EnvDetached+"=1") {
			for _, kv := range env {
				if v, ok := strings.CutPrefix(kv, team.EnvGen+"="); ok {
					p.generation = v
				}
				if v, ok := strings.CutPrefix(kv, team.EnvAgentName+"="); ok {
					p.member = v
				}
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// with lists the processes that have the word among their arguments.
func with(ps []process, word string) []process {
	return slices.DeleteFunc(slices.Clone(ps), func(p process) bool { return !slices.Contains(p.args, word) })
}

// supervisor is the process that holds the team's lock, by its pid file.
func (w *world) supervisor() (backends.ProcID, bool) {
	b, err := os.ReadFile(w.team.Layout.SupervisorPID())
	if err != nil {
		return backends.ProcID{}, false
	}
	pid, _, err := team.ParseSupervisorPID(b)
	if err != nil {
		return backends.ProcID{}, false
	}
	id, err := proc.Identify(pid)
	if err != nil || !w.ours(id) {
		return backends.ProcID{}, false
	}
	return id, true
}

// ours makes sure of a process before it is signalled.
func (w *world) ours(id backends.ProcID) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", id.PID))
	return err == nil && strings.Contains(string(raw), team.EnvHome+"="+w.env.Home.Dir+"\x00") && proc.Alive(id)
}

// signal reaches exactly this process, if it is one of ours.
func (w *world) signal(id backends.ProcID, s syscall.Signal) error {
	if !w.ours(id) {
		return proc.ErrGone
	}
	return proc.Signal(id, s)
}

// facts of a member's newest generation on disk.
func (w *world) facts(name string) (backends.Proc, error) {
	return bundle.ReadProc(w.team.Layout.Bundle(name), "")
}

// tmuxServer returns the private server, from the record of a member's pane.
func (w *world) tmuxServer() (backends.ProcID, bool) {
	for _, a := range w.members {
		p, err := bundle.ReadPane(w.team.Layout.Bundle(a.name), "")
		if err != nil || p.ServerPID == 0 {
			continue
		}
		pr, err := w.facts(a.name)
		if err != nil {
			continue
		}
		id := backends.ProcID{BootID: pr.Shim.BootID, PID: p.ServerPID, StartTicks: p.ServerStart}
		if w.ours(id) {
			return id, true
		}
	}
	return backends.ProcID{}, false
}

// tmuxServers are the servers on the team's socket, whether it leads to them or not.
func (w *world) tmuxServers(ps []process) []process {
	return slices.DeleteFunc(with(ps, w.team.Layout.TmuxSocket()), func(p process) bool {
		s, err := procfs.Of(p.id.PID)
		return err != nil || s.Name != "tmux: server"
	})
}

// zombies returns dead children that a live process of ours has not reaped.
func (w *world) zombies(ps []process) []string {
	parents := map[int]string{os.Getpid(): "chaos"}
	for _, p := range ps {
		if len(p.args) == 0 {
			continue // it is exiting
		}
		if b := filepath.Base(p.args[0]); b == "teamctl" || strings.HasPrefix(b, "tmux") { // agents reap or not, as they like
			parents[p.id.PID] = p.String()
		}
	}
	pids, err := procfs.PIDs()
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, pid := range pids {
		s, err := procfs.Of(pid)
		if err != nil || s.State != 'Z' {
			continue
		}
		if who, ok := parents[s.Parent]; ok {
			out = append(out, fmt.Sprintf("zombie %d of %s", pid, who))
		}
	}
	return out
}

// descriptors counts what a process has open, and how much of it are terminals.
func descriptors(pid int) (all, ptys int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		all++
		if strings.HasSuffix(to, "/ptmx") {
			ptys++
		}
	}
	return all, ptys
}
