package courier

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if model := os.Getenv(envACP); model != "" {
		serveACP(model)
		return
	}
	goleak.VerifyTestMain(m)
}

// watcher collects what a channel reports.
type watcher struct {
	mu   sync.Mutex
	all  []team.Observation
	more chan struct{}
}

func newWatcher() *watcher { return &watcher{more: make(chan struct{})} }

func (w *watcher) report(o team.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, o)
	close(w.more)
	w.more = make(chan struct{})
}

// mark is a position in what was reported: wait looks only behind it.
func (w *watcher) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// wait returns the first observation from the mark on that ok accepts.
func (w *watcher) wait(t *testing.T, what string, from int, ok func(team.Observation) bool) team.Observation {
	t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		w.mu.Lock()
		for i := from; i < len(w.all); i++ {
			if ok(w.all[i]) {
				o := w.all[i]
				w.mu.Unlock()
				return o
			}
		}
		more := w.more
		w.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%s was not seen; reported: %+v", what, w.all)
		}
	}
}

// accepted counts the receipts of a message.
func (w *watcher) accepted(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, o := range w.all {
		for _, r := range o.Receipts {
			if r.ID == id && r.State == team.Accepted && r.Evidence != "" {
				n++
			}
		}
	}
	return n
}

func is(a team.Activity) func(team.Observation) bool {
	return func(o team.Observation) bool { return o.Activity == a }
}

func receipt(id string) func(team.Observation) bool {
	return func(o team.Observation) bool {
		return slices.ContainsFunc(o.Receipts, func(r team.Receipt) bool { return r.ID == id && r.State == team.Accepted })
	}
}

// rig is a fake agent, its model, and a channel to it.
type rig struct {
	dir   string
	model *fakemodel.Server
	facts Facts
	ch    Channel
	*watcher
}

func newRig(t *testing.T, link adapter.Link) *rig {
	t.Helper()
	model, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tc-") // a socket path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		model.Close()
		os.RemoveAll(dir)
	})
	return &rig{dir: dir, model: model, watcher: newWatcher(), facts: Facts{
		Bundle: team.Bundle(dir), Name: "coder", AgentID: "coder@demo", Generation: "g1", Dir: dir, Link: link, Log: slog.New(slog.DiscardHandler),
	}}
}

func (r *rig) socket() string { return filepath.Join(r.dir, "a.sock") }

// open opens the channel; the test's end closes it.
func (r *rig) open(t *testing.T, open Opener) {
	t.Helper()
	ch, err := open(t.Context(), r.facts, nil, r.report)
	if err != nil {
		t.Fatal(err)
	}
	r.ch = ch
	t.Cleanup(ch.Close)
}

func (r *rig) deliver(t *testing.T, again bool, mail ...string) []team.Outcome {
	t.Helper()
	in := make([]team.Mail, 0, len(mail)/2)
	for i := 0; i < len(mail); i += 2 {
		in = append(in, team.Mail{ID: mail[i], Text: mail[i+1], Again: again})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out := r.ch.Deliver(ctx, in)
	if len(out) != len(in) {
		t.Fatalf("%d outcomes of %d", len(out), len(in))
	}
	for i := range out {
		if out[i].ID != in[i].ID {
			t.Fatalf("outcome %d is of %s, not of %s", i, out[i].ID, in[i].ID)
		}
	}
	return out
}

// handedOver delivers a message until it is handed over: a channel that has just come back
// may hold it.
func (r *rig) handedOver(t *testing.T, id, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(5 * time.Minute); ; <-tick.C {
		out := r.deliver(t, false, id, text)[0]
		if out.State == team.Injected || out.State == team.Accepted {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("it is not handed over: %+v", out)
		}
	}
}

// asked waits for the request in which the text reached the model.
func (r *rig) asked(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if _, err := r.model.Wait(ctx, func(q fakemodel.Request) bool { return contains(q.New, text) }); err != nil {
		t.Fatalf("%q did not reach the model: %v", text, err)
	}
}
