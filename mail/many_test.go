package mail

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A sender also mails what others have posted to the same member, in the order in
// which it was posted, and marks it: at their turn they find it mailed.
func TestOneMailsForAll(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("0")
	var want []string
	var waiting []ledger.Delivery
	for i := range 3 {
		text := fmt.Sprint(i + 1)
		_, ds, err := r.led.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		want, waiting = append(want, text), append(waiting, ds[0])
	}
	if _, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "4"}); err != nil || ds[0].State != team.Mailed {
		t.Fatalf("%+v, %v", ds, err)
	}
	for _, d := range waiting {
		if now, err := r.led.Delivery(t.Context(), d.MessageID, "a"); err != nil || now.State != team.Mailed {
			t.Errorf("after another's message it is %+v, %v", now, err)
		}
	}
	m.Deliver(t.Context(), waiting)
	for _, d := range waiting {
		if d.State != team.Mailed || d.Reason != "" {
			t.Errorf("its poster is told %+v", d)
		}
	}
	texts := r.texts(box)
	if want = append(append([]string{"0"}, want...), "4"); !slices.Equal(texts, want) {
		t.Errorf("the mailbox has %v, want %v", texts, want)
	}
}

// unmarked is a writer that loses its connection when it is to mark a delivery.
type unmarked struct {
	ledger.Writer
	lost error
}

func (w *unmarked) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	if op.Name == "delivery.mark" && w.lost != nil {
		return nil, w.lost
	}
	return w.Writer.Write(ctx, op)
}

// What stands in a mailbox and could not be marked is marked by the next one who mails,
// and not appended again.
func TestWhatWasNotMarkedIsMarkedNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, _, box := r.mailed("0")
	w := &unmarked{Writer: ledger.Direct(r.led.DB()), lost: errors.New("lost")}
	failing := Mailer{Layout: m.Layout, Ledger: ledger.New(r.led.DB(), w)}
	var lost []ledger.Message
	for _, text := range []string{"1", "2"} {
		msg, ds, err := failing.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: text})
		if err != nil || ds[0].State != team.Posted || ds[0].Reason == "" {
			t.Fatalf("%+v, %v", ds, err)
		}
		lost = append(lost, msg)
	}
	r.holds(box, "0", "1") // the second waits behind the first, which is not known to be there
	if _, ds, err := m.Post(t.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: "a", Text: "3"}); err != nil || ds[0].State != team.Mailed {
		t.Fatalf("%+v, %v", ds, err)
	}
	r.holds(box, "0", "1", "2", "3")
	for _, msg := range lost {
		if d, err := r.led.Delivery(t.Context(), msg.ID, "a"); err != nil || d.State != team.Mailed {
			t.Errorf("%+v, %v", d, err)
		}
	}
}
