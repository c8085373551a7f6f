package proc

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/environ"
	"github.com/teamctl/teamctl/team"
)

// EnvDetached, with the value 1, marks a process that belongs to no tree.
const EnvDetached = team.EnvDetached

// ErrGone is the error for a process that no longer exists, or whose pid now
// belongs to another one.
var ErrGone = errors.New("process has exited")

// info is one line of the process table.
type info struct {
	pid, ppid, pgrp, tpgid int
	start                  uint64
	dead                   bool // zombie or exiting
	bare                   bool // without memory, and so without an environment: a kernel thread
}

// Identify returns the identity of the process that currently has the pid. A
// dead one is ErrGone.
func Identify(pid int) (backends.ProcID, error) {
	id, _, err := IdentifyBelow(pid)
	return id, err
}

// IdentifyBelow is Identify, and returns the parent of the process as well.
func IdentifyBelow(pid int) (id backends.ProcID, parent int, err error) {
	if pid <= 0 {
		return backends.ProcID{}, 0, ErrGone
	}
	boot, err := bootID()
	if err != nil {
		return backends.ProcID{}, 0, err
	}
	in, err := stat(pid)
	if err != nil {
		return backends.ProcID{}, 0, err
	}
	if in.dead {
		return backends.ProcID{}, 0, ErrGone
	}
	return backends.ProcID{BootID: boot, PID: pid, StartTicks: in.start}, in.ppid, nil
}

// Self returns the identity of the calling process.
func Self() (backends.ProcID, error) { return Identify(os.Getpid()) }

// IdentifyAny returns the identity of the process that currently has the pid,
// even if it is dead: a zombie keeps its pid until it is reaped.
func IdentifyAny(pid int) (backends.ProcID, error) {
	boot, err := bootID()
	if err != nil {
		return backends.ProcID{}, err
	}
	in, err := stat(pid)
	return backends.ProcID{BootID: boot, PID: pid, StartTicks: in.start}, err
}

// Alive reports whether the process is alive. If its state cannot be read (for
// example for lack of descriptors) it returns true: death needs evidence.
func Alive(id backends.ProcID) bool {
	_, err := lookup(id)
	return !errors.Is(err, ErrGone)
}

// Zombie reports whether the process has ended and its parent has not reaped
// it.
func Zombie(id backends.ProcID) bool {
	in, err := stat(id.PID)
	return err == nil && in.dead && in.start == id.StartTicks
}

// lookup returns the table's line for id; the error is ErrGone if the pid no
// longer belongs to the same living process.
func lookup(id backends.ProcID) (info, error) {
	if id.PID <= 0 {
		return info{}, ErrGone
	}
	boot, err := bootID()
	if err != nil {
		return info{}, err
	}
	if boot != id.BootID {
		return info{}, ErrGone
	}
	in, err := stat(id.PID)
	if err != nil {
		return info{}, err
	}
	if in.dead || in.start != id.StartTicks {
		return info{}, ErrGone
	}
	return in, nil
}

// Foreground returns the foreground process group of the terminal of id, or 0
// without a terminal.
func Foreground(id backends.ProcID) (pgrp int, err error) {
	in, err := lookup(id)
	return max(in.tpgid, 0), err
}

// Children returns the living direct children of the calling process that do
// not belong to a detached tree.
func Children() ([]backends.ProcID, error) {
	self := os.Getpid()
	return list(func(in info) bool { return in.ppid == self && !isDetached(in.pid) })
}

// ByGeneration lists the living processes of this user that were executed with
// TEAMCTL_GENERATION=gen, wherever they are in the tree, except the caller. It
// returns nil if the process table cannot be read.
func ByGeneration(gen string) []backends.ProcID {
	s, err := takeSight()
	if err != nil {
		return nil
	}
	return s.ofGeneration(gen)
}

// Generations returns the generations for which ByGeneration would find a
// process, with a single scan.
func Generations() (map[string]bool, error) {
	s, err := takeSight()
	if err != nil {
		return nil, err
	}
	gens := make(map[string]bool, len(s.gens))
	for gen := range s.gens {
		if len(s.ofGeneration(gen)) > 0 {
			gens[gen] = true
		}
	}
	return gens, nil
}

// list returns the living processes of the process table that keep accepts.
func list(keep func(info) bool) ([]backends.ProcID, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	tab, err := table()
	if err != nil {
		return nil, err
	}
	var out []backends.ProcID
	for _, in := range tab {
		if !in.dead && keep(in) {
			out = append(out, backends.ProcID{BootID: boot, PID: in.pid, StartTicks: in.start})
		}
	}
	return out, nil
}

// isDetached reports whether a process is marked as detached.
func isDetached(pid int) bool {
	_, detached := marks(environ.Of(pid, nil))
	return detached
}

// SignalName returns the usual name of a signal, such as "SIGKILL".
func SignalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return s.String()
}
