package courier

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// U29: an error that ends a turn of Codex is told, with its words, before the thread is
// told to be at rest, and by the thread to whoever takes over.
func TestAppServerFailedTurn(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t, openAppServer)
	r.wait(t, "the thread", 0, ready)
	for _, id := range []string{"first", "second"} { // nobody is subscribed to a thread's first turn
		from := r.mark()
		r.deliver(t, false, id, "@@fail 400 bad thing")
		failsFirst(t, r, from)
		r.wait(t, "the receipt", from, receipt(id)) // the conversation has it, and goes on with it
		r.ch.Close()
		from = r.mark()
		r.open(t, openAppServer)
		failsFirst(t, r, from)
		from = r.mark()
		r.deliver(t, false, id+" and on", "go on")
		r.wait(t, "working", from, is(team.Working))
		r.wait(t, "idle", from, is(team.Idle))
	}
}

// An answer that says what the thread did is older than what was told since it was asked
// for: after the end of a turn it does not begin that turn again.
func TestAppServerOldAnswer(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	l, err := net.Listen("unix", r.socket())
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(oldAnswers), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	r.facts.Link.Conversation = "thread-1"
	r.open(t, openAppServer)
	r.wait(t, "the end of the look", 0, receipt("m1"))
	r.wait(t, "the failure", 0, func(o team.Observation) bool { return o.Failed == "bad thing" })
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := false
	for _, o := range r.all {
		if failed = failed || o.Failed != ""; failed && o.Activity == team.Working {
			t.Errorf("the turn that has failed is told to go on: %+v", r.all)
		}
	}
}

// oldAnswers is an app-server whose thread fails while it is subscribed to: the answer to
// that tells of the turn before.
func oldAnswers(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	thread := func(status string) string {
		return `{"thread":{"id":"thread-1","threadSource":"user","status":{"type":"` + status + `"}}}`
	}
	for {
		_, b, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ThreadID string }
		}
		if json.Unmarshal(b, &m) != nil || m.ID == nil {
			continue
		}
		var first []string
		result := "{}"
		switch m.Method {
		case "thread/loaded/list":
			result = `{"data":["thread-1"]}`
		case "thread/read":
			result = thread("active")
		case "thread/resume":
			first = []string{
				`{"method":"thread/status/changed","params":{"threadId":"thread-1","status":{"type":"systemError"}}}`,
				`{"method":"error","params":{"threadId":"thread-1","error":{"message":"bad thing","codexErrorInfo":"other"}}}`,
			}
			result = thread("active")
		case "thread/items/list":
			result = `{"data":[{"item":{"type":"userMessage","id":"i1","clientId":"m1"}}]}`
		}
		for _, line := range append(first, `{"id":`+string(m.ID)+`,"result":`+result+`}`) {
			if ws.Write(r.Context(), websocket.MessageText, []byte(line)) != nil {
				return
			}
		}
	}
}

// failsFirst waits for a failed turn, which is told before it is told that the agent is idle.
func failsFirst(t *testing.T, r *rig, from int) {
	t.Helper()
	idle := false
	o := r.wait(t, "the failure", from, func(o team.Observation) bool {
		idle = idle || o.Activity == team.Idle && o.Failed == ""
		return o.Failed != ""
	})
	if idle || !strings.Contains(o.Failed, "bad thing") || o.Interrupted {
		t.Errorf("told idle first: %v, then %+v", idle, o)
	}
	r.wait(t, "idle", from, is(team.Idle))
}

// The same of opencode; a turn that somebody has ended did not fail.
func TestServerFailedTurn(t *testing.T) {
	t.Parallel()
	r, addr := openCodeRig(t)
	startOpenCode(t, r, addr, false)
	r.open(t, openServer)
	r.wait(t, "the session", 0, up)
	r.wait(t, "idle", 0, is(team.Idle))
	from := r.mark()
	r.deliver(t, false, "m1", "@@fail 400 bad thing")
	failsFirst(t, r, from)
	r.ch.Close()
	from = r.mark()
	r.open(t, openServer)
	failsFirst(t, r, from)

	from = r.mark()
	r.deliver(t, false, "m2", "@@shell sleep 600\n@@say never")
	r.asked(t, "never")
	if err := r.ch.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := r.wait(t, "the end", from, func(o team.Observation) bool { return o.Interrupted || o.Failed != "" })
	if o.Failed != "" {
		t.Errorf("a turn that somebody has ended failed: %+v", o)
	}
}

// Claude Code says in its session file that it is at rest before its hook says that the
// turn has failed: what the hook says is waited for, and of an interrupt, which no hook
// tells, not for long.
func TestSessionWaitsForTheHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	f := Facts{
		Bundle: team.Bundle(t.TempDir()), Generation: "g", PID: 4242, Log: slog.New(slog.DiscardHandler), hub: newHub(),
		Link: adapter.Link{Agent: adapter.Claude, Config: dir, Ways: []adapter.Way{adapter.WayHooks}},
	}
	defer f.hub.close()
	write := func(status string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "sessions", "4242.json"), []byte(`{"pid":4242,"status":"`+status+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hook := func(o team.Observation) {
		t.Helper()
		o.Tier = team.TierHook
		if err := WriteSeen(f.Bundle, SeenFile{Generation: "g", Seen: o}); err != nil {
			t.Fatal(err)
		}
	}
	hook(team.Observation{Activity: team.Working})
	write("busy")
	w := newWatcher()
	ch, err := openHooks(context.Background(), f, nil, w.report)
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	channel := func(a team.Activity) func(team.Observation) bool {
		return func(o team.Observation) bool { return o.Tier == team.TierChannel && o.Activity == a }
	}
	w.wait(t, "busy", 0, channel(team.Working))
	from := w.mark()
	write("idle") // and no hook comes
	w.wait(t, "idle", from, channel(team.Idle))
	from = w.mark()
	write("busy")
	w.wait(t, "busy again", from, channel(team.Working))
	from = w.mark()
	write("idle")
	hook(team.Observation{Activity: team.Idle, Failed: "bad thing"})
	w.wait(t, "idle once more", from, channel(team.Idle))
}
