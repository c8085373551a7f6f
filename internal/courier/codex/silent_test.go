package codex

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// mute matches the report of a server that does not answer.
func mute(o team.Observation) bool {
	return o.Activity == team.ActivityUnknown && o.Source == "app-server does not answer"
}

// TestServerIsFrozen: a server that stays connected and answers nothing has no state, whether the
// channel asks it after a message, in mid-turn, or at rest; once it answers, it has its state again.
func TestServerIsFrozen(t *testing.T) {
	t.Parallel()
	const soon, never = 100 * time.Millisecond, time.Hour
	for name, p := range map[string]patience{
		"at rest":     {soon, never, soon},
		"in mid-turn": {soon, soon, never},
		"with mail":   {soon, never, never},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := codexRig(t)
			startCodex(t, r, false)
			relay := couriertest.NewRelay(t, "unix", r.Socket()+".relay", r.Socket())
			r.facts.Link.Socket = relay.Addr()
			a, err := newAppServer(r.facts, r.Report, p)
			r.Use(t, a, err)
			a.start()
			r.Wait(t, "the thread", 0, ready)
			state := team.Idle
			if name == "in mid-turn" {
				state = team.Working
				r.Deliver(t, false, "m1", "@@shell until test -e go; do read -t 0.05 <> <(:); done\n@@say done")
				r.Wait(t, "the receipt", 0, couriertest.Receipt("m1"))
			}
			r.Last(t, "its state", couriertest.Is(state))
			relay.Freeze()
			var given sync.WaitGroup
			if name == "with mail" {
				given.Go(func() { r.Deliver(t, false, "m2", "while it is frozen") })
			}
			r.Last(t, "that it does not answer", mute)
			relay.Thaw()
			given.Wait()
			r.Last(t, "its state again", couriertest.Is(state))
			r.Touch(t, "go")
			r.Last(t, "that it is idle", couriertest.Is(team.Idle))
		})
	}
}

// TestServerIsSilentAgain: a server that was reported as one that does not answer, is heard, and
// still does not answer, has no state again.
func TestServerIsSilentAgain(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	works := make(chan struct{}, 2)
	serveThread(t, r, works, func() bool { return false })
	a, err := newAppServer(r.facts, r.Report, patience{100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond})
	r.Use(t, a, err)
	a.start()
	r.Wait(t, "that it does not answer", 0, mute)
	for range 2 {
		from := r.Mark()
		works <- struct{}{}
		r.Wait(t, "that it works", from, couriertest.Is(team.Working))
		r.Last(t, "that it does not answer", mute)
	}
}

// TestQuestionIsLost: a server that has lost a question and says nothing is asked again, and has its
// state again.
func TestQuestionIsLost(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	var lost atomic.Bool
	serveThread(t, r, nil, func() bool { return lost.Swap(true) })
	a, err := newAppServer(r.facts, r.Report, patience{100 * time.Millisecond, time.Hour, 100 * time.Millisecond})
	r.Use(t, a, err)
	a.start()
	r.Wait(t, "that it does not answer", 0, mute)
	r.Last(t, "its state again", couriertest.Is(team.Idle))
}

// TestUnsent: a message whose time is over is not sent, and its connection stays.
func TestUnsent(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	serveThread(t, r, nil, func() bool { return true })
	conn, err := dialRPC(t.Context(), r.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := conn.call(late, "thread/read", nil, nil); !errors.Is(err, errUnsent) {
		t.Errorf("%v, want that it was not sent", err)
	}
	go func() { _ = conn.serve(t.Context(), func() {}, func(rpcMessage) {}) }()
	if err := conn.call(t.Context(), "thread/read", nil, nil); err != nil {
		t.Error(err)
	}
}

// serveThread runs an app-server for the member that shows its thread, and then answers a question
// about it only if answers says so. Whenever works has an element the thread is active, which all
// connections are notified of.
func serveThread(t *testing.T, r *rig, works <-chan struct{}, answers func() bool) {
	t.Helper()
	l, err := net.Listen("unix", r.Socket())
	if err != nil {
		t.Fatal(err)
	}
	s := &threadServer{answers: answers, status: "idle", conns: map[*websocket.Conn]bool{}}
	srv := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	ended := make(chan struct{})
	var notifier sync.WaitGroup
	notifier.Go(func() {
		for {
			select {
			case <-works:
				s.work(t.Context())
			case <-ended:
				return
			}
		}
	})
	t.Cleanup(func() {
		srv.Close()
		close(ended)
		notifier.Wait()
	})
	r.facts.Link.Conversation = "thread-1"
}

// threadServer has one thread.
type threadServer struct {
	answers func() bool

	mu     sync.Mutex
	status string
	conns  map[*websocket.Conn]bool
}

// work makes the thread active. A connection that ends meanwhile needs no notification: the next one
// reads the status.
func (s *threadServer) work(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = "active"
	for ws := range s.conns {
		_ = ws.Write(ctx, websocket.MessageText, []byte(`{"method":"thread/status/changed","params":{"threadId":"thread-1","status":{"type":"active"}}}`))
	}
}

func (s *threadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	s.mu.Lock()
	s.conns[ws] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, ws)
	}()
	shown := false
	answerRequests(r.Context(), ws, func(id, method string) []string {
		if shown && method == "thread/read" && !s.answers() {
			return nil
		}
		shown = shown || method == "thread/resume"
		result := "{}"
		switch method {
		case "thread/loaded/list":
			result = `{"data":["thread-1"]}`
		case "thread/read", "thread/resume":
			s.mu.Lock()
			result = `{"thread":{"id":"thread-1","threadSource":"user","status":{"type":"` + s.status + `"}}}`
			s.mu.Unlock()
		case "thread/items/list":
			result = `{"data":[]}`
		}
		return []string{`{"id":` + id + `,"result":` + result + `}`}
	})
}
