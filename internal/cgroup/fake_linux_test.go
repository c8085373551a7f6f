package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// tree is a hierarchy of plain files: mkdir creates the files that the kernel
// would create with a directory.
type tree struct {
	t    *testing.T
	root string
	m    machine
}

// newTree makes a hierarchy in which this process is in the cgroup own.
func newTree(t *testing.T, own string) *tree {
	dir := t.TempDir()
	f := &tree{t: t, root: filepath.Join(dir, "sys with space")}
	f.m = machine{
		mountinfo: filepath.Join(dir, "mountinfo"), self: filepath.Join(dir, "cgroup"), uid: os.Getuid(),
		kernel: func() (int, int) { return 6, 1 }, mkdir: f.mkdir, delegated: func(string) bool { return false },
	}
	f.put(f.m.mountinfo, "20 1 0:5 / / rw - ext4 /dev/x rw\n"+
		"31 20 0:9 / /sys/fs/cgroup/pids rw shared:1 - cgroup cgroup rw,pids\n"+
		"30 20 0:8 / "+strings.ReplaceAll(f.root, " ", `\040`)+" rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
	f.put(f.m.self, "5:pids:/elsewhere\n0::"+own+"\n")
	f.dir("/", "memory pids cpu io", "memory pids cpu", "1 2 3")
	f.remove("/", "cgroup.type", "cgroup.kill", "cgroup.freeze", "cgroup.events")
	return f
}

func (f *tree) put(path, text string) {
	f.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// dir makes a cgroup as it may exist beforehand.
func (f *tree) dir(path, controllers, down, procs string) string {
	f.t.Helper()
	d := filepath.Join(f.root, path)
	if err := os.MkdirAll(d, 0o700); err != nil {
		f.t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cgroup.type": "domain", "cgroup.controllers": controllers, "cgroup.subtree_control": down,
		"cgroup.procs": strings.ReplaceAll(procs, " ", "\n"), "cgroup.kill": "", "cgroup.freeze": "0",
		"cgroup.events": "populated 0\nfrozen 0\n",
	} {
		f.put(filepath.Join(d, name), text)
	}
	return d
}

func (f *tree) remove(path string, files ...string) {
	f.t.Helper()
	for _, n := range files {
		if err := os.Remove(filepath.Join(f.root, path, n)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// mkdir does what the kernel does: a child is offered the controllers that its
// parent passes on, and has their files.
func (f *tree) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	offer := strings.NewReplacer("+", "", "memorypidscpu", "memory pids cpu").Replace(read(filepath.Dir(path), "cgroup.subtree_control"))
	rel, err := filepath.Rel(f.root, path)
	if err != nil {
		return err
	}
	f.dir(rel, offer, "", "")
	for c, files := range map[string][]string{
		"memory": {"memory.max", "memory.swap.max", "memory.events"}, "pids": {"pids.max"}, "cpu": {"cpu.max"},
	} {
		for _, n := range files {
			if strings.Contains(offer, c) {
				f.put(filepath.Join(path, n), "")
			}
		}
	}
	return nil
}

func (f *tree) delegate(path string) {
	d := filepath.Join(f.root, path)
	f.m.delegated = func(p string) bool { return p == d }
}

// TestProbe checks where groups are made, and what they can do there.
func TestProbe(t *testing.T) {
	t.Parallel()
	all := Support{Kill: true, Freeze: true, Memory: true, PIDs: true, CPU: true}
	bare := Support{Kill: true, Freeze: true}
	for _, c := range []struct {
		name string
		own  string
		make func(f *tree)
		want Support
		path string // of the base, below the root
		why  string
	}{
		{"a login session holds processes", "/user.slice/session-3.scope", func(f *tree) {
			f.dir("/user.slice", "memory pids cpu", "memory pids cpu", "")
			f.dir("/user.slice/session-3.scope", "memory pids cpu", "", "77")
		}, bare, "/user.slice/session-3.scope", "no controller for memory, pids, cpu"},
		{"delegated, with the supervisor in a group of its own", "/svc/supervisor", func(f *tree) {
			f.dir("/svc", "memory pids cpu", "", "")
			f.dir("/svc/supervisor", "", "", "77")
			f.delegate("/svc")
		}, all, "/svc", ""},
		{"delegated, but processes stand in the way", "/svc/supervisor", func(f *tree) {
			f.dir("/svc", "memory pids cpu", "", "12")
			f.dir("/svc/supervisor", "", "", "77")
			f.delegate("/svc")
		}, bare, "/svc/supervisor", "no controller"},
		{"the delegated group itself holds us", "/svc", func(f *tree) {
			f.dir("/svc", "memory pids cpu", "", "77")
			f.delegate("/svc")
		}, bare, "/svc", "holds processes itself"},
		{"delegated with one controller only", "/svc/supervisor", func(f *tree) {
			f.dir("/svc", "pids", "", "")
			f.dir("/svc/supervisor", "", "", "77")
			f.delegate("/svc")
		}, Support{Kill: true, Freeze: true, PIDs: true}, "/svc", "no controller for memory, cpu: "},
		{"inside an agent's group", "/svc/teamctl/demo/a-12345678", func(f *tree) {
			f.dir("/svc", "", "", "77")
			f.dir("/svc/teamctl/demo/a-12345678", "", "", "78")
		}, bare, "/svc", "was given none"},
		{"the root of a hierarchy that hands all down", "/", func(*tree) {}, all, "/", ""},
		{"the root of a hybrid hierarchy", "/", func(f *tree) { f.dir("/", "", "", "1"); f.remove("/", "cgroup.type", "cgroup.kill") },
			bare, "/", "was given none"},
		{"an old kernel", "/", func(f *tree) { f.m.kernel = func() (int, int) { return 5, 4 } },
			Support{Freeze: true, Memory: true, PIDs: true, CPU: true}, "/", "older than 5.14"},
		{"a threaded group", "/t", func(f *tree) { f.put(filepath.Join(f.dir("/t", "", "", ""), "cgroup.type"), "threaded\n") },
			Support{}, "", "threaded"},
		{"no v2 hierarchy", "/", func(f *tree) { f.put(f.m.mountinfo, "20 1 0:5 / / rw - ext4 /dev/x rw\n") },
			Support{}, "", "no cgroup v2 hierarchy is mounted"},
		{"no mountinfo", "/", func(f *tree) { f.m.mountinfo += "x" }, Support{}, "", "no such file"},
		{"outside of the namespace", "/../up", func(*tree) {}, Support{}, "", "outside the mount at"},
		{"not in the hierarchy", "/", func(f *tree) { f.put(f.m.self, "5:pids:/x\n") }, Support{}, "", "in no cgroup"},
		{"a directory that is gone", "/gone", func(*tree) {}, Support{}, "", "is not writable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newTree(t, c.own)
			c.make(f)
			got := f.m.probe()
			if (c.why == "") != (got.Why == "") || !strings.Contains(got.Why, c.why) {
				t.Errorf("why: %q; want %q", got.Why, c.why)
			}
			if c.path != "" {
				c.want.Path = filepath.Join(f.root, c.path, "teamctl")
			}
			got.Why = ""
			if got != c.want {
				t.Errorf("%+v; want %+v", got, c.want)
			}
		})
	}
}

func TestLimitsGoToTheControllers(t *testing.T) {
	t.Parallel()
	f := newTree(t, "/svc/supervisor")
	f.dir("/svc", "memory pids cpu io", "", "")
	f.dir("/svc/supervisor", "", "", "77")
	f.delegate("/svc")
	g, err := f.m.create("demo/a-12345678")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(f.root, "svc/teamctl/demo/a-12345678"); g.Path() != want {
		t.Errorf("%s; want %s", g.Path(), want)
	}
	for _, d := range []string{"svc", "svc/teamctl", "svc/teamctl/demo"} {
		// The kernel adds each to a set; in this tree the last one written
		// remains.
		if got := read(filepath.Join(f.root, d), "cgroup.subtree_control"); !strings.HasPrefix(got, "+") {
			t.Errorf("%s hands down %q", d, got)
		}
	}
	if got := read(g.Path(), "cgroup.subtree_control"); got != "" {
		t.Errorf("the agent's own group hands down %q", got)
	}
	for _, n := range []string{"memory.max", "memory.swap.max", "pids.max", "cpu.max"} {
		f.put(filepath.Join(g.Path(), n), "")
	}
	a, err := g.SetLimits(team.Limits{MemoryBytes: 2 << 30, PIDs: 200, CPUPercent: 150})
	if err != nil || a != (Applied{true, true, true}) {
		t.Errorf("%+v, %v", a, err)
	}
	for n, want := range map[string]string{
		"memory.max": "2147483648", "memory.swap.max": "0", "pids.max": "200", "cpu.max": "150000 100000",
	} {
		if got := read(g.Path(), n); got != want {
			t.Errorf("%s is %q; want %q", n, got, want)
		}
	}
	f.put(filepath.Join(g.Path(), "memory.events"), "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 0\n")
	if n, err := g.OOMKills(); n != 3 || err != nil {
		t.Errorf("oom kills: %d, %v", n, err)
	}
}

func TestLimitsWithoutControllers(t *testing.T) {
	t.Parallel()
	f := newTree(t, "/s")
	f.dir("/s", "", "", "77")
	g, err := f.m.create("demo/a-1")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := g.SetLimits(team.Limits{MemoryBytes: 1 << 30, PIDs: 9, CPUPercent: 5}); err != nil || a != (Applied{}) {
		t.Errorf("%+v, %v; want nothing applied and no error", a, err)
	}
	if n, err := g.OOMKills(); n != 0 || err != nil {
		t.Errorf("oom kills: %d, %v", n, err)
	}
}

// The last group of a team may be removed, with the team's directory, while
// another is made.
func TestCreateWhileTheTeamGoes(t *testing.T) {
	t.Parallel()
	f := newTree(t, "/s")
	f.dir("/s", "", "", "77")
	n := 0
	f.m.mkdir = func(p string) error {
		if n++; n == 3 { // teamctl, demo, and now the leaf
			if err := os.RemoveAll(filepath.Dir(filepath.Dir(p))); err != nil {
				t.Fatal(err)
			}
		}
		return f.mkdir(p)
	}
	if _, err := f.m.create("demo/a-1"); err != nil {
		t.Fatal(err)
	}
	f.m.mkdir = func(p string) error { return fmt.Errorf("mkdir %s: %w", p, os.ErrPermission) }
	if _, err := f.m.create("demo/b-1"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a refused directory: %v", err)
	}
}
