package courier

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/teamctl/teamctl/team"
)

// Courier opens channels and holds what they share. Close it after all its channels.
type Courier struct {
	log     *slog.Logger
	hub     *hub
	openers Openers
}

// New returns a Courier that opens the ways of openers and the built-in ones.
func New(log *slog.Logger, openers Openers) *Courier {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Courier{log: log, hub: newHub(), openers: openers}
}

// Close releases what the channels share.
func (c *Courier) Close() { c.hub.close() }

// Open opens the channel of a generation and also watches its screen, for dialogs that no other
// source reports. It records in the bundle what is learned about the conversation.
func (c *Courier) Open(ctx context.Context, f Facts, s Screen, r Report) (Channel, error) {
	f, err := c.Prepare(f, s)
	if err != nil {
		return nil, err
	}
	n := &noter{f: f, report: r}
	f.learn = newLearner(f, n.take)
	f.look.f.learn = f.learn
	ch, err := c.open(ctx, f, s, n.take)
	if err != nil || ch == nil {
		f.learn.close()
		return nil, err
	}
	d := newDialogs(f, s, n.take)
	return &watched{Channel: ch, dialogs: d, learn: f.learn, stop: watchScreen(f, d, n.take)}, nil
}

// Prepare completes the facts of a generation: it reads the screen by the patterns of its kind, and
// files can be listened to. Open does it; tests of one channel do, too.
func (c *Courier) Prepare(f Facts, s Screen) (Facts, error) {
	if f.Log == nil {
		f.Log = c.log
	}
	rules, err := LoadRules(f.Layout.Home, f.Link.Agent)
	if err != nil {
		return f, err
	}
	f.hub, f.look = c.hub, newLooker(f, s, rules)
	f.See = f.look.see
	return f, nil
}

// watched is a channel combined with the watch of its screen.
type watched struct {
	Channel
	dialogs *dialogs // nil: the program makes requests itself
	learn   *learner
	once    sync.Once
	stop    func()
}

// Settles returns the channel's answer, false if it has none.
func (w *watched) Settles() bool {
	c, ok := w.Channel.(interface{ Settles() bool })
	return ok && c.Settles()
}

// Retries returns the channel's answer, false if it has none.
func (w *watched) Retries() bool {
	c, ok := w.Channel.(interface{ Retries() bool })
	return ok && c.Retries()
}

// Close closes the channel and stops the watch.
func (w *watched) Close() {
	w.once.Do(func() {
		w.learn.close()
		w.Channel.Close()
		w.stop()
		w.dialogs.close()
	})
}

// noter records the conversation before it reports.
type noter struct {
	f      Facts
	report Report

	mu   sync.Mutex
	last Conversation
}

func (n *noter) take(o team.Observation) {
	if o.At.IsZero() {
		o.At = time.Now()
	}
	if o.Conversation != "" && o.Tier == team.TierChannel {
		n.note(o)
	}
	n.report(o)
}

func (n *noter) note(o team.Observation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.last
	c.Agent, c.Session, c.Generation, c.ID = n.f.Link.Agent, n.f.Session, n.f.Generation, o.Conversation
	switch o.Activity {
	case team.Working, team.Waiting:
		c.Began, c.Working = true, true
	case team.Idle:
		c.Working = false
	case team.Limited, team.ActivityUnknown, "":
	}
	c.Began = c.Began || n.f.Link.Resumed
	if c == n.last {
		return
	}
	if err := WriteConversation(n.f.Bundle, c); err != nil {
		n.f.Log.Warn("note the conversation", "member", n.f.Name, "err", err)
		return
	}
	n.last = c
}
