// Package loop defines what a supervisor's loop offers its parts, and what the parts must
// implement.
//
// A Service belongs to the loop: Start, Event, Close and all functions that it passes to its Bus
// run on the loop, one at a time, so its state needs no lock. Work that may take long (git, a
// program, a blocking write) runs beside the loop through Bus.Go, and its result returns to the
// loop. A service keeps nothing that a kill could lose: it finds its pending work in the ledger
// when it starts. Package looptest has a Bus for tests.
package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/team"
)

// Service is one concern of a supervisor.
type Service interface {
	// Start starts the service and returns once it has started. ctx bounds only the start. The
	// members of an earlier supervisor are not adopted yet.
	Start(ctx context.Context, bus Bus) error
	// Ready is called once, when all members are adopted.
	Ready()
	// Event handles one event of the ledger, in order. It must not block.
	Event(e ledger.Event)
	// Looked is called after the events of one look at the ledger; roster reports whether one of
	// them was about a member. The rows of the roster are up to date then.
	Looked(roster bool)
	// Jumped is called when the wall clock has jumped against the timers, because the machine has
	// slept or the clock was set; set is how far it was set forward. A timer that waits for a time of
	// day must be armed again, and a time since then is not an age.
	Jumped(set time.Duration)
	// Busy reports whether the service has work left, which keeps an idle supervisor from exiting.
	Busy() bool
	// Close stops the service. Its work beside the loop ends with its context, and the supervisor
	// waits for that.
	Close()
}

// Bus is what the loop offers a service. All methods except Send must be called on the loop.
type Bus interface {
	// Go runs f beside the loop, then the function that f returns, unless nil, on the loop. The
	// context of f ends with the supervisor.
	Go(what string, f func(ctx context.Context) (then func()))
	// After runs f on the loop once d has passed. It replaces a timer of the same name; d <= 0 only
	// stops that timer.
	After(name string, d time.Duration, f func())
	// Armed reports whether the named timer is pending.
	Armed(name string) bool
	// Send runs f on the loop, from any goroutine. It returns false if the loop has ended.
	Send(what string, f func()) bool
	// Members returns the members that the supervisor manages.
	Members() []Member
	// Look returns the member with a session key.
	Look(session string) (Member, bool)
	// Find returns the member with a name, former name, id or session key.
	Find(name string) (Member, bool)
}

// Member is a member as services see it.
type Member struct {
	ledger.Member
	Busy    bool // being started or stopped
	Paused  bool
	Channel bool              // a channel delivers mail and reports states
	Screen  backends.Attached // terminal of its generation; nil if none is alive and no dead pane is left
}

// Team is what every service works with.
type Team struct {
	Layout team.Layout
	Ledger *ledger.Ledger
	Log    *slog.Logger
}

// Mailer returns a Mailer for the supervisor's process.
func (t Team) Mailer() mail.Mailer { return mail.Mailer{Layout: t.Layout, Ledger: t.Ledger} }

// Notice encodes a frame as a notice. Frames hold plain strings, which can always be encoded; if
// one cannot, Notice returns nil and the change that it reports is written anyway.
func (t Team) Notice(f inbox.Frame, key, summary string) *ledger.Notice {
	text, err := inbox.Encode(f)
	if err != nil {
		t.Log.Error("encode a notice", "kind", f.Kind(), "err", err)
		return nil
	}
	return &ledger.Notice{Kind: f.Kind(), Text: text, IdemKey: key, Summary: inbox.Summary("", summary)}
}

// Quiet is embedded in services that handle no events.
type Quiet struct{ Bus Bus }

// Start keeps the bus.
func (q *Quiet) Start(_ context.Context, bus Bus) error {
	q.Bus = bus
	return nil
}

// Ready does nothing.
func (*Quiet) Ready() {}

// Event does nothing.
func (*Quiet) Event(ledger.Event) {}

// Looked does nothing.
func (*Quiet) Looked(bool) {}

// Jumped does nothing.
func (*Quiet) Jumped(time.Duration) {}

// Busy returns false.
func (*Quiet) Busy() bool { return false }

// Close does nothing.
func (*Quiet) Close() {}

// Writing returns the context of a write that is completed even if the supervisor exits.
func Writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}
