package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/agentlab"
	"github.com/teamctl/teamctl/internal/fakemodel"
)

// Rows that compare receipts with the requests of the model.
const (
	rowIdle        = "messages of any content while idle"
	rowBusy        = "messages of any content in mid-turn"
	rowKilled      = "killed with what it was given"
	rowInterrupted = "interrupted with what it was given"
	rowAmid        = "supervisor, agent, shim and tmux killed amid a delivery"
	rowDialog      = "messages of any content behind a dialog"
	rowDraft       = "messages of any content behind a draft"
	rowLate        = "in mid-turn while its version is not known"
	rowAnew        = "a conversation that is gone is begun anew"
)

// byHand are the rows that run only if they are named.
var byHand = []check{{"a thousand messages, and kills", mailThousand}}

// mailIdle checks that messages with all kinds of content reach an idle agent, whole and in order,
// and that each receipt is true.
func mailIdle(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	return w.exchange(ctx, c, "mate", agentlab.Nasty(w.token("idle"), w.letters), false)
}

// mailBusy is mailIdle in mid-turn.
func mailBusy(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	then := w.token("then")
	if err := w.long(ctx, 2*w.busy, then); err != nil {
		return "", err
	}
	return w.exchange(ctx, c, "mate", agentlab.Nasty(w.token("busy"), w.letters), false)
}

// handed waits until a message was handed over.
func (w *world) handed(ctx context.Context, id string) error {
	return w.until(ctx, "handed over", func() (bool, error) {
		state, err := w.state(ctx, id)
		if err == nil && (state == "mailed" || state == "posted" || state == "held") {
			err = errors.New("it is " + state)
		}
		return err == nil, err
	})
}

// mailKilled kills an agent repeatedly, each time as soon as it was given a message. Each message
// is in the conversation that continues, or is given again.
func mailKilled(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	letters := agentlab.Nasty(w.token("killed"), w.rounds)
	for i := range letters {
		m, err := w.becomes(ctx, "mate", "idle")
		if err != nil {
			return "", err
		}
		if i%2 == 1 { // in mid-turn
			if err := w.long(ctx, 3, w.token("then")); err != nil {
				return "", err
			}
		}
		if err := w.post(ctx, "mate", letters[i:i+1]); err != nil {
			return "", err
		}
		if err := w.handed(ctx, letters[i].ID); err != nil {
			return "", err
		}
		if err := syscall.Kill(m.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return "", fmt.Errorf("kill the agent %d: %w", m.PID, err)
		}
		if _, err := w.teamctl(ctx, "restart", "mate"); err != nil {
			return "", err
		}
	}
	return w.compared(ctx, c, letters)
}

// mailInterrupted interrupts the turn of an agent as soon as it was given a message.
func mailInterrupted(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	letters := agentlab.Nasty(w.token("interrupted"), w.rounds)
	for i := range letters {
		if err := w.idle(ctx, "mate"); err != nil {
			return "", err
		}
		if i%2 == 1 {
			if err := w.long(ctx, 3, w.token("then")); err != nil {
				return "", err
			}
		}
		if err := w.post(ctx, "mate", letters[i:i+1]); err != nil {
			return "", err
		}
		if err := w.handed(ctx, letters[i].ID); err != nil {
			return "", err
		}
		if _, err := w.teamctl(ctx, "interrupt", "mate"); err != nil {
			return "", err
		}
		if err := w.goOn(ctx); err != nil {
			return "", err
		}
	}
	return w.compared(ctx, c, letters)
}

// goOns is the number of the message that must reach the model: a late interrupt may keep those
// before it.
const goOns = 3

// goOn gives an agent a message without a script, and waits for it in a request: in what an agent
// still has of an interrupted turn, the model may carry out another script. A late interrupt may
// end the turn of that message before the model is asked. The program then has the message and
// includes it in its next request, which another message causes.
func (w *world) goOn(ctx context.Context) error {
	var owed []string
	for i := 1; ; i++ {
		token := w.token("go-on")
		id, err := w.send(ctx, token)
		if err != nil {
			return err
		}
		r, came, err := w.cameOrEnded(ctx, id, token, i == goOns)
		if err != nil {
			return err
		}
		owed = append(owed, token)
		if !came {
			continue
		}
		all := r.Came()
		for _, t := range owed {
			if !strings.Contains(all, t) {
				return fmt.Errorf("%s was accepted, and is not in the next request", t)
			}
		}
		return nil
	}
}

// restLooks is the number of consecutive looks that find an agent at rest before its turn counts as
// ended: a message may be accepted before the turn that it begins.
const restLooks = 5

// cameOrEnded waits for the request with a message or, unless it must come, until the message is
// accepted by an agent that stays at rest and has asked nothing.
func (w *world) cameOrEnded(ctx context.Context, id, token string, must bool) (r fakemodel.Request, came bool, err error) {
	rests := 0
	err = w.until(ctx, token+" in a request", func() (bool, error) {
		state, err := w.state(ctx, id)
		if err != nil {
			return false, err
		}
		m, err := w.member(ctx, "mate")
		if err != nil {
			return false, err
		}
		for _, q := range w.model.Requests() { // after the looks: the model may have been asked meanwhile
			if !q.Side && strings.Contains(q.New, token) {
				r, came = q, true
				return true, nil
			}
		}
		rests++
		if !(agentlab.Letter{State: state}).Accepted() || m.Activity != "idle" {
			rests = 0
		}
		if rests == restLooks && !must {
			return true, nil
		}
		return false, fmt.Errorf("it is %s, and the agent %s", state, m.Activity)
	})
	return r, came, err
}

// compared has the model asked once more, so that it gets what the agent has, and compares. A
// letter that was given to a process that is gone may arrive twice.
func (w *world) compared(ctx context.Context, c agentlab.Client, letters []agentlab.Letter) (string, error) {
	if err := w.goOn(ctx); err != nil {
		return "", err
	}
	t, err := w.settled(ctx, c, letters)
	if err == nil {
		t = c.Compare(letters, w.model.Requests(), inbox.Body)
		err = t.Err(true)
	}
	if len(t.Doubled) > 0 {
		fmt.Fprintf(os.Stderr, "%s: doubled %s\n", c.Label(), strings.Join(t.Doubled, ", "))
	}
	return t.String(), err
}
