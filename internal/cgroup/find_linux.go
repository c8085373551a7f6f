package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is the source of the facts; tests use one made of files.
type machine struct {
	mountinfo string // /proc/self/mountinfo
	self      string // /proc/self/cgroup
	uid       int
	kernel    func() (major, minor int)
	mkdir     func(path string) error
	delegated func(path string) bool // by an extended attribute
}

func theMachine() machine {
	return machine{
		mountinfo: "/proc/self/mountinfo", self: "/proc/self/cgroup", uid: os.Getuid(),
		kernel: kernel, mkdir: func(p string) error { return os.Mkdir(p, 0o755) }, delegated: hasDelegate,
	}
}

// base is the directory in which the subtree is made.
type base struct {
	dir   string
	given bool // delegated as a whole: controllers may be passed on
}

// controllers lists the controllers required for limits.
var controllers = []string{"memory", "pids", "cpu"}

// Probe determines what is possible for this process.
func Probe() Support { return theMachine().probe() }

func (m machine) probe() Support {
	b, err := m.find()
	if err != nil {
		return Support{Why: err.Error()}
	}
	s := Support{Path: filepath.Join(b.dir, subtree)}
	s.Kill = m.has(b.dir, "cgroup.kill", 5, 14)
	s.Freeze = m.has(b.dir, "cgroup.freeze", 5, 2)
	var missing []string
	for _, c := range controllers {
		ok := b.offers(c)
		switch c {
		case "memory":
			s.Memory = ok
		case "pids":
			s.PIDs = ok
		case "cpu":
			s.CPU = ok
		}
		if !ok {
			missing = append(missing, c)
		}
	}
	var why []string
	if !s.Kill || !s.Freeze {
		why = append(why, "the kernel is older than 5.14")
	}
	if len(missing) > 0 {
		why = append(why, "no controller for "+strings.Join(missing, ", ")+": "+b.lack(missing))
	}
	s.Why = strings.Join(why, "; ")
	return s
}

// has reports whether a feature exists, by its file, or by the kernel's version
// if dir is the root of the hierarchy, which does not have the files.
func (m machine) has(dir, file string, major, minor int) bool {
	if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
		return true
	}
	if !isRoot(dir) {
		return false
	}
	a, b := m.kernel()
	return a > major || a == major && b >= minor
}

// isRoot reports whether dir is the real root of the hierarchy: only that has
// no type.
func isRoot(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "cgroup.type"))
	return errors.Is(err, os.ErrNotExist)
}

// find selects the base.
func (m machine) find() (base, error) {
	own, err := m.own()
	if err != nil {
		return base{}, err
	}
	// In a group of teamctl already: next to it, not in it.
	if i := strings.Index(own+"/", "/"+subtree+"/"); i > 0 {
		own = own[:i]
	}
	if up := filepath.Dir(own); !isRoot(own) && m.given(up) && usable(up) == nil && len(pidsOf(up)) == 0 {
		return base{up, true}, nil
	}
	if err := usable(own); err != nil {
		return base{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return base{own, m.given(own)}, nil
}

// own returns the directory of this process's cgroup.
func (m machine) own() (string, error) {
	root, at, err := m.mount()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(m.self)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for l := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "0::")
		if !ok {
			continue
		}
		path = strings.TrimSuffix(path, " (deleted)")
		rel, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(rel+"/", "../") || strings.HasPrefix(path+"/", "/../") {
			return "", fmt.Errorf("%w: cgroup %s of this process is outside the mount at %s", ErrUnsupported, path, at)
		}
		return filepath.Join(at, rel), nil
	}
	return "", fmt.Errorf("%w: this process is in no cgroup of the unified hierarchy", ErrUnsupported)
}

// mount returns where the unified hierarchy is mounted, and which part of it.
func (m machine) mount() (root, at string, err error) {
	text, err := os.ReadFile(m.mountinfo)
	if err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	for l := range strings.Lines(string(text)) {
		front, back, ok := strings.Cut(l, " - ")
		f, g := strings.Fields(front), strings.Fields(back)
		if ok && len(f) > 4 && len(g) > 0 && g[0] == "cgroup2" {
			return unescape(f[3]), unescape(f[4]), nil
		}
	}
	return "", "", fmt.Errorf("%w: no cgroup v2 hierarchy is mounted", ErrUnsupported)
}

// unescape decodes a path of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// usable returns why no group can be made in dir and entered from below it; nil
// if it can.
func usable(dir string) error {
	if t := read(dir, "cgroup.type"); strings.Contains(t, "thread") || strings.Contains(t, "invalid") {
		return fmt.Errorf("%s is a threaded cgroup", dir)
	}
	for _, f := range []string{"", "cgroup.procs"} {
		p := filepath.Join(dir, f)
		switch err := unix.Access(p, unix.W_OK); {
		case errors.Is(err, unix.EROFS):
			return fmt.Errorf("%s is mounted read-only", dir)
		case err != nil:
			return fmt.Errorf("%s is not writable: it is not delegated to this user", p)
		}
	}
	return nil
}

// given reports whether dir was delegated as a whole: systemd marks what it
// delegates, and a tree given to this user has a parent with another owner.
func (m machine) given(dir string) bool {
	if isRoot(dir) {
		return false
	}
	if m.delegated(dir) {
		return true
	}
	return m.uid != 0 && m.ours(dir) && !m.ours(filepath.Dir(dir))
}

func (m machine) ours(dir string) bool {
	var st unix.Stat_t
	return unix.Stat(dir, &st) == nil && int(st.Uid) == m.uid
}

// offers reports whether groups below the base can have a controller.
func (b base) offers(c string) bool {
	if slices.Contains(strings.Fields(read(b.dir, "cgroup.subtree_control")), c) {
		return true
	}
	return slices.Contains(strings.Fields(read(b.dir, "cgroup.controllers")), c) && b.given && len(pidsOf(b.dir)) == 0 &&
		unix.Access(filepath.Join(b.dir, "cgroup.subtree_control"), unix.W_OK) == nil
}

// lack returns why a controller is not offered.
func (b base) lack(missing []string) string {
	have := strings.Fields(read(b.dir, "cgroup.controllers"))
	for _, c := range missing {
		if slices.Contains(have, c) {
			return b.dir + " is not delegated to us, or holds processes itself (a service with Delegate=yes and DelegateSubgroup=supervisor has them)"
		}
	}
	return b.dir + " was given none"
}

func read(dir, file string) string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func kernel() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
}

func hasDelegate(dir string) bool {
	var v [8]byte
	for _, attr := range []string{"user.delegate", "trusted.delegate"} {
		if n, err := unix.Getxattr(dir, attr, v[:]); err == nil && string(v[:n]) == "1" {
			return true
		}
	}
	return false
}
