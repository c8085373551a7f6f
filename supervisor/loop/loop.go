// Package loop is what a supervisor's loop offers its parts, and what they have to be.
//
// A Service belongs to the loop: Start, Event, Close and every function that it hands to its Bus
// run there, one at a time, so its state needs no lock. Whatever may take long (git, a program,
// a write that waits) runs beside the loop by Bus.Go, and its result comes back to the loop. A
// service keeps nothing that a kill may lose: what it owes it finds again in the ledger when it
// starts. Package looptest has a Bus that a test runs.
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
	// Start begins; it returns once started. ctx bounds the start. The members of an earlier
	// supervisor are not adopted yet.
	Start(ctx context.Context, bus Bus) error
	// Ready is called once, when all members are adopted.
	Ready()
	// Event takes one event of the ledger, in order. It must not block.
	Event(e ledger.Event)
	// Looked is called after the events of one look at the ledger; roster says that one of
	// them was about a member. The rows of the roster are fresh then.
	Looked(roster bool)
	// Busy keeps a supervisor with nothing else to do from leaving.
	Busy() bool
	// Close ends it. What it runs beside the loop ends with its context, and the supervisor
	// waits for that.
	Close()
}

// Bus is what the loop does for a service. Its methods but Send are called on the loop.
type Bus interface {
	// Go runs f beside the loop, and what f returns on the loop unless it is nil. The
	// context of f ends with the supervisor.
	Go(what string, f func(ctx context.Context) (then func()))
	// After runs f on the loop once d has passed. A timer of the same name is replaced;
	// d <= 0 only stops it.
	After(name string, d time.Duration, f func())
	// Armed reports whether the timer of a name has yet to fire.
	Armed(name string) bool
	// Send runs f on the loop, from any goroutine. False: the loop has ended.
	Send(what string, f func()) bool
	// Members are those that the supervisor keeps.
	Members() []Member
	// Look returns the one of a session key.
	Look(session string) (Member, bool)
	// Find returns one by its name, its former name, its id or its session key.
	Find(name string) (Member, bool)
}

// Member is a member as services see it.
type Member struct {
	ledger.Member
	Busy    bool // it is being started or stopped
	Paused  bool
	Channel bool              // mail gets in, and states come out, by a channel
	Screen  backends.Attached // its generation; nil: none lives, and no dead pane is left
}

// Team is what every service works on.
type Team struct {
	Layout team.Layout
	Ledger *ledger.Ledger
	Log    *slog.Logger
}

// Mailer posts and mails from the supervisor's process.
func (t Team) Mailer() mail.Mailer { return mail.Mailer{Layout: t.Layout, Ledger: t.Ledger} }

// Notice is a notice of a frame. Ours hold plain strings, which can be encoded; nil: one could
// not, and the change that it is about is written all the same.
func (t Team) Notice(f inbox.Frame, key, summary string) *ledger.Notice {
	text, err := inbox.Encode(f)
	if err != nil {
		t.Log.Error("encode a notice", "kind", f.Kind(), "err", err)
		return nil
	}
	return &ledger.Notice{Kind: f.Kind(), Text: text, IdemKey: key, Summary: inbox.Summary("", summary)}
}

// Quiet is a service that takes no events. It is embedded.
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

// Busy is false.
func (*Quiet) Busy() bool { return false }

// Close does nothing.
func (*Quiet) Close() {}

// Writing bounds a write that is completed although the supervisor leaves.
func Writing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}
