package services

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

const (
	// MaxAsking is the maximum number of hooks running at once.
	MaxAsking = 4
	// MaxIdleBlocks is how often in a row a hook may keep an agent from being idle: a hook that
	// always blocks would never let it rest.
	MaxIdleBlocks = 8
)

// Hooks runs the user's own hooks on events of members, and sends the feedback of a block to the
// member.
type Hooks struct {
	loop.Quiet
	team   loop.Team
	env    []string
	asking chan struct{} // limits concurrent hooks

	mu     sync.Mutex
	blocks map[string]int // consecutive blocks of a member's idleness, by session
}

// NewHooks returns the service; env is the environment of hooks.
func NewHooks(t loop.Team, env []string) *Hooks {
	return &Hooks{team: t, env: env, asking: make(chan struct{}, MaxAsking), blocks: map[string]int{}}
}

// Event runs the hooks of an event, beside the loop.
func (h *Hooks) Event(e ledger.Event) {
	in := hooks.Input{}
	name := e.ID
	switch {
	case e.What == team.EventTaskClaimed:
		if m, ok := h.Bus.Find(e.Who); ok {
			h.unblocked(m.SessionKey)
		}
		return
	case e.What == team.EventMemberActivity && e.After == string(team.Idle):
		in.Event = hooks.TeammateIdle
	case e.What == team.EventMemberState && e.After == string(team.Exited):
		in.Event = hooks.TeammateExited
		var d struct{ ExitText, Reason string }
		_ = json.Unmarshal(e.Data, &d) // an exit without details still counts
		in.Exit, in.Reason = d.ExitText, d.Reason
	case acceptedNow(e):
		in.Event, in.MessageID, name = hooks.MessageAccepted, e.ID, e.Who
	default:
		return
	}
	m, ok := h.Bus.Find(name)
	if !ok {
		return
	}
	row := m.Member
	in.About(row)
	h.Bus.Go("ask hooks", func(ctx context.Context) func() {
		select {
		case h.asking <- struct{}{}:
			defer func() { <-h.asking }()
		case <-ctx.Done():
			return nil
		}
		if err := h.ask(ctx, in, row); err != nil && ctx.Err() == nil {
			h.team.Log.Warn("ask the hooks", "hook", in.Event, "member", row.Name, "err", err)
			if err := h.failed(ctx, in, err.Error()); err != nil {
				h.team.Log.Warn("log a failed hook", "err", err)
			}
		}
		return nil
	})
}

// blocked counts a block of a member's idleness, and returns how many there were before it.
func (h *Hooks) blocked(session string) (before int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before = h.blocks[session]
	h.blocks[session]++
	return before
}

// unblocked begins the count of a member anew.
func (h *Hooks) unblocked(session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.blocks, session)
}

// acceptedNow reports whether the event is the acceptance of a message by its agent.
func acceptedNow(e ledger.Event) bool {
	has := func(s string) bool {
		return s == string(team.Accepted) || s == string(team.Read) || s == string(team.Answered)
	}
	return e.What == team.MessageEvents+e.After && has(e.After) && !has(e.Before)
}

// ask runs the hooks, and sends the feedback of a block to its recipient.
func (h *Hooks) ask(ctx context.Context, in hooks.Input, row ledger.Member) error {
	asker := hooks.Asker{Layout: h.team.Layout, Ledger: h.team.Ledger, Env: h.env}
	idle := in.Event == hooks.TeammateIdle
	if has, err := asker.Has(ctx, in.Event); err != nil || !has {
		if idle {
			h.unblocked(row.SessionKey)
		}
		return err
	}
	if in.MessageID != "" {
		msg, err := h.team.Ledger.Message(ctx, in.MessageID)
		if err != nil {
			return err
		}
		in.MessageKind, in.MessageFrom, in.MessageText = string(msg.Kind), msg.From, msg.Text
		if msg.Summary == feedbackSummary(in.Event) {
			return nil // feedback of a hook does not run hooks again
		}
	}
	v, err := asker.Ask(ctx, in)
	if (err != nil || !v.Block) && idle {
		h.unblocked(row.SessionKey)
	}
	if err != nil || !v.Block {
		return err
	}
	if idle { // counted before the agent has the feedback, since it may be idle again at once
		if n := h.blocked(row.SessionKey); n >= MaxIdleBlocks {
			return h.failed(ctx, in, fmt.Sprintf("it has blocked %d times in a row: the agent is left idle", n))
		}
	}
	post := ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: row.Name, Text: v.Feedback, Summary: feedbackSummary(in.Event)}
	if in.Event == hooks.TeammateExited { // it reads no more mail
		post.Kind, post.From, post.To = team.KindError, row.Name, team.LeadName
	}
	_, _, err = h.team.Mailer().Post(ctx, post)
	return err
}

// feedbackSummary marks a message as the feedback of a hook.
func feedbackSummary(k hooks.Kind) string {
	return inbox.Summary("", "feedback of the hook "+string(k))
}

func (h *Hooks) failed(ctx context.Context, in hooks.Input, why string) error {
	data, err := json.Marshal(hooks.Told{Hook: in.Event, Text: why})
	if err != nil {
		return err
	}
	_, err = h.team.Ledger.Event(ctx, ledger.Event{What: team.EventHookFailed, ID: in.Teammate, After: why, Data: data})
	return err
}
