package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

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

// hand gives the postman a delivery as it comes from another process.
func hand(t *testing.T, p *Postman, d ledger.Delivery) ledger.Delivery {
	t.Helper()
	args, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Write(t.Context(), ledger.Op{Name: "mail", Args: args})
	if err != nil {
		t.Errorf("mail: %v", err)
		return d
	}
	var now ledger.Delivery
	if err := json.Unmarshal(res, &now); err != nil {
		t.Error(err)
	}
	return now
}

// Many who have posted to one member have all of it brought by the first of them, with
// one mark; the others are told of theirs.
func TestPostmanBringsAllAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, to, box := r.mailed("0")
	w := &counted{Writer: ledger.Direct(r.led.DB())}
	p := NewPostman(Mailer{r.layout, ledger.New(r.led.DB(), w)})
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
			if now := hand(t, p, d); now.MessageID != d.MessageID || now.Session != d.Session || now.State != team.Mailed || now.At == 0 || now.Evidence == "" {
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
	if now := hand(t, p, wrong); now.State != team.Mailed || now.Session != to.SessionKey {
		t.Errorf("with a wrong session it is %+v", now)
	}
	_, posted, err = r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "too late"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.led.RemoveMember(t.Context(), to.SessionKey); err != nil {
		t.Fatal(err)
	}
	if now := hand(t, p, posted[0]); now.State != team.Dropped {
		t.Errorf("for one who has left it is %+v", now)
	}
	if _, err := p.Write(t.Context(), ledger.Op{Name: "mail", Args: json.RawMessage(`[]`)}); !team.IsCode(err, team.CodeInvalid) {
		t.Errorf("no delivery: %v", err)
	}
}

// away is a writer whose postman does nothing.
type away struct{ ledger.Writer }

func (away) Mail(_ context.Context, d ledger.Delivery) (ledger.Delivery, bool) { return d, false }

// Who gets no answer of a postman mails by himself.
func TestMailedWithoutThePostman(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("0")
	m.Ledger = ledger.New(r.led.DB(), away{ledger.Direct(r.led.DB())})
	_, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "1"})
	if err != nil || ds[0].State != team.Mailed {
		t.Errorf("%+v, %v", ds, err)
	}
	r.holds(box, "0", "1")
}
