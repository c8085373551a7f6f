package control

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// What is to be mailed goes to the supervisor and comes back as far as it has come; where
// it is refused, or nobody is there, or one who does not know of it, it is the caller's.
func TestMailGoesToTheSupervisor(t *testing.T) {
	t.Parallel()
	d := ledger.Delivery{MessageID: "m", Recipient: "a", Session: "s", State: team.Posted}
	var refused atomic.Bool
	socket := filepath.Join(t.TempDir(), "s")
	serve := func(path string) (stop func()) {
		s := &streams{writer: writerFunc(func(op ledger.Op) (json.RawMessage, error) {
			var now ledger.Delivery
			if err := json.Unmarshal(op.Args, &now); err != nil || refused.Load() {
				return nil, team.Errorf(team.CodeUnavailable, "not now: %v", err)
			}
			now.State = team.Mailed
			return json.Marshal(now)
		})}
		return serveStreams(t, socket, path, s)
	}
	c := NewClient(socket)
	defer c.Close()
	w := ledger.Switching(func(context.Context) (ledger.Writer, bool) { return c, true }, nil)
	ask := func(who string, want bool) {
		t.Helper()
		now, ok := w.(ledger.Postman).Mail(t.Context(), d)
		state := d
		if want {
			state.State = team.Mailed
		}
		if ok != want || now != state {
			t.Errorf("%s: %v, %+v", who, ok, now)
		}
	}
	ask("nobody", false)
	stop := serve(mailPath)
	ask("a supervisor", true)
	ask("the same", true)
	if n := len(c.postal().idle); n != 1 {
		t.Errorf("%d connections for two messages, want one", n)
	}
	refused.Store(true)
	ask("one that cannot", false)
	refused.Store(false)
	stop()
	ask("one that is gone", false)
	stop = serve(mailPath)
	ask("the next", true)
	stop()
	serve(opsPath)
	ask("an old one", false)
	if !c.postal().noStream {
		t.Error("it will be asked again")
	}
	ask("an old one, which is not asked", false)
}
