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
// internal/cgroup): none leaves it by forking, by a new session or by clearing its
// environment.
type Group interface {
	// PIDs are the processes in it, zombies excepted. One that does not exist any
	// more is fs.ErrNotExist.
	PIDs() ([]int, error)
	// Freeze stops all of them or lets all go on.
	Freeze(ctx context.Context, on bool) error
	// Kill sends SIGKILL to all of them at once.
	Kill() error
}

// thawWithin bounds the thawing before a tree is asked to end.
const thawWithin = 2 * time.Second

// thaw lets a paused tree go on: a frozen process handles no SIGTERM.
func (k *killer) thaw(ctx context.Context) {
	if k.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawWithin)
	defer cancel()
	_ = k.group.Freeze(ctx, false) // SIGKILL reaches a frozen process as well
}

// grouped are the living processes of the group. A detached one, and what descends
// from it, belongs to nobody's tree wherever it was started; so does the caller.
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

// killGroup ends the group at once, unless somebody is in it who is not to be ended.
func (k *killer) killGroup() {
	if k.group == nil {
		return
	}
	if _, err := k.grouped(); err == nil && !k.spared {
		_ = k.group.Kill() // what it cannot do, the signals of the phase do one by one
	}
}

// detachment tells which processes of a group are detached, or below a detached one
// in it. Those outside say nothing: an agent's shim stands below the team's tmux
// server, which is detached itself.
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
		d.known[pid] = false // a circle, made of pids that were reused while we looked, ends here
		v = d.above(in.ppid)
	}
	d.known[pid] = v
	return v
}
