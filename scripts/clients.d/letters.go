package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/agentlab"
)

// post sends letters to a member, in order, and notes their ids.
func (w *world) post(ctx context.Context, name string, letters []agentlab.Letter) error {
	for i := range letters {
		id, err := w.sendTo(ctx, name, letters[i].Text)
		if err != nil {
			return err
		}
		letters[i].ID = id
	}
	return nil
}

// receipts notes how far letters are by their receipts.
func (w *world) receipts(ctx context.Context, letters []agentlab.Letter) error {
	for i, l := range letters {
		out, err := w.teamctl(ctx, "message", "show", l.ID, "--json")
		if err != nil {
			return err
		}
		var m struct {
			Deliveries []struct{ State string }
		}
		if err := json.Unmarshal([]byte(out), &m); err != nil || len(m.Deliveries) != 1 {
			return errors.Join(err, fmt.Errorf("read %q: %d deliveries", out, len(m.Deliveries)))
		}
		letters[i].State = m.Deliveries[0].State
	}
	return nil
}

// settled waits until every letter has a receipt, and compares receipts with the requests
// of the model. A letter that never gets one is in the tally.
func (w *world) settled(ctx context.Context, letters []agentlab.Letter) (agentlab.Tally, error) {
	werr := w.until(ctx, "accepted", func() (bool, error) {
		if err := w.receipts(ctx, letters); err != nil {
			return false, err
		}
		for _, l := range letters {
			if !l.Accepted() {
				return false, fmt.Errorf("%s is %s", l.Token, l.State)
			}
		}
		return true, nil
	})
	if ctx.Err() != nil {
		return agentlab.Tally{}, ctx.Err()
	}
	t := agentlab.Compare(letters, w.model.Requests(), inbox.Body)
	if len(t.Open) == 0 && werr != nil && len(t.False)+len(t.Lost) == 0 {
		return t, werr
	}
	return t, nil
}

// exchange sends letters to an agent and compares, once all have a receipt and it is idle
// again, what its model got with the receipts. again tells that a letter may come twice.
func (w *world) exchange(ctx context.Context, name string, letters []agentlab.Letter, again bool) (string, error) {
	if err := w.post(ctx, name, letters); err != nil {
		return "", err
	}
	t, err := w.settled(ctx, letters)
	if err == nil {
		err = t.Err(again)
	}
	return t.String(), err
}
