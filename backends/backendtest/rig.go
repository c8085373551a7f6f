package backendtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

// Rig is one team for one test.
type Rig struct {
	Layout team.Layout
	// Open returns a new instance of the backend for the team, as a new
	// supervisor would create it. The rig closes what the test does not.
	Open func(t *testing.T) backends.Backend
	// Notify is the notification socket, or "".
	Notify string
	// Can is set by Exercise to its argument.
	Can Capabilities
}

// patience limits every wait of the suite.
const patience = 5 * time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// Launch makes a Launch of a fake agent (see Main) with a new generation. The
// test fails if a process of it is left at the end.
func Launch(t *testing.T, r *Rig, agent string, fakeArgs ...string) backends.Launch {
	t.Helper()
	exe, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	gen := team.NewUUID()
	t.Cleanup(func() {
		if left := proc.ByGeneration(gen); len(left) > 0 {
			t.Errorf("%s: processes left: %v", agent, left)
			_, _ = proc.KillTree(context.Background(), left, gen, 0)
		}
	})
	return backends.Launch{
		Team: r.Layout.Key, Agent: agent, Generation: gen,
		Argv: append([]string{exe, "fake"}, fakeArgs...),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=dumb", "TMUX_PANE=%stale", "SECRET=x y",
			"GOCOVERDIR=" + t.TempDir()}, // otherwise the fake agent prints a warning at its end when coverage is measured
		Dir: t.TempDir(), Bundle: r.Layout.Bundle(agent), Notify: r.Notify,
		Title: agent, Color: "blue",
	}
}

func start(t *testing.T, b backends.Backend, l backends.Launch) backends.Handle {
	t.Helper()
	h, err := b.Start(within(t), l)
	if err != nil {
		t.Fatalf("start %s: %v", l.Agent, err)
	}
	return h
}

func stop(t *testing.T, h backends.Attached) {
	t.Helper()
	if err := h.Stop(within(t), 2*time.Second); err != nil {
		t.Fatalf("stop: %v", err)
	}
	exit(t, h)
	if err := h.Dispose(within(t)); err != nil {
		t.Fatalf("dispose: %v", err)
	}
}

func exit(t *testing.T, h backends.Attached) backends.Exit {
	t.Helper()
	select {
	case <-h.Exited():
		return h.Exit()
	case <-time.After(patience):
		t.Fatalf("no exit within %s", patience)
		panic("unreachable")
	}
}

// eventually waits for a condition without an event.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

func (r *Rig) log(t *testing.T, agent string) string {
	t.Helper()
	b, err := os.ReadFile(r.Layout.Bundle(agent).Log())
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}

// logged waits until the member's log contains the text.
func (r *Rig) logged(t *testing.T, agent, text string) {
	t.Helper()
	eventually(t, agent+" prints "+strconv.Quote(text), func() bool { return strings.Contains(r.log(t, agent), text) })
}

// pids reads the file that the fake agents tree and leave write.
func pids(t *testing.T, path string) []backends.ProcID {
	t.Helper()
	var text []byte
	eventually(t, "the tree is up", func() bool {
		var err error
		text, err = os.ReadFile(path)
		return err == nil
	})
	var ids []backends.ProcID
	for _, f := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		if id, err := proc.IdentifyAny(pid); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func descriptors(t *testing.T) int {
	t.Helper()
	dir := "/proc/self/fd"
	if _, err := os.Stat(dir); err != nil {
		dir = "/dev/fd"
	}
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Skipf("count descriptors: %v", err)
	}
	return len(es)
}

// Place makes a team in a directory of its own, with short paths for sockets, and
// receives its notifications. At the end of the test no process may be left that was
// started in it.
func Place(t *testing.T) (team.Layout, *bundle.Notifier) {
	t.Helper()
	dir, err := os.MkdirTemp(strays.Short(), "tb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(strays.Gone(strays.Below(dir)), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	l := team.Home{Dir: filepath.Join(dir, "h")}.Team("demo")
	if err := os.MkdirAll(l.Runtime(), 0o700); err != nil {
		t.Fatal(err)
	}
	n, err := bundle.Listen(l.NotifySocket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	return l, n
}
