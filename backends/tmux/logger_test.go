package tmux

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/proc"
)

func logger(t *testing.T, l backends.Launch) backends.ProcID {
	t.Helper()
	var f struct {
		Generation string
		Logger     backends.ProcID
	}
	waitFor(t, "logger.json", func() bool {
		b, err := os.ReadFile(l.Bundle.Logger())
		return err == nil && json.Unmarshal(b, &f) == nil && f.Generation == l.Generation
	})
	return f.Logger
}

// TestLoggerKilled: the process that writes the log is killed; another goes on where
// it was, the agent notices nothing, and nothing of either is left in the end.
func TestLoggerKilled(t *testing.T) {
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "lines")
	h := mustStart(t, b, l)
	idle(t, l)
	first := logger(t, l)
	if err := proc.Signal(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another logger", func() bool { id := logger(t, l); return id != first && proc.Alive(id) })
	if err := h.TypeText(ctxFor(t), "after", true); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "output after it", func() bool {
		text, err := os.ReadFile(l.Bundle.Log())
		return err == nil && strings.HasPrefix(string(text), "idle") && strings.Contains(string(text), "got <after>")
	})
	second := logger(t, l)
	mustEnd(t, h)
	// Under the race detector a process needs a second more to end.
	waitFor(t, "the logger ends with its agent", func() bool { return !proc.Alive(second) })
	if !proc.Alive(h.Proc().Agent) && strings.Contains(h.Exit().Reason, "log") {
		t.Errorf("%+v", h.Exit())
	}
}

// TestLogRotates: a member that writes a lot keeps a bounded log, with its newest output.
func TestLogRotates(t *testing.T) {
	if testing.Short() {
		t.Skip("26 MB through a terminal: not in a short run")
	}
	r := newRig(t)
	b := r.Open(t).(*Backend)
	l := backendtest.Launch(t, r, "a", "flood", "1200000") // 26 MB
	h := mustStart(t, b, l)
	if e := ended(t, h); !e.Success() || !strings.HasSuffix(e.Tail, "line 1199999 of 1200000") {
		t.Errorf("exit = %+v", e)
	}
	var total int64
	for _, n := range []string{"", ".1", ".2", ".3"} {
		fi, err := os.Stat(l.Bundle.Log() + n)
		if (err == nil) != (n != ".3") {
			t.Errorf("output.log%s: %v", n, err)
		}
		if err == nil {
			total += fi.Size()
		}
	}
	if total > 25<<20 {
		t.Errorf("%d bytes of log", total)
	}
	if err := h.Dispose(ctxFor(t)); err != nil {
		t.Error(err)
	}
}
