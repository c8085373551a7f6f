package tool

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// before is a writer that calls a function before the next mark of a delivery.
type before struct {
	ledger.Writer
	mark func()
}

func (b *before) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	if f := b.mark; f != nil && op.Name == "delivery.mark" {
		b.mark = nil
		f()
	}
	return b.Writer.Write(ctx, op)
}

// A channel that hands a message over also marks it in the mailbox file; a concurrent check of the
// receipt does not take that mark for the agent's.
func TestReceiptBesideAChannel(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var w *before
	e := &Env{Home: team.Home{Dir: t.TempDir()}, Writer: func(_ team.Layout, direct ledger.Writer) (ledger.Writer, Settler) {
		w = &before{Writer: direct}
		return w, nil
	}}
	if _, err := e.TeamCreate(ctx, Person(), TeamCreateIn{TeamName: "demo"}); err != nil {
		t.Fatal(err)
	}
	tm, err := e.Open(ctx, "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tm.Close(); err != nil {
			t.Error(err)
		}
	}()
	r := talkRig{t, tm}
	a, _ := r.memberOf(team.AgentCodex, "a", team.RoleExecutor)
	sent, err := r.Send(ctx, Person(), SendIn{Type: "message", Recipient: "a", Content: "hello", Summary: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	box, err := r.mailer(a).Box("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.MarkRead(ctx, sent.MessageID); err != nil {
		t.Fatal(err)
	}
	w.mark = func() {
		if moved, err := r.Ledger.Mark(ctx, ledger.DeliveryMark{MessageID: sent.MessageID, Recipient: "a", State: team.Injected}); err != nil || !moved {
			t.Errorf("%v, %v", moved, err)
		}
	}
	m, err := r.MessageShow(ctx, sent.MessageID)
	if err != nil || w.mark != nil || m.Deliveries[0].State != team.Injected {
		t.Errorf("%+v, %v", m.Deliveries, err)
	}
}
