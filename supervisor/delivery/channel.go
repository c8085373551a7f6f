package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Courier opens the way into agents that do not read their mailbox by themselves.
// The room courier implements it.
type Courier interface {
	// Open returns soon; a nil Channel without an error means that the agent fetches
	// its mail by itself.
	Open(ctx context.Context, in ChannelIn) (Channel, error)
}

// ChannelIn is what a Courier is told.
type ChannelIn struct {
	Layout team.Layout
	Member ledger.Member
	Dir    string
	PID    int
	Screen backends.Attached
	Report func(team.Observation) // may be called from any goroutine until Close has returned
}

// Channel is the way into one generation (see courier.Channel).
type Channel interface {
	Deliver(ctx context.Context, mail []team.Mail) []team.Outcome
	Interrupt(ctx context.Context) error
	Answer(ctx context.Context, r team.Reply) error
	Close()
}

// Moder is a Channel that can say when a mode takes effect in the agent that runs, and
// has it take effect where that can be (see courier.Channel).
type Moder interface {
	SetMode(mode team.Mode) (when string)
}

// Settler is a Channel that finds out what became of mail that was handed over before
// it was opened. It gets such mail once more, as Mail.Again, where it says so.
type Settler interface{ Settles() bool }

// Retrier is a Channel whose agent may sit in a turn that goes on by itself when a limit
// is over. A person who ends the limit before has that turn broken off.
type Retrier interface{ Retries() bool }

// conn is an open channel with what the loop keeps of it. calls keeps its methods one at
// a time.
type conn struct {
	Channel
	calls   sync.Mutex
	settled bool // what was handed over before has been asked about; for hand-overs
	// askedAbout are the messages that are injected; for hand-overs.
	askedAbout map[string]askedAbout
	busy       bool              // a hand-over is under way
	again      bool              // and another was asked for meanwhile
	waiting    bool              // something is held or left
	asked      map[string]int64  // approvals by the agent's own request ids; -1: not queued yet
	early      map[string]string // requests that needed no answer any more while they were queued, and why
	owed       []int64           // approvals whose answer the channel could not bring yet
	brings     map[int64]bool    // approvals whose answer is on its way; true: look again afterwards
}

// deliverWithin bounds one hand-over; what a channel does longer is a fault of its.
const deliverWithin = 30 * time.Second

// Open opens the channel of a member that has come up or was adopted. What was seen of an earlier
// generation is forgotten.
func (d *Delivery) Open(session string) {
	m := d.of(session)
	if m == nil {
		return
	}
	m.seen, m.limit = state.Engine{}, time.Time{}
	if d.courier == nil || !m.row.Channel || m.row.Screen == nil {
		return
	}
	m.seen.Ended = d.usage.Ended(m.row.Spec.Agent)
	generation := m.row.Generation
	d.markTurn(m)
	d.showState(m) // what an earlier supervisor wrote is not known any more
	in := ChannelIn{
		Layout: d.team.Layout, Member: m.row.Member, Dir: m.row.Worktree, PID: m.row.Screen.Proc().Agent.PID, Screen: m.row.Screen,
		Report: func(o team.Observation) {
			if o.At.IsZero() {
				o.At = time.Now()
			}
			d.Bus.Send("observed "+session, func() { d.Observed(session, generation, o) })
		},
	}
	if in.Dir == "" {
		in.Dir = m.row.Spec.Cwd
	}
	d.beside("open a channel", func(ctx context.Context) {
		ch, err := d.courier.Open(ctx, in)
		if err == nil && ch == nil {
			return
		}
		if err != nil {
			d.team.Log.Error("open the channel", "member", in.Member.Name, "err", err)
			return
		}
		if ctx.Err() != nil || !d.Bus.Send("channel open "+session, func() { d.opened(session, generation, ch) }) {
			ch.Close()
		}
	})
}

// opened takes a channel that was opened.
func (d *Delivery) opened(session, generation string, ch Channel) {
	m := d.at(session, generation)
	if m == nil {
		d.closing(ch)
		return
	}
	d.close(m.way)
	m.conn = &conn{Channel: ch, asked: map[string]int64{}, early: map[string]string{}, brings: map[int64]bool{}}
	d.breakOffLate(m)
	d.SetMode(session) // it may have changed since the channel was asked for
	asks := m.asks
	m.asks = nil
	for _, a := range asks {
		d.askFor(m, a)
	}
	d.deliver(m)
}

// SetMode tells the channel of a member the mode that the member is to work in: an approved plan
// or a person may have changed it. It returns when that takes effect, "" at once.
func (d *Delivery) SetMode(session string) string {
	m := d.of(session)
	if m == nil || m.conn == nil {
		return ""
	}
	c, ok := m.conn.Channel.(Moder)
	if !ok {
		return ""
	}
	return c.SetMode(m.row.Spec.Mode)
}

// Closed closes the channel of a generation that has ended.
func (d *Delivery) Closed(session string) {
	d.Bus.After(limitTimer(session), 0, nil)
	if w := d.ways[session]; w != nil {
		d.close(w)
	}
}

func (d *Delivery) close(w *way) {
	if w.conn == nil {
		return
	}
	ch := w.conn.Channel
	w.conn = nil
	d.closing(ch)
}

// closing closes a channel beside the loop: it waits for what reports to the loop.
func (d *Delivery) closing(ch Channel) {
	d.beside("close a channel", func(context.Context) { ch.Close() })
}
