package procfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	rest := " S 1 20 20 34816 77 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3 4"
	want := Stat{PID: 12, State: 'S', Parent: 1, Group: 20, Front: 77, Flags: 4194304, Threads: 1, Used: 110 * time.Millisecond, Start: 987654, Memory: true, Code: true}
	for _, c := range []struct {
		line   string
		change func(*Stat)
		bad    bool
	}{
		{line: "12 (cat)" + rest, change: func(s *Stat) { s.Name = "cat" }},
		{line: "12 (a) b (c) 1 2)" + rest, change: func(s *Stat) { s.Name = "a) b (c) 1 2" }},
		{line: "12 ()\n) Z 1 2)" + rest, change: func(s *Stat) { s.Name = ")\n) Z 1 2" }},
		{line: "12 (x) Z" + strings.Replace(rest[2:], " 20 0 1 ", " 20 0 3 ", 1), change: func(s *Stat) { s.Name, s.State, s.Threads = "x", 'Z', 3 }},
		{line: "12 (x)" + strings.Replace(rest, " 987654 1 2 3 4", " 987654 0 2 3 0", 1), change: func(s *Stat) { s.Name, s.Memory, s.Code = "x", false, false }},
		{line: "12 (x)" + strings.Replace(rest, " 987654 1 2 3 4", " 987654", 1), change: func(s *Stat) { s.Name, s.Memory, s.Code = "x", false, false }},
		{line: "", bad: true},
		{line: "12 (x", bad: true},
		{line: "12 (x) S 1 2", bad: true},
		{line: "12 (x) S one" + rest[4:], bad: true},
	} {
		got, err := ParseStat([]byte(c.line))
		if c.bad {
			if err == nil {
				t.Errorf("ParseStat(%q) = %+v, want an error", c.line, got)
			}
			continue
		}
		want := want
		c.change(&want)
		if err != nil || got != want {
			t.Errorf("ParseStat(%q) = %+v, %v; want %+v", c.line, got, err, want)
		}
	}
}

func TestSelf(t *testing.T) {
	t.Parallel()
	self := os.Getpid()
	s, err := Of(self)
	if err != nil || s.PID != self || s.Parent != os.Getppid() || !s.Memory || !s.Code || s.Threads < 1 {
		t.Errorf("got %+v, %v", s, err)
	}
	pids, err := PIDs()
	if err != nil || !slices.Contains(pids, self) {
		t.Errorf("got %v, %v; want %d among them", pids, err, self)
	}
	if got := Args(self); !slices.Equal(got, os.Args) {
		t.Errorf("got %q, want %q", got, os.Args)
	}
	if dir, err := Dir(self); err != nil || dir == "" {
		t.Errorf("got %q, %v", dir, err)
	}
}

func TestLockHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if got := LockHolder(path); got != 0 {
		t.Errorf("no file: got %d", got)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for how, want := range map[int]int{syscall.LOCK_UN: 0, syscall.LOCK_SH: 0, syscall.LOCK_EX: os.Getpid()} {
		if err := syscall.Flock(int(f.Fd()), how); err != nil {
			t.Fatal(err)
		}
		if got := LockHolder(path); got != want {
			t.Errorf("after flock(%d): got %d, want %d", how, got, want)
		}
	}
}
