package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/teamctl/teamctl/backends"
)

// Group is a set of processes that the kernel keeps together (a control group,
// internal/cgroup): no process leaves it by forking, by a new session or by
// clearing its environment.
type Group interface {
	// PIDs returns the processes in it, except zombies. If the group no longer
	// exists the error is fs.ErrNotExist.
	PIDs() ([]int, error)
	// Freeze stops or resumes all of them.
	Freeze(ctx context.Context, on bool) error
	// Kill sends SIGKILL to all of them at once.
	Kill() error
}

// thawWithin limits the thawing before a tree is ended.
const thawWithin = 2 * time.Second

// thaw resumes a paused tree: a frozen process handles no SIGTERM.
func (k *killer) thaw(ctx context.Context) {
	if k.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawWithin)
	defer cancel()
	_ = k.group.Freeze(ctx, false) // SIGKILL also reaches a frozen process
}

// grouped returns the living processes of the group. It omits detached
// processes and their descendants, which belong to no tree wherever they were
// started, and the caller.
func (k *killer) grouped() ([]backends.ProcID, error) {
	if k.group == nil {
		return nil, nil
	}
	pids, err := k.group.PIDs()
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(pids) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	k.spared = false
	var out []backends.ProcID
	d := detachment{in: map[int]bool{}, known: map[int]bool{}}
	for _, pid := range pids {
		d.in[pid] = true
	}
	for _, pid := range pids {
		in, err := stat(pid)
		switch {
		case errors.Is(err, ErrGone) || err == nil && in.dead:
		case err != nil:
			return nil, err
		case pid == os.Getpid() || d.above(pid):
			k.spared = true
		default:
			out = append(out, backends.ProcID{BootID: boot, PID: pid, StartTicks: in.start})
		}
	}
	return out, nil
}

// killGroup ends the group at once, unless it contains a process that must not
// be ended.
func (k *killer) killGroup() {
	if k.group == nil {
		return
	}
	if _, err := k.grouped(); err == nil && !k.spared {
		_ = k.group.Kill() // if it fails, the signals of the phase end the processes one by one
	}
}

// detachment determines which processes of a group are detached, or descend
// from a detached one in it. Ancestors outside the group do not count: an
// agent's shim is below the team's tmux server, which is itself detached.
type detachment struct{ in, known map[int]bool }

func (d detachment) above(pid int) bool {
	if !d.in[pid] {
		return false
	}
	if v, ok := d.known[pid]; ok {
		return v
	}
	v := isDetached(pid)
	if in, err := stat(pid); !v && err == nil {
		d.known[pid] = false // a cycle, caused by pids reused during the scan, ends here
		v = d.above(in.ppid)
	}
	d.known[pid] = v
	return v
}
