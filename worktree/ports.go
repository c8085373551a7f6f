package worktree

import (
	"context"
	"hash/fnv"
	"strconv"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Ports of a worktree: each has a range of its own, below the ephemeral ports
// of the system, so that the servers of two agents do not collide.
const (
	PortCount = 10
	portFirst = 20000
	portLast  = 30000 // exclusive
)

// Environment variables that describe a worktree to its processes.
const (
	EnvPortBase  = "TEAMCTL_PORT_BASE"
	EnvPortCount = "TEAMCTL_PORT_COUNT"
	EnvWorktree  = "TEAMCTL_WORKTREE"
	EnvMainTree  = "TEAMCTL_REPO"
)

// PortBase returns the first port of the worktree's range, which is fixed for
// the life of the worktree. It is chosen so that no other worktree of the
// repository has it and its ports are free at that time.
func (r *Repo) PortBase(ctx context.Context, path string) (int, error) {
	t, err := r.tree(path)
	if err == nil {
		err = t.notMain("choose ports")
	}
	if err != nil {
		return 0, err
	}
	if rec := t.recorded(); rec.Ports > 0 {
		return rec.Ports, nil
	}
	l, err := r.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Unlock() }()
	admins, err := r.admins()
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, a := range admins {
		taken[tree{dir: a}.recorded().Ports] = true
	}
	const slots = (portLast - portFirst) / PortCount
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.at))
	for i := range slots {
		base := portFirst + (int(h.Sum32()%slots)+i)%slots*PortCount
		if taken[base] || !portsFree(base) {
			continue
		}
		rec := t.recorded()
		rec.Ports = base
		if rec.Created.IsZero() {
			rec.Created = time.Now()
		}
		if err := t.record(rec); err != nil {
			return 0, noSpace(err)
		}
		return base, nil
	}
	return 0, team.Errorf(team.CodeLimit, "no %d consecutive free ports between %d and %d", PortCount, portFirst, portLast).WithReason(team.ReasonNoPorts)
}

// portsFree tries to bind each port. It uses two system calls instead of
// package net; nothing is sent over a network.
func portsFree(base int) bool {
	for p := base; p < base+PortCount; p++ {
		if !portFree(p) {
			return false
		}
	}
	return true
}

func portFree(port int) bool {
	syscall.ForkLock.RLock() // keep a git started now from inheriting it
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(fd) }()
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil
}

// Environ returns the environment variables for the processes of a worktree.
func (r *Repo) Environ(path string, base int) map[string]string {
	return map[string]string{
		EnvPortBase: strconv.Itoa(base), EnvPortCount: strconv.Itoa(PortCount), EnvWorktree: path, EnvMainTree: r.root,
	}
}
