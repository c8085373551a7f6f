package control

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/team"
)

// A supervisor that is stopped while it starts keeps nobody, whether he has started it or
// comes later: wherever it is stopped, everyone is told which process it is.
func TestStoppedWhileItStarts(t *testing.T) {
	for _, where := range []string{"start", "locked", "built"} {
		t.Run(where, func(t *testing.T) {
			l := newTeam(t)
			t.Setenv(envStops, where)
			ask := func() {
				s, err := Dialer([]string{os.Args[0]})(t.Context(), l, true)
				if err == nil {
					_, err = s.Status(t.Context())
				}
				if !team.IsCode(err, team.CodeUnavailable) || team.ReasonOf(err) != team.ReasonHung || !strings.Contains(err.Error(), "it is stopped") {
					t.Errorf("%v (reason %q)", err, team.ReasonOf(err))
					return
				}
				_, pid, _ := strings.Cut(err.Error(), "pid ")
				pid, _, _ = strings.Cut(pid, ",")
				if n, _ := strconv.Atoi(pid); activity(n) != doingStopped || !strings.Contains(team.HintOf(err), "kill -CONT "+pid) {
					t.Errorf("%v; hint: %s", err, team.HintOf(err))
				}
			}
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(ask)
			}
			wg.Wait()
			ask()
			if where == "locked" {
				if s, err := Dialer([]string{os.Args[0]})(t.Context(), l, false); s != nil || team.ReasonOf(err) != team.ReasonHung {
					t.Errorf("who starts none: %v, %v", s, err)
				}
			}
		})
	}
}

// A start that is slow is waited for, by who has started it and by who comes later, and
// however little the process does meanwhile; it is not taken for one that does not answer.
func TestSlowStartIsWaitedFor(t *testing.T) {
	l := newTeam(t)
	path := l.Dir + "/slow"
	t.Setenv("TEST_BUILD_WAITS", path)
	lock, err := filelock.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Unlock() }()
	var wg sync.WaitGroup
	ask := func() {
		s, err := Dialer([]string{os.Args[0]})(t.Context(), l, true)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := s.Status(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wg.Go(ask)
	for until := time.Now().Add(5 * time.Minute); ; {
		who, err := reach(t.Context(), l.Socket(), l.Ledger())
		if err != nil {
			t.Fatal(err)
		}
		if who == present {
			break
		}
		if time.Now().After(until) {
			t.Fatal("it does not come up")
		}
	}
	pid, adopted, err := team.ParseSupervisorPID([]byte(readPID(l) + "\n"))
	if err != nil || adopted {
		t.Errorf("pid %d, adopted %v, %v", pid, adopted, err)
	}
	wg.Go(ask)
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	dial(t, l)
}

// A command that asks a stopped supervisor again and again waits once.
func TestStoppedIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	st, err := dial(t, l).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer halt(t, st.PID)()
	for range 6 {
		c := newClient(l)
		_, err := c.StopMembers(t.Context(), team.StopRequest{})
		c.Close()
		if team.ReasonOf(err) != team.ReasonHung {
			t.Fatal(err)
		}
	}
	// By its own measure: a machine that is slow makes none of it longer. Six times the
	// whole patience would be eighteen seconds.
	if waited, ok := silent.of(l.Socket(), st.PID); !ok || waited < stoppedFor || waited > 10*time.Second {
		t.Errorf("waited for %s, %v", waited, ok)
	}
}

// The holder of a lock is found; another process that has the file open is not taken for it.
func TestHolder(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/lock"
	if pid := holder(path); pid != 0 {
		t.Errorf("no file: %d", pid)
	}
	lock, err := filelock.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if pid := holder(path); pid != os.Getpid() {
		t.Errorf("held by %d, not by %d", pid, os.Getpid())
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if pid := holder(path); pid != 0 {
		t.Errorf("free: %d", pid)
	}
}
