package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// counted counts how often deliveries are marked.
type counted struct {
	ledger.Writer
	mu    sync.Mutex
	marks int
}

func (c *counted) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	if op.Name == "delivery.mark" {
		c.mu.Lock()
		c.marks++
		c.mu.Unlock()
	}
	return c.Writer.Write(ctx, op)
}

// hand gives the queue a delivery as it comes from another process.
func hand(t *testing.T, q *Queue, d ledger.Delivery) ledger.Delivery {
	t.Helper()
	now, err := q.Settle(t.Context(), d)
	if err != nil {
		t.Errorf("mail: %v", err)
	}
	return now
}

// Many who have posted to one member have all of it brought by the first of them, with
// one mark; the others are told of theirs.
func TestQueueMailsAllAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, to, box := r.mailed("0")
	w := &counted{Writer: ledger.Direct(r.led.DB())}
	q := NewQueue(Mailer{Layout: r.layout, Ledger: ledger.New(r.led.DB(), w)})
	q.patience = time.Minute
	want := []string{"0"}
	var ds []ledger.Delivery
	for i := range 8 {
		text := fmt.Sprint(i + 1)
		_, posted, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		want, ds = append(want, text), append(ds, posted[0])
	}
	var wg sync.WaitGroup
	for _, d := range ds {
		wg.Go(func() {
			if now := hand(t, q, d); now.MessageID != d.MessageID || now.Session != d.Session || now.State != team.Mailed || now.At == 0 || now.Evidence == "" {
				t.Errorf("the poster is told %+v", now)
			}
		})
	}
	wg.Wait()
	if w.marks != 1 {
		t.Errorf("they were marked in %d operations, want one for all", w.marks)
	}
	texts := r.texts(box)
	if !slices.Equal(texts, want) {
		t.Errorf("the mailbox has %v, want %v", texts, want)
	}
	// One that has left gets nothing, and a name that another has had is not believed.
	_, posted, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "late"})
	if err != nil {
		t.Fatal(err)
	}
	wrong := posted[0]
	wrong.Session = "another"
	if now := hand(t, q, wrong); now.State != team.Mailed || now.Session != to.SessionKey {
		t.Errorf("with a wrong session it is %+v", now)
	}
	_, posted, err = r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "too late"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.led.RemoveMember(t.Context(), to.SessionKey); err != nil {
		t.Fatal(err)
	}
	if now := hand(t, q, posted[0]); now.State != team.Dropped {
		t.Errorf("for one who has left it is %+v", now)
	}
	if _, err := q.Settle(t.Context(), ledger.Delivery{MessageID: "x", Recipient: "a", Session: "s"}); !team.IsCode(err, team.CodeUnavailable) {
		t.Errorf("a message that nobody has posted: %v", err)
	}
}

// away is a supervisor that mails nothing.
type away struct{}

func (away) Settle(context.Context, ledger.Delivery) (ledger.Delivery, error) {
	return ledger.Delivery{}, errors.New("away")
}

// A sender without an answer from the supervisor mails by itself.
func TestMailedWithoutTheSupervisor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("0")
	m.Via = away{}
	_, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "1"})
	if err != nil || ds[0].State != team.Mailed {
		t.Errorf("%+v, %v", ds, err)
	}
	r.holds(box, "0", "1")
}
