package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/agentlab"
)

// post sends letters to a member, in order, and records their ids.
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

// receipts records how far letters are by their receipts, by one list of all messages, since each
// look starts a process. A letter that is not accepted by the list is looked at by itself, which
// reads the mailbox, too: all of them, or the first. An accepted letter stays accepted.
func (w *world) receipts(ctx context.Context, letters []agentlab.Letter, all bool) error {
	if !slices.ContainsFunc(letters, func(l agentlab.Letter) bool { return !l.Accepted() }) {
		return nil
	}
	out, err := w.teamctl(ctx, "message", "ls", "--json")
	if err != nil {
		return err
	}
	var list struct {
		Messages []struct {
			ID         string
			Deliveries []struct{ State string }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return fmt.Errorf("read the list of messages: %w", err)
	}
	states := map[string]string{}
	for _, m := range list.Messages {
		if len(m.Deliveries) == 1 {
			states[m.ID] = m.Deliveries[0].State
		}
	}
	for i, l := range letters {
		if l.Accepted() {
			continue
		}
		letters[i].State = states[l.ID]
		if letters[i].Accepted() {
			continue
		}
		if letters[i].State, err = w.state(ctx, l.ID); err != nil {
			return err
		}
		if !all && !letters[i].Accepted() {
			return nil
		}
	}
	return nil
}

// settled waits until every letter has a receipt and is in a request to the model, and compares
// receipts with requests. The model is asked about what an agent has a moment later; a letter that
// never arrives is in the tally.
func (w *world) settled(ctx context.Context, c agentlab.Client, letters []agentlab.Letter) (agentlab.Tally, error) {
	return w.settledAs(ctx, c, letters, inbox.Body)
}

// settledAs is settled for letters that the agent sees as returned by shown.
func (w *world) settledAs(ctx context.Context, c agentlab.Client, letters []agentlab.Letter, shown func(string) string) (agentlab.Tally, error) {
	var t agentlab.Tally
	err := w.until(ctx, "accepted, and in a request", func() (bool, error) {
		if err := w.receipts(ctx, letters, false); err != nil {
			return false, err
		}
		for _, l := range letters {
			if !l.Accepted() {
				return false, fmt.Errorf("%s is %q", l.Token, l.State)
			}
		}
		t = c.Compare(letters, w.model.Requests(), shown)
		return len(t.Lost) == 0, t.Err(true)
	})
	if err == nil || ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err := w.receipts(ctx, letters, true); err != nil {
		return t, err
	}
	if t = c.Compare(letters, w.model.Requests(), shown); t.Err(true) == nil {
		return t, err
	}
	return t, nil
}

// exchange sends letters to an agent and compares what its model got with the receipts. again says
// that a letter may arrive twice.
func (w *world) exchange(ctx context.Context, c agentlab.Client, name string, letters []agentlab.Letter, again bool) (string, error) {
	if err := w.post(ctx, name, letters); err != nil {
		return "", err
	}
	t, err := w.settled(ctx, c, letters)
	if err == nil {
		err = t.Err(again)
	}
	return t.String(), err
}
