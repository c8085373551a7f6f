// Package couriertest has what the tests of the channels share: a scripted model, a directory for
// an agent that is served beside it, and a recorder of what a channel reports.
package couriertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/team"
)

// Watcher collects what a channel reports.
type Watcher struct {
	mu   sync.Mutex
	all  []team.Observation
	more chan struct{}
}

// NewWatcher returns an empty Watcher.
func NewWatcher() *Watcher { return &Watcher{more: make(chan struct{})} }

// Report implements courier.Report.
func (w *Watcher) Report(o team.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, o)
	close(w.more)
	w.more = make(chan struct{})
}

// All returns all reported observations.
func (w *Watcher) All() []team.Observation {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// Mark returns the current position in the reports, for Wait.
func (w *Watcher) Mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// Wait returns the first observation after the mark that ok accepts.
func (w *Watcher) Wait(t *testing.T, what string, from int, ok func(team.Observation) bool) team.Observation {
	t.Helper()
	deadline := time.After(5 * time.Minute)
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
			t.Fatalf("%s was not seen; reported: %+v", what, w.All())
		}
	}
}

// Last waits until ok accepts the last observation of an activity.
func (w *Watcher) Last(t *testing.T, what string, ok func(team.Observation) bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		w.mu.Lock()
		more := w.more
		for _, o := range slices.Backward(w.all) {
			if o.Activity == "" {
				continue
			}
			if ok(o) {
				w.mu.Unlock()
				return
			}
			break
		}
		w.mu.Unlock()
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("%s was not seen; reported: %+v", what, w.All())
		}
	}
}

// Accepted counts the receipts of a message.
func (w *Watcher) Accepted(id string) int {
	n := 0
	for _, o := range w.All() {
		for _, r := range o.Receipts {
			if r.ID == id && r.State == team.Accepted && r.Evidence != "" {
				n++
			}
		}
	}
	return n
}

// Is matches an observation of an activity.
func Is(a team.Activity) func(team.Observation) bool {
	return func(o team.Observation) bool { return o.Activity == a }
}

// Receipt matches the receipt that a message was accepted.
func Receipt(id string) func(team.Observation) bool {
	return func(o team.Observation) bool {
		return slices.ContainsFunc(o.Receipts, func(r team.Receipt) bool { return r.ID == id && r.State == team.Accepted })
	}
}

// Channel is a courier.Channel. It is declared here so that courier's own tests can use this
// package.
type Channel interface {
	Deliver(ctx context.Context, mail []team.Mail) []team.Outcome
	Interrupt(ctx context.Context) error
	Answer(ctx context.Context, r team.Reply) error
	SetMode(mode team.Mode) (when string)
	Close()
}

// Rig is a model, a directory for an agent, and a channel to the agent.
type Rig struct {
	*Watcher
	Dir   string
	Model *fakemodel.Server
	Ch    Channel

	owes struct { // what Answering has to answer
		sync.Mutex
		id    string
		since func(team.Observation) bool // nil: it has matched
	}
}

// New returns a rig without a channel.
func New(t *testing.T) *Rig {
	t.Helper()
	model, err := fakemodel.Start("", nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tc-") // keeps the socket path short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		model.Close()
		os.RemoveAll(dir)
	})
	return &Rig{Dir: dir, Model: model, Watcher: NewWatcher()}
}

// Socket is the path of the agent's socket.
func (r *Rig) Socket() string { return filepath.Join(r.Dir, "a.sock") }

// Use sets the channel, which is closed at the end of the test.
func (r *Rig) Use(t *testing.T, ch Channel, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r.Ch = ch
	t.Cleanup(ch.Close)
}

// Answering returns Report for a channel whose request is answered as a supervisor does it that owes
// the answer: the request that Owes names is allowed at an observation, and at every later one until
// the channel has taken the answer. That the request is gone is an error of the test.
func (r *Rig) Answering(t *testing.T) func(team.Observation) {
	return func(o team.Observation) {
		r.Report(o)
		r.owes.Lock()
		defer r.owes.Unlock()
		if r.owes.id == "" || r.owes.since != nil && !r.owes.since(o) {
			return
		}
		r.owes.since = nil
		err := r.Ch.Answer(t.Context(), team.Reply{ID: r.owes.id, For: team.WaitPermission, Allow: true})
		if team.IsCode(err, team.CodeNotFound) {
			t.Errorf("after %q: %v", o.Source, err)
		}
		if err == nil {
			r.owes.id = ""
		}
	}
}

// Owes has a request answered by Answering, first at the next observation that matches.
func (r *Rig) Owes(id string, since func(team.Observation) bool) {
	r.owes.Lock()
	defer r.owes.Unlock()
	r.owes.id, r.owes.since = id, since
}

// Deliver delivers messages, given as pairs of id and text.
func (r *Rig) Deliver(t *testing.T, again bool, mail ...string) []team.Outcome {
	t.Helper()
	in := make([]team.Mail, 0, len(mail)/2)
	for i := 0; i < len(mail); i += 2 {
		in = append(in, team.Mail{ID: mail[i], Text: mail[i+1], Again: again})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := r.Ch.Deliver(ctx, in)
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

// HandedOver delivers a message until it is handed over: a channel that has just reconnected may
// hold it.
func (r *Rig) HandedOver(t *testing.T, id, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(5 * time.Minute); ; <-tick.C {
		out := r.Deliver(t, false, id, text)[0]
		if out.State == team.Injected || out.State == team.Accepted {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("it is not handed over: %+v", out)
		}
	}
}

// Asked waits for a model request that contains the text.
func (r *Rig) Asked(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if _, err := r.Model.Wait(ctx, func(q fakemodel.Request) bool { return strings.Contains(q.New, text) }); err != nil {
		t.Fatalf("%q did not reach the model: %v", text, err)
	}
}

// FailsFirst waits for the report that a turn failed with "bad thing", which must precede the
// report that the agent is idle.
func (r *Rig) FailsFirst(t *testing.T, from int) {
	t.Helper()
	idle := false
	o := r.Wait(t, "the failure", from, func(o team.Observation) bool {
		idle = idle || o.Activity == team.Idle && o.Failed == ""
		return o.Failed != ""
	})
	if idle || !strings.Contains(o.Failed, "bad thing") || o.Interrupted {
		t.Errorf("told idle first: %v, then %+v", idle, o)
	}
	r.Wait(t, "idle", from, Is(team.Idle))
}

// Soak delivers n messages, calling disturb in between, until each is accepted. Like a supervisor,
// it delivers held messages again, and redelivers injected ones after the channel was lost.
func (r *Rig) Soak(t *testing.T, n int, disturb func(i int)) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	var open []string
	injected := map[string]bool{}
	try := func() {
		var left []string
		for _, id := range open {
			if r.Accepted(id) > 0 {
				continue
			}
			text := "number <" + id + ">"
			if rnd.IntN(10) == 0 {
				text += "\n@@shell echo work"
			}
			out := r.Deliver(t, injected[id], id, text)
			if out[0].State == team.Accepted {
				continue
			}
			injected[id] = injected[id] || out[0].State == team.Injected
			left = append(left, id)
		}
		open = left
	}
	for i := range n {
		open = append(open, fmt.Sprintf("s%d", i))
		disturb(i)
		if i%5 == 4 {
			try()
		}
	}
	deadline := Ticker(t)
	for len(open) > 0 {
		deadline(len(open))
		try()
	}
	for i := range n {
		id := fmt.Sprintf("s%d", i)
		r.Asked(t, "<"+id+">") // accepted is reported just before the model is asked
		if got := r.Model.Arrivals("<" + id + ">"); got != 1 {
			t.Errorf("%s came %d times", id, got)
		}
	}
}

// Touch creates an empty file in the agent's directory.
func (r *Rig) Touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Exists reports whether the agent's directory has a file.
func (r *Rig) Exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.Dir, name))
	return err == nil
}

// Ticker paces a loop that polls, and fails the test when the loop takes too long.
func Ticker(t *testing.T) func(left int) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	t.Cleanup(tick.Stop)
	end := time.Now().Add(5 * time.Minute)
	return func(left int) {
		t.Helper()
		if time.Now().After(end) {
			t.Fatalf("%d are left", left)
		}
		<-tick.C
	}
}
