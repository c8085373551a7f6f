package control

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// settlerFunc mails.
type settlerFunc func(ledger.Delivery) (ledger.Delivery, error)

func (f settlerFunc) Settle(_ context.Context, d ledger.Delivery) (ledger.Delivery, error) {
	return f(d)
}

// A posted delivery goes to the supervisor and comes back with its new state. Where it is
// refused, or there is no supervisor, or one without this route, it is the caller's.
func TestMailGoesToTheSupervisor(t *testing.T) {
	t.Parallel()
	d := ledger.Delivery{MessageID: "m", Recipient: "a", Session: "s", State: team.Posted}
	var refused atomic.Bool
	socket := filepath.Join(t.TempDir(), "s")
	serve := func(path string) (stop func()) {
		s := &streams{protocol: mailProtocol, frames: mailFrames{settlerFunc(func(d ledger.Delivery) (ledger.Delivery, error) {
			if refused.Load() {
				return d, team.Errorf(team.CodeUnavailable, "not now")
			}
			d.State = team.Mailed
			return d, nil
		})}}
		return serveStreams(t, socket, path, s)
	}
	c := NewClient(socket)
	defer c.Close()
	ask := func(who string, want bool) {
		t.Helper()
		now, err := c.Settle(t.Context(), d)
		state := d
		if want {
			state.State = team.Mailed
		}
		if (err == nil) != want || now != state {
			t.Errorf("%s: %v, %+v", who, err, now)
		}
	}
	ask("nobody", false)
	stop := serve(mailPath)
	ask("a supervisor", true)
	ask("the same", true)
	if n := len(c.mail.idle); n != 1 {
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
	if !c.mail.none {
		t.Error("it will be asked again")
	}
	ask("an old one, which is not asked", false)
}

// A request that is no delivery ends the connection and reaches no mailbox.
func TestMailRefusesNonsense(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serveStreams(t, socket, mailPath, &streams{protocol: mailProtocol, frames: mailFrames{settlerFunc(func(d ledger.Delivery) (ledger.Delivery, error) {
		t.Errorf("asked to mail %+v", d)
		return d, nil
	})}})
	c := NewClient(socket)
	defer c.Close()
	if _, err := c.mail.ask(t.Context(), func(b []byte) []byte { return append(b, "\x00\x00\x00\x02[]"...) }, false); team.ReasonOf(err) != reasonGone {
		t.Errorf("%v", err)
	}
}
