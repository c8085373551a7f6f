package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teamctl/teamctl/team"
)

// Group is one generation's control group. Its methods are safe for concurrent
// use.
type Group struct{ path string }

// attempts at making a group while its parents are being removed
const attempts = 5

// Create makes the group teamctl/<name> (see Name), with the available
// controllers. It reuses an empty group of the same name.
func Create(name string) (*Group, error) { return theMachine().create(name) }

func (m machine) create(name string) (*Group, error) {
	teamDir, leaf, err := splitName(name)
	if err != nil {
		return nil, err
	}
	b, err := m.find()
	if err != nil {
		return nil, err
	}
	var want []string
	for _, c := range controllers {
		if b.offers(c) {
			want = append(want, c)
		}
	}
	top := filepath.Join(b.dir, subtree)
	sweep(filepath.Join(top, teamDir))
	g := &Group{path: filepath.Join(top, teamDir, leaf)}
	for range attempts {
		err = m.makeAll([]string{b.dir, top, filepath.Join(top, teamDir), g.path}, want)
		if !errors.Is(err, fs.ErrNotExist) {
			break // otherwise the last group of the team has just ended, and its directory with it
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create control group %s: %w", name, err)
	}
	if on, err := g.Populated(); err == nil && on {
		return nil, fmt.Errorf("create control group %s: it holds processes", g.path)
	}
	return g, nil
}

// makeAll makes every directory but the first, which exists, each with the
// controllers of its parent.
func (m machine) makeAll(dirs []string, want []string) error {
	for i, d := range dirs[1:] {
		handDown(dirs[i], want)
		if err := m.mkdir(d); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// sweep removes empty groups of the team that are older than any start takes;
// shims killed between making a group and recording it have left them. A newer
// one may be that of an agent that is just being started, even with the same
// name: two homes may contain the same team.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if p := filepath.Join(dir, e.Name()); e.IsDir() && old(p) {
			_ = unix.Rmdir(p) // fails while it contains a process
		}
	}
}

// startWithin is longer than a group stays empty before its agent enters it,
// even on a slow machine.
const startWithin = 10 * time.Minute

func old(dir string) bool {
	fi, err := os.Stat(dir)
	return err == nil && time.Since(fi.ModTime()) > startWithin
}

// Sweep removes groups that a team has left behind; it keeps those with a
// living process.
func Sweep(team string) {
	b, err := theMachine().find()
	if _, _, nerr := splitName(team + "/x"); err != nil || nerr != nil {
		return
	}
	dir := filepath.Join(b.dir, subtree, team)
	sweep(dir)
	if unix.Rmdir(dir) == nil {
		_ = unix.Rmdir(filepath.Dir(dir))
	}
}

// handDown passes controllers on to a directory's children. A refused one is
// missing in the group, and SetLimits reports that.
func handDown(dir string, want []string) {
	have := strings.Fields(read(dir, "cgroup.subtree_control"))
	for _, c := range want {
		if !slices.Contains(have, c) {
			_ = write(dir, "cgroup.subtree_control", "+"+c)
		}
	}
}

// Open returns the group at a path returned by Path. If it no longer exists the
// error is fs.ErrNotExist; a path that is not a group of teamctl is an error.
func Open(path string) (*Group, error) {
	rest, ok := strings.CutPrefix(path, "/")
	i := strings.LastIndex("/"+rest, "/"+subtree+"/")
	if !ok || i < 0 || path != filepath.Clean(path) {
		return nil, fmt.Errorf("open control group %q: not one of teamctl's", path)
	}
	if _, _, err := splitName(path[i+len(subtree)+2:]); err != nil {
		return nil, fmt.Errorf("open control group %q: not one of teamctl's", path)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return nil, fmt.Errorf("open control group: %w", &fs.PathError{Op: "statfs", Path: path, Err: err})
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("open control group %q: not on a cgroup v2 hierarchy", path)
	}
	return &Group{path: path}, nil
}

// Find returns the group that Create would make for the name, if it exists.
func Find(name string) (*Group, error) { return theMachine().group(name) }

func (m machine) group(name string) (*Group, error) {
	teamDir, leaf, err := splitName(name)
	if err != nil {
		return nil, err
	}
	b, err := m.find()
	if err != nil {
		return nil, err
	}
	return Open(filepath.Join(b.dir, subtree, teamDir, leaf))
}

// Path returns the group's directory, for Open.
func (g *Group) Path() string { return g.path }

// FD opens the directory for SysProcAttr.CgroupFD: a process started with it is
// in the group from its first instruction on. The caller closes it.
func (g *Group) FD() (*os.File, error) {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open control group: %w", &fs.PathError{Op: "open", Path: g.path, Err: err})
	}
	return os.NewFile(uintptr(fd), g.path), nil
}

// cpuPeriod is the kernel's default, in microseconds.
const cpuPeriod = 100_000

// SetLimits sets the limits for which there is a controller and reports which
// these are. The memory limit includes swap: exceeding it ends a process
// instead of slowing down the machine.
func (g *Group) SetLimits(l team.Limits) (Applied, error) {
	var a Applied
	var errs []error
	set := func(on bool, file, value string) bool {
		if !on {
			return false
		}
		err := write(g.path, file, value)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		return err == nil
	}
	a.Memory = set(l.MemoryBytes > 0, "memory.max", strconv.FormatInt(l.MemoryBytes, 10))
	if a.Memory {
		set(true, "memory.swap.max", "0")
	}
	a.PIDs = set(l.PIDs > 0, "pids.max", strconv.FormatInt(l.PIDs, 10))
	a.CPU = set(l.CPUPercent > 0, "cpu.max", strconv.Itoa(l.CPUPercent*cpuPeriod/100)+" "+strconv.Itoa(cpuPeriod))
	return a, errors.Join(errs...)
}

// PIDs returns the processes in the group and in groups made below it, except
// zombies.
func (g *Group) PIDs() ([]int, error) {
	var pids []int
	err := filepath.WalkDir(g.path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != g.path: // removed meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir():
			pids = append(pids, pidsOf(p)...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list control group: %w", err)
	}
	return pids, nil
}

func pidsOf(dir string) (pids []int) {
	for _, f := range strings.Fields(read(dir, "cgroup.procs")) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 { // 0: in another pid namespace
			pids = append(pids, pid)
		}
	}
	return pids
}

// Kill sends SIGKILL to every process in the group and below it, in one step:
// none escapes by forking. It does not wait.
func (g *Group) Kill() error {
	err := write(g.path, "cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(g.path); serr == nil {
			return fmt.Errorf("%w: the kernel has no cgroup.kill", ErrUnsupported)
		}
	}
	return err
}

// Populated reports whether the group, or a group below it, contains a living
// process.
func (g *Group) Populated() (bool, error) {
	v, err := g.event("populated")
	return v == 1, err
}

// Frozen reports whether every process of the group is frozen.
func (g *Group) Frozen() (bool, error) {
	v, err := g.event("frozen")
	return v == 1, err
}

// Freeze freezes or thaws every process of the group, and returns when that is
// done. A process that hangs in the kernel can prevent it: ctx limits the wait,
// and then the group is thawed again.
func (g *Group) Freeze(ctx context.Context, on bool) error {
	value, want := "0", int64(0)
	if on {
		value, want = "1", 1
	}
	f, err := os.Open(filepath.Join(g.path, "cgroup.events"))
	if err != nil {
		return fmt.Errorf("freeze control group: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := write(g.path, "cgroup.freeze", value); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: the kernel cannot freeze a cgroup", ErrUnsupported)
		}
		return err
	}
	for {
		// The kernel wakes a poll of the file on a change since its last read.
		if v, err := parseEvent(f, "frozen"); err != nil || v == want {
			return err
		}
		if err := ctx.Err(); err != nil {
			if on {
				_ = write(g.path, "cgroup.freeze", "0")
			}
			return fmt.Errorf("freeze control group: timed out: %w", err)
		}
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, 50)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("freeze control group: %w", err)
		}
	}
}

// OOMKills counts the processes of the group that the kernel has killed for
// lack of memory. It is 0 without the memory controller.
func (g *Group) OOMKills() (int64, error) {
	f, err := os.Open(filepath.Join(g.path, "memory.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read control group: %w", err)
	}
	defer func() { _ = f.Close() }()
	return parseEvent(f, "oom_kill")
}

func (g *Group) event(key string) (int64, error) {
	f, err := os.Open(filepath.Join(g.path, "cgroup.events"))
	if err != nil {
		return 0, fmt.Errorf("read control group: %w", err)
	}
	defer func() { _ = f.Close() }()
	return parseEvent(f, key)
}

// parseEvent returns one number of a flat keyed file.
func parseEvent(f *os.File, key string) (int64, error) {
	var buf [1024]byte
	n, err := f.ReadAt(buf[:], 0)
	if n == 0 && err != nil {
		return 0, fmt.Errorf("read control group: %w", err)
	}
	for l := range strings.Lines(string(buf[:n])) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), " "); ok && k == key {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, nil
}

// Remove removes the group, with the groups made in it by its processes, once
// it is empty; while it contains a living process, it returns an error. The
// parent directories are removed with their last group. A group that no longer
// exists is not an error.
func (g *Group) Remove() error {
	var dirs []string
	err := filepath.WalkDir(g.path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	for _, d := range slices.Backward(dirs) {
		if rerr := rmdir(d); rerr != nil && !errors.Is(rerr, unix.ENOENT) {
			err = errors.Join(err, &fs.PathError{Op: "rmdir", Path: d, Err: rerr})
		}
	}
	if err != nil {
		return fmt.Errorf("remove control group: %w", err)
	}
	up := filepath.Dir(g.path)
	if unix.Rmdir(up) == nil {
		_ = unix.Rmdir(filepath.Dir(up)) // others may remain
	}
	return nil
}

// dyingWithin limits the wait for processes that are dead but have not left
// yet.
const dyingWithin = 500 * time.Millisecond

// rmdir removes one directory. A process leaves its group a moment after its
// death becomes visible.
func rmdir(dir string) error {
	deadline := time.Now().Add(dyingWithin)
	for {
		// Opened before the attempt, so that no change after it is missed.
		f, ferr := os.Open(filepath.Join(dir, "cgroup.events"))
		if ferr == nil {
			_, _ = parseEvent(f, "populated")
		}
		err := unix.Rmdir(dir)
		left := time.Until(deadline)
		again := errors.Is(err, unix.EBUSY) && ferr == nil && left > 0 && len(pidsOf(dir)) == 0
		if again {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}, int(min(left, 50*time.Millisecond).Milliseconds()))
		}
		if ferr == nil {
			_ = f.Close()
		}
		if !again {
			return err
		}
	}
}

// Leave moves the calling process out of an agent's group, if it is in one: a
// supervisor started by an agent's command must not be killed or paused with
// that agent.
func Leave() error { return theMachine().leave(os.Getpid()) }

func (m machine) leave(pid int) error {
	own, err := m.own()
	if err != nil {
		return nil // in no group
	}
	i := strings.Index(own+"/", "/"+subtree+"/")
	if i <= 0 {
		return nil
	}
	err = write(own[:i], "cgroup.procs", strconv.Itoa(pid))
	if err == nil {
		return nil
	}
	// A group that enables controllers for its children accepts no process: use a group
	// next to the agents'.
	aside := filepath.Join(own[:i], subtree, "supervisors")
	if merr := m.mkdir(aside); merr != nil && !errors.Is(merr, fs.ErrExist) {
		return fmt.Errorf("leave the agent's control group: %w", errors.Join(err, merr))
	}
	if err := write(aside, "cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("leave the agent's control group: %w", err)
	}
	return nil
}

// Contained reports whether this process is in the group of an agent or of a
// command, in which its children must stay.
func Contained() bool { return theMachine().contained() }

func (m machine) contained() bool {
	own, err := m.own()
	if err != nil {
		return false
	}
	_, below, ok := strings.Cut(own+"/", "/"+subtree+"/")
	_, leaf, _ := strings.Cut(strings.TrimSuffix(below, "/"), "/") // none for the group of supervisors, see leave
	return ok && leaf != ""
}

// write writes to one of the kernel's files, which it never creates.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write control group: %w", err)
	}
	_, err = f.WriteString(value)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write control group: %w", err)
	}
	return nil
}
