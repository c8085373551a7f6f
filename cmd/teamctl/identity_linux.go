package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/tmux"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/procfs"
	"github.com/teamctl/teamctl/internal/regular"
	runs "github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// maxAncestors bounds the walk up the process tree. There is no cycle, but a process may exit and
// its pid be reused during the walk.
const maxAncestors = 64

// startedBy returns the id of the team's member that this process descends from, or "".
//
// A process can change its environment, its session and, by ending its parent, its ancestors.
// It cannot change its control group, and the shim of its member adopts it; both decide before the
// environment of an ancestor does. The walk ends at a tmux server of a team, below which a person's
// shell runs whoever ran the first command that needed one, and at a supervisor: what runs directly
// below that is a command of the person's, such as a hook, or was started by a member that runs in
// the supervisor's process.
func startedBy(l team.Layout) string { return memberAbove(l, true) }

// heldBy is startedBy restricted to members that teamctl runs. A program that has joined belongs
// to the person, although its children inherit the member's name.
func heldBy(l team.Layout) string { return memberAbove(l, false) }

// memberAbove is startedBy; named reports whether a name in an ancestor's environment counts.
func memberAbove(l team.Layout, named bool) string {
	if id := memberOfGroup(l); id != "" {
		return id
	}
	known, servers := memberProcs(l), serversOf(l.Home)
	buf := make([]byte, 16<<10)
	pid, below := os.Getppid(), os.Getpid()
	for range maxAncestors {
		if pid <= 1 {
			return ""
		}
		id, parent, err := proc.IdentifyBelow(pid)
		if err != nil {
			return "" // exited
		}
		if member, ok := known[id]; ok {
			return member
		}
		env, err := environ.Read(pid, buf)
		if err != nil {
			return "" // of another user
		}
		if of, ok := servers.supervisor(pid); ok {
			return inProcessAbove(of, below)
		}
		if servers.terminals[id] && variable(env, team.EnvDetached) == "1" {
			return ""
		}
		if named {
			member := variable(env, team.EnvAgentID)
			if _, key, ok := team.ParseAgentID(member); ok && key == l.Key && sameDir(variable(env, team.EnvHome), l.Home.Dir) {
				return member
			}
		}
		pid, below = parent, pid
	}
	return ""
}

// inProcess names whoever started a process below a supervisor: its members share one process.
const inProcess = "a member that runs in-process"

// inProcessAbove returns inProcess if a child of a supervisor was started by a member that runs in
// the supervisor's process. The environment of such a child is not evidence, since the member
// chooses it: only commands that the supervisor has recorded as its user's are the user's.
func inProcessAbove(l team.Layout, child int) string {
	if runs.BookOf(l).OfPerson(variable(environ.Of(child, nil), team.EnvCommand)) {
		return ""
	}
	return inProcess
}

// memberOfGroup returns the member in whose control group this process is, or "".
func memberOfGroup(l team.Layout) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		_, rest, ok := strings.Cut(strings.TrimSpace(line), "/teamctl/"+l.Key+"/")
		if !ok {
			continue
		}
		leaf, _, _ := strings.Cut(rest, "/")
		if runs.GroupOfAgent(leaf) {
			return inProcess // a member in a terminal keeps its commands in its own group
		}
		i := strings.LastIndexByte(leaf, '-') // a generation follows
		if i <= 0 {
			continue
		}
		if _, err := os.Stat(string(l.Bundle(leaf[:i]))); err == nil {
			return team.AgentID(leaf[:i], l.Key)
		}
	}
	return ""
}

// memberProcs returns the shims and agents of the team's newest generations, and the process that
// runs the lead's conversation, with the id of their member.
func memberProcs(l team.Layout) map[backends.ProcID]string {
	bundles, err := os.ReadDir(l.Members())
	if err != nil {
		return nil
	}
	known := map[backends.ProcID]string{}
	for _, d := range bundles {
		p, err := bundle.ReadProc(l.Bundle(d.Name()), "")
		if err != nil || p.Shim == p.Agent { // an in-process member: the process is the supervisor
			continue
		}
		known[p.Shim], known[p.Agent] = team.AgentID(d.Name(), l.Key), team.AgentID(d.Name(), l.Key)
	}
	if id, ok := leadProcess(l); ok {
		known[id] = team.AgentID(team.LeadName, l.Key)
	}
	return known
}

// servers are the processes of the teams of a home directory that start others.
type servers struct {
	supervisors map[int]team.Layout      // by pid
	terminals   map[backends.ProcID]bool // tmux servers
}

// serversOf returns what is recorded of supervisors and tmux servers. One that is an ancestor
// recorded itself before it started anything.
func serversOf(home team.Home) servers {
	s := servers{supervisors: map[int]team.Layout{}, terminals: map[backends.ProcID]bool{}}
	teams, err := os.ReadDir(home.TeamsDir())
	if err != nil {
		return s
	}
	for _, d := range teams {
		l := home.Team(d.Name())
		if data, err := regular.ReadFile(l.SupervisorPID()); err == nil {
			pid, _, err := team.ParseSupervisorPID(data)
			if _, other := s.supervisors[pid]; err == nil && !other {
				s.supervisors[pid] = l
			}
		}
		if id, ok := tmux.Recorded(l); ok {
			s.terminals[id] = true
		}
	}
	return s
}

// supervisor returns the team whose supervisor has the pid.
func (s servers) supervisor(pid int) (team.Layout, bool) {
	l, ok := s.supervisors[pid]
	return l, ok && slices.Contains(procfs.Args(pid), "supervise") // and no process that has its number now
}

// variable returns the value of a variable in a process's environment. The first of several entries
// with the same name counts, as for getenv.
func variable(env []byte, name string) string {
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(name)); ok && len(value) > 0 && value[0] == '=' {
			return string(value[1:])
		}
	}
	return ""
}

// sameDir reports whether two paths lead to the same directory.
func sameDir(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(ia, ib)
}

// leadProcess returns the process that runs the lead's conversation.
func leadProcess(l team.Layout) (id backends.ProcID, ok bool) {
	data, err := regular.ReadFile(l.LeadProcess())
	return id, err == nil && json.Unmarshal(data, &id) == nil
}
