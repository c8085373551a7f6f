package courier

import (
	"context"
	"log/slog"
	"strings"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// Facts describe the generation for which a channel is opened.
type Facts struct {
	Layout     team.Layout
	Bundle     team.Bundle
	Name       string // of the member
	AgentID    string
	Session    string // session key of the member
	Generation string
	Dir        string // working directory
	PID        int    // of the process that the shim started
	Mode       team.Mode
	Link       adapter.Link
	Log        *slog.Logger
	// Probe asks the program for its version if its link lacks it; nil disables that.
	Probe func(context.Context) (string, error)
	// See reads the member's screen; nil if the screen is not read.
	See func(context.Context) (adapter.Seen, error)

	hub   *hub
	look  *looker
	learn *learner // nil: the link has the version
}

// Screen is the member's terminal. A backend's Attached implements it.
type Screen interface {
	// TypeText pastes text, and sends Enter after it if enter is set.
	TypeText(ctx context.Context, text string, enter bool) error
	// Capture returns the screen with up to scrollback lines above it.
	Capture(ctx context.Context, scrollback int) (string, error)
	// Interrupt sends SIGINT to the foreground process group.
	Interrupt(ctx context.Context) error
}

// Report receives the observations of a channel. It must not block for long. Channels call it from
// any goroutine until Close has returned.
type Report func(team.Observation)

// Channel is the way to deliver to one generation. Its methods are called one at a time, except
// SetMode and Close.
type Channel interface {
	// Deliver sends mail in the given order and returns one outcome for each message, in that
	// order. It returns soon: what the CLI does not take now is Held.
	Deliver(ctx context.Context, mail []team.Mail) []team.Outcome
	// Interrupt ends the current turn by the CLI's own means.
	Interrupt(ctx context.Context) error
	// Answer delivers the answer to a reported Ask. CodeNotFound: the request is no longer open.
	Answer(ctx context.Context, r team.Reply) error
	// SetMode switches the running agent to a mode, as far as possible, and returns when that takes
	// effect; "" means at once, or already done. It does not wait for the agent, may be called at
	// any time, and is idempotent.
	SetMode(mode team.Mode) (when string)
	// Close disconnects and waits for the channel's goroutines; the agent keeps running.
	Close()
}

// Opener opens one kind of channel. ctx bounds only the opening. The server of an agent that has
// just started may not be up yet, so an opener returns at once, connects in the background, and
// reconnects when the connection is lost.
type Opener func(ctx context.Context, f Facts, s Screen, r Report) (Channel, error)

// Openers has the opener of each way that needs work by the supervisor. The ways of this package
// are built in.
type Openers map[adapter.Way]Opener

// own holds the ways that work with any program.
var own = Openers{
	adapter.WayTyping: openTyping,
	adapter.WayPull:   openPull,
}

// open opens the first way of the link that has an opener. A nil Channel without an error means
// that the agent fetches its mail itself.
func (c *Courier) open(ctx context.Context, f Facts, s Screen, r Report) (Channel, error) {
	var ways []string
	for _, w := range f.Link.Ways {
		switch w {
		case adapter.WayMailbox, adapter.WayACP:
			return nil, nil
		case adapter.WayNative, adapter.WayAppServer, adapter.WayServer, adapter.WayHooks, adapter.WayPull, adapter.WayTyping:
		}
		for _, table := range []Openers{c.openers, own} {
			if open, ok := table[w]; ok {
				return open(ctx, f, s, r)
			}
		}
		ways = append(ways, string(w))
	}
	return nil, team.Errorf(team.CodeUnavailable, "open a channel to %s: no way into it (%s)", f.AgentID, strings.Join(ways, ", ")).
		WithReason(team.ReasonNoChannel)
}
