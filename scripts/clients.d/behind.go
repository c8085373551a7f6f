package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// mailBehindDialog checks that messages which arrive while a program asks for a permission do not
// answer the question, and that all of them arrive once it is answered.
func mailBehindDialog(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	m, err := w.becomes(ctx, "mate", "idle")
	if err != nil {
		return "", err
	}
	file := filepath.Join(m.Worktree, "asked")
	if err := os.RemoveAll(file); err != nil {
		return "", err
	}
	if _, err := w.send(ctx, c.Ask+"\n@@say "+w.token("after-dialog")); err != nil {
		return "", err
	}
	if _, err := w.becomes(ctx, "mate", "waiting"); err != nil {
		return "", err
	}
	letters := agentlab.Nasty(w.token("dialog"), w.letters)
	if err := w.post(ctx, "mate", letters); err != nil {
		return "", err
	}
	if _, err := w.becomes(ctx, "mate", "waiting"); err != nil {
		return "", fmt.Errorf("after the messages: %w", err)
	}
	if _, err := os.Stat(file); err == nil {
		return "", errors.New("a message has answered the question")
	}
	if err := w.allow(ctx, c); err != nil {
		return "", err
	}
	return w.compared(ctx, c, letters)
}

// allow approves what the program asks: in the queue or, for versions that ask at their own dialog,
// there.
func (w *world) allow(ctx context.Context, c agentlab.Client) error {
	if c.Older {
		return w.press(ctx, "demo", "mate", "Enter")
	}
	id, err := w.inQueue(ctx, "permission", "")
	if err != nil {
		return err
	}
	_, err = w.teamctl(ctx, "approvals", "approve", id)
	return err
}

// mailBehindDraft checks that messages neither send nor change what a person has begun to write, by
// whichever way they arrive, and that all of them arrive once the draft is sent.
func mailBehindDraft(ctx context.Context, w *world, c agentlab.Client) (string, error) {
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	draft := w.token("draft")
	if err := w.press(ctx, "demo", "mate", strings.Split(draft, "")...); err != nil {
		return "", err
	}
	if err := w.shown(ctx, "mate", draft); err != nil {
		return "", err
	}
	letters := agentlab.Nasty(w.token("behind"), w.letters)
	if err := w.post(ctx, "mate", letters); err != nil {
		return "", err
	}
	if err := w.seen(ctx, letters); err != nil {
		return "", err
	}
	if n := w.model.Arrivals(draft); n > 0 {
		return "", errors.New("the draft was sent")
	}
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	if err := w.shown(ctx, "mate", draft); err != nil {
		return "", err
	}
	if err := w.press(ctx, "demo", "mate", "Enter"); err != nil {
		return "", err
	}
	r, err := w.asked(ctx, draft)
	if err != nil {
		return "", err
	}
	note, err := w.compared(ctx, c, letters)
	if n := w.model.Arrivals(draft); err == nil && n != 1 {
		err = fmt.Errorf("the draft came %d times: %q", n, r.New)
	}
	return note, err
}

// shown waits until the screen of a member has a word.
func (w *world) shown(ctx context.Context, name, word string) error {
	return w.until(ctx, "shown", func() (bool, error) {
		screen, err := w.teamctl(ctx, "capture", name)
		if err == nil && !strings.Contains(screen, word) {
			err = fmt.Errorf("%s is not on the screen:\n%s", word, screen)
		}
		return err == nil, err
	})
}

// seen waits until teamctl has done with letters what it can do now: each was accepted, or the
// state of the others says what they wait for.
func (w *world) seen(ctx context.Context, letters []agentlab.Letter) error {
	return w.until(ctx, "accepted or held", func() (bool, error) {
		if err := w.receipts(ctx, letters, false); err != nil {
			return false, err
		}
		for _, l := range letters {
			if l.Accepted() {
				continue
			}
			out, err := w.teamctl(ctx, "message", "show", l.ID)
			if err != nil {
				return false, err
			}
			why, err := w.teamctl(ctx, "explain", "mate")
			if err == nil && !strings.Contains(out+why, "somebody has begun to type") {
				err = fmt.Errorf("%s is so:\n%s%s", l.Token, out, why)
			}
			return err == nil, err
		}
		return true, nil
	})
}
