package supervisor

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// A log that has grown is emptied when no reader prevents that; otherwise that is reported, and
// tried again.
func TestFault33LogIsEmptied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.policy.Log, r.policy.LogPause, r.policy.LogRest = 1<<20, 2*time.Second, 50*time.Millisecond
	out := new(lines)
	r.log = slog.New(slog.NewTextHandler(out, nil))
	r.supervisor()
	size := func() int64 {
		t.Helper()
		n, err := r.led.WALSize()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(5 * time.Minute); !ok(); <-tick.C {
			if time.Now().After(deadline) {
				t.Fatalf("not %s; the log has %d bytes", what, size())
			}
		}
	}
	if size() > r.policy.Log {
		t.Fatalf("an empty team's log has %d bytes", size())
	}
	batch := make([]ledger.NewTask, 300)
	for i := range batch {
		batch[i] = ledger.NewTask{Subject: "t", Description: strings.Repeat("d", 8000)}
	}
	if _, err := r.led.CreateTasks(t.Context(), batch, "lead"); err != nil {
		t.Fatal(err)
	}
	held, err := filelock.Lock(t.Context(), r.layout.LedgerLock())
	if err != nil {
		t.Fatal(err)
	}
	if size() < r.policy.Log {
		t.Skipf("emptied already: the machine is slow") // what follows is what happens then
	}
	until("told", func() bool { return out.has("the ledger's log grows") })
	if size() < r.policy.Log {
		t.Error("emptied under the lock of another")
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	until("emptied", func() bool { return size() < r.policy.Log })
}
