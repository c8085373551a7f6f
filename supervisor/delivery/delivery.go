package delivery

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/policy"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// Core is what a delivery needs of the core. Its methods are called on the loop.
type Core interface {
	// Patch writes to the row of a member, whose session key it sets.
	Patch(session string, p ledger.MemberPatch) error
	// Ready records that a member takes messages, and what showed it.
	Ready(session, evidence string)
	// AtRest is called when a member's turn is over.
	AtRest(session string)
}

// Usage is told what members use. Its methods are called on the loop.
type Usage interface {
	// Ended is when the last limit of an agent was ended; zero: never, or not known.
	Ended(agent string) time.Time
	// Limited notes a limit that a member has run into; false: it could not be noted.
	Limited(m loop.Member, v team.Verdict) bool
	// Counted takes what an observation says of what was used.
	Counted(m loop.Member, o team.Observation)
}

// Delivery is the delivery to all members of a team.
type Delivery struct {
	loop.Quiet
	team    loop.Team
	core    Core
	usage   Usage
	courier Courier // nil: there are no channels
	policy  policy.ServicePolicy
	wall    func() time.Time
	ways    map[string]*way // by session key
}

// Options are what a Delivery is made of.
type Options struct {
	Team    loop.Team
	Core    Core
	Usage   Usage
	Courier Courier // nil: there are no channels
	Policy  policy.ServicePolicy
	Wall    func() time.Time // for what people read
}

// New returns the service.
func New(o Options) *Delivery {
	return &Delivery{team: o.Team, core: o.Core, usage: o.Usage, courier: o.Courier, policy: o.Policy, wall: o.Wall, ways: map[string]*way{}}
}

// way is what is kept of one member.
type way struct {
	conn        *conn           // nil without an open channel
	seen        state.Engine    // what was seen of its generation
	limit       time.Time       // Since of the limit that was noted last
	asks        []team.Ask      // asked before the channel was known to be open
	mark        ledger.TurnMark // where the turn begins that the next idle notice tells of
	interrupted time.Time       // when somebody ended its turn; zero: not since it began
}

// recipient is a member with the way to it.
type recipient struct {
	row loop.Member
	*way
}

// of returns a member that the core keeps; nil for any other.
func (d *Delivery) of(session string) *recipient {
	row, ok := d.Bus.Look(session)
	if !ok {
		return nil
	}
	w := d.ways[session]
	if w == nil {
		w = &way{}
		d.ways[session] = w
	}
	return &recipient{row, w}
}

// at is of for one generation, while it runs.
func (d *Delivery) at(session, generation string) *recipient {
	if m := d.of(session); m != nil && m.row.Generation == generation && m.row.Observed == team.Running {
		return m
	}
	return nil
}

// patch writes to a member's row.
func (d *Delivery) patch(m *recipient, p ledger.MemberPatch) {
	_ = d.core.Patch(m.row.SessionKey, p) // the core logs it
	d.refresh(m)
}

// refresh takes over what the core has changed.
func (d *Delivery) refresh(m *recipient) {
	if row, ok := d.Bus.Look(m.row.SessionKey); ok {
		m.row = row
	}
}

// Event delivers what was mailed, and brings what was answered.
func (d *Delivery) Event(e ledger.Event) {
	switch {
	case strings.HasPrefix(e.What, team.ApprovalEvents) && e.What != team.EventApprovalAsked:
		if id, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
			d.answerAsk(id)
		}
	case e.What == team.EventMessageMailed,
		e.What == team.EventMessageHeld && e.Before == string(team.Injected): // it is to be given again
		if m, ok := d.Bus.Find(e.Who); ok {
			d.Deliver(m.SessionKey)
		}
	}
}

// Looked forgets the members that have left.
func (d *Delivery) Looked(roster bool) {
	if !roster {
		return
	}
	for session, w := range d.ways {
		if _, ok := d.Bus.Look(session); !ok {
			d.close(w)
			delete(d.ways, session)
		}
	}
}

// Close closes every channel; the agents go on.
func (d *Delivery) Close() {
	for _, w := range d.ways {
		d.close(w)
	}
}

// beside runs f beside the loop, with nothing to do afterwards.
func (d *Delivery) beside(what string, f func(ctx context.Context)) {
	d.Bus.Go(what, func(ctx context.Context) func() {
		f(ctx)
		return nil
	})
}
