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

// Courier opens channels to agents that do not read their mailbox themselves.
type Courier interface {
	// Open returns soon; a nil Channel without an error means that the agent fetches its mail
	// itself.
	Open(ctx context.Context, in ChannelIn) (Channel, error)
}

// ChannelIn is the input of a Courier.
type ChannelIn struct {
	Layout team.Layout
	Member ledger.Member
	Dir    string
	PID    int
	Screen backends.Attached
	Report func(team.Observation) // may be called from any goroutine until Close has returned
}

// Channel is the way to deliver to one generation (see courier.Channel).
type Channel interface {
	Deliver(ctx context.Context, mail []team.Mail) []team.Outcome
	Interrupt(ctx context.Context) error
	Answer(ctx context.Context, r team.Reply) error
	Close()
}

// Moder is a Channel that reports when a mode takes effect in the running agent, and applies it if
// possible (see courier.Channel).
type Moder interface {
	SetMode(mode team.Mode) (when string)
}

// Settler is a Channel that can determine the state of mail delivered before it was opened. If
// Settles is true, it gets such mail once more, as Mail.Again.
type Settler interface{ Settles() bool }

// Retrier is a Channel whose agent may be in a turn that continues by itself at the end of a
// limit. If a person ends the limit earlier, that turn is interrupted.
type Retrier interface{ Retries() bool }

// conn is an open channel with the loop's state for it. calls makes its methods run one at a time.
type conn struct {
	Channel
	calls   sync.Mutex
	settled bool // earlier deliveries have been asked about; for hand-overs
	// askedAbout has the injected messages; for hand-overs.
	askedAbout map[string]askedAbout
	busy       bool              // a hand-over is running
	again      bool              // another one was requested meanwhile
	waiting    bool              // mail is held or left
	asked      map[string]int64  // approval by the agent's own request id; -1: not queued yet
	early      map[string]string // requests withdrawn while they were being queued, with the reason
	owed       []int64           // approvals whose answer could not be sent yet
	failed     int               // attempts to send one, in a row
	brings     map[int64]bool    // approvals whose answer is being sent; true: try again afterwards
}

// deliverWithin bounds one hand-over; a channel that takes longer is faulty.
const deliverWithin = 30 * time.Second

// Open opens the channel of a member that has come up or was adopted. Observations of an earlier
// generation are dropped.
func (d *Delivery) Open(session string) {
	m := d.of(session)
	if m == nil {
		return
	}
	m.seen, m.limit, m.shut = state.Engine{}, time.Time{}, ""
	if d.courier == nil || !m.row.Channel || m.row.Screen == nil {
		return
	}
	m.seen.Ended = d.usage.Ended(m.row.Spec.Agent)
	d.markTurn(m)
	d.showState(m) // the state written by an earlier supervisor is unknown now
	d.open(m, 0)
}

// open opens the channel of a member beside the loop, after failed attempts so far.
func (d *Delivery) open(m *recipient, failed int) {
	session, generation := m.row.SessionKey, m.row.Generation
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
		if err != nil {
			d.Bus.Send("channel not open "+session, func() { d.notOpened(session, generation, failed+1, err) })
			return
		}
		sent := ctx.Err() == nil && d.Bus.Send("channel open "+session, func() { d.opened(session, generation, ch) })
		if !sent && ch != nil {
			ch.Close()
		}
	})
}

// openTimer is the timer for the next attempt to open a channel.
func openTimer(session string) string { return "open:" + session }

// notOpened handles a channel that could not be opened, for that many times. A file may be repaired
// or a resource be free again, so it is tried again while the generation lives; until then its mail
// is held, and its row says why.
func (d *Delivery) notOpened(session, generation string, failed int, err error) {
	m := d.at(session, generation)
	if m == nil {
		return
	}
	if why := inOneLine("its channel cannot be opened: " + err.Error()); why != m.shut {
		d.team.Log.Error("open the channel", "member", m.row.Name, "err", err)
		m.shut = why
		d.showState(m)
	}
	d.deliver(m)
	d.Bus.After(openTimer(session), tryAgainIn(failed), func() {
		if m := d.at(session, generation); m != nil && m.row.Screen != nil {
			d.open(m, failed)
		}
	})
}

// opened handles a channel that was opened; nil if the agent fetches its mail itself.
func (d *Delivery) opened(session, generation string, ch Channel) {
	m := d.at(session, generation)
	if m == nil {
		if ch != nil {
			d.closing(ch)
		}
		return
	}
	if m.shut != "" {
		m.shut = ""
		d.showState(m)
	}
	if ch == nil {
		return
	}
	d.close(m.way)
	m.conn = &conn{Channel: ch, asked: map[string]int64{}, early: map[string]string{}, brings: map[int64]bool{}}
	d.breakOffLate(m)
	d.SetMode(session) // the mode may have changed since the channel was requested
	asks := m.asks
	m.asks = nil
	for _, a := range asks {
		d.askFor(m, a)
	}
	d.deliver(m)
}

// SetMode passes the member's current mode to its channel: an approved plan or a person may have
// changed it. It returns when the mode takes effect, "" for at once.
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
	d.Bus.After(answerTimer(session), 0, nil)
	d.Bus.After(openTimer(session), 0, nil)
	if w := d.ways[session]; w != nil {
		w.shut = ""
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

// closing closes a channel beside the loop, since Close waits for reports to the loop.
func (d *Delivery) closing(ch Channel) {
	d.beside("close a channel", func(context.Context) { ch.Close() })
}
