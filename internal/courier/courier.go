package courier

import (
	"context"
	"log/slog"
	"strings"

	"github.com/teamctl/teamctl/internal/adapter"
	"github.com/teamctl/teamctl/team"
)

// Facts are what a channel may know of the generation that it is opened for.
type Facts struct {
	Layout     team.Layout
	Bundle     team.Bundle
	Name       string // of the member
	AgentID    string
	Session    string // session key of the member
	Generation string
	Dir        string // where it runs
	PID        int    // of the process that the shim started
	Mode       team.Mode
	Link       adapter.Link
	Log        *slog.Logger
	// Probe asks the program for its version, which its link lacks; nil where nobody is to.
	Probe func(context.Context) (string, error)
	// See reads the member's screen now; nil where it is not read.
	See func(context.Context) (adapter.Seen, error)

	hub   *hub
	look  *looker
	learn *learner // nil: the version is the link's
}

// Screen is the member's terminal. A backend's Attached is one.
type Screen interface {
	// TypeText pastes text, and sends Enter after it if enter is set.
	TypeText(ctx context.Context, text string, enter bool) error
	// Capture returns the screen with up to scrollback lines above it.
	Capture(ctx context.Context, scrollback int) (string, error)
	// Interrupt sends SIGINT to the foreground process group.
	Interrupt(ctx context.Context) error
}

// Report takes what a channel sees. It does not block for long and may be called
// from any goroutine, until Close has returned.
type Report func(team.Observation)

// Channel is one generation's way in. Its methods are called one at a time, but
// for SetMode and Close.
type Channel interface {
	// Deliver hands mail over, in the order given, and answers for each, in that
	// order. It returns soon: what the CLI does not take now is Held.
	Deliver(ctx context.Context, mail []team.Mail) []team.Outcome
	// Interrupt ends the turn under way, by the CLI's own means.
	Interrupt(ctx context.Context) error
	// Answer brings the answer to an Ask that was reported. CodeNotFound: nobody
	// waits for it any more.
	Answer(ctx context.Context, r team.Reply) error
	// SetMode has the agent go on in a mode, as far as that can be done while it runs,
	// and says when it takes effect; "" is at once, or already. It does not wait for the
	// agent, may be called at any time, and changes nothing when it is called again.
	SetMode(mode team.Mode) (when string)
	// Close gives the connection up and waits for what the channel runs; the agent
	// goes on.
	Close()
}

// Opener opens one kind of channel. ctx bounds opening only. The server of an agent
// that has just started may not be up yet: an opener returns at once, connects by
// itself, and connects again when the connection is lost.
type Opener func(ctx context.Context, f Facts, s Screen, r Report) (Channel, error)

// Openers has the opener of each way that the supervisor has to do something for. Those of
// this package are there without being named.
type Openers map[adapter.Way]Opener

// own are the ways that any program has.
var own = Openers{
	adapter.WayHooks:  openHooks,
	adapter.WayTyping: openTyping,
	adapter.WayPull:   openPull,
}

// open opens the first way of the link that there is an opener for. A nil Channel
// without an error: the agent fetches its mail by itself.
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
