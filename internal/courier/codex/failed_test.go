package codex

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/teamctl/teamctl/internal/courier/couriertest"
	"github.com/teamctl/teamctl/team"
)

// An error that ends a turn of Codex is reported, with its text, before the thread is reported to
// be at rest; the next supervisor reads it from the thread.
func TestAppServerFailedTurn(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	startCodex(t, r, false)
	r.open(t)
	r.Wait(t, "the thread", 0, ready)
	for _, id := range []string{"first", "second"} { // no client is subscribed to a thread's first turn
		from := r.Mark()
		r.Deliver(t, false, id, "@@fail 400 bad thing")
		r.FailsFirst(t, from)
		r.Wait(t, "the receipt", from, couriertest.Receipt(id)) // the conversation has it, and continues with it
		r.Ch.Close()
		from = r.Mark()
		r.open(t)
		r.FailsFirst(t, from)
		from = r.Mark()
		r.Deliver(t, false, id+" and on", "go on")
		r.Wait(t, "working", from, couriertest.Is(team.Working))
		r.Wait(t, "idle", from, couriertest.Is(team.Idle))
	}
}

// The status in an answer is older than notifications since the question: after the end of a turn
// it does not begin that turn again.
func TestAppServerOldAnswer(t *testing.T) {
	t.Parallel()
	r := codexRig(t)
	l, err := net.Listen("unix", r.Socket())
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(oldAnswers), ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close() })
	r.facts.Link.Conversation = "thread-1"
	r.open(t)
	r.Wait(t, "the end of the look", 0, couriertest.Receipt("m1"))
	r.Wait(t, "the failure", 0, func(o team.Observation) bool { return o.Failed == "bad thing" })
	all := r.All()
	failed := false
	for _, o := range all {
		if failed = failed || o.Failed != ""; failed && o.Activity == team.Working {
			t.Errorf("the turn that has failed is told to go on: %+v", all)
		}
	}
}

// oldAnswers is an app-server whose thread fails during a subscription: the answer to the
// subscription describes the turn before.
func oldAnswers(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	thread := func(status string) string {
		return `{"thread":{"id":"thread-1","threadSource":"user","status":{"type":"` + status + `"}}}`
	}
	answerRequests(r.Context(), ws, func(id, method string) []string {
		var first []string
		result := "{}"
		switch method {
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
		return append(first, `{"id":`+id+`,"result":`+result+`}`)
	})
}

// answerRequests reads a connection to its end, and writes the lines that answer returns for each
// request.
func answerRequests(ctx context.Context, ws *websocket.Conn, answer func(id, method string) []string) {
	for {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(b, &m) != nil || m.ID == nil {
			continue
		}
		for _, line := range answer(string(m.ID), m.Method) {
			if ws.Write(ctx, websocket.MessageText, []byte(line)) != nil {
				return
			}
		}
	}
}
