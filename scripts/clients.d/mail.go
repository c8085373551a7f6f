package main

import (
	"context"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// nastyMany is how many messages each row of mail sends.
const nastyMany = 50

// mailIdle: messages with all kinds of content reach an agent that is idle, whole, and
// each receipt is true.
func mailIdle(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	return w.exchange(ctx, "mate", agentlab.Nasty(w.token("idle"), nastyMany), false)
}

// mailBusy: so they do in mid-turn.
func mailBusy(ctx context.Context, w *world, _ agentlab.Client) (string, error) {
	if err := w.idle(ctx, "mate"); err != nil {
		return "", err
	}
	then := w.token("then")
	if err := w.long(ctx, 2*w.busy, then); err != nil {
		return "", err
	}
	return w.exchange(ctx, "mate", agentlab.Nasty(w.token("busy"), nastyMany), false)
}
