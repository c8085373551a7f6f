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

// Core is the part of the core that a delivery uses. Its methods are called on the loop.
type Core interface {
	// Patch writes to the row of the member with the session key, which it sets in p.
	Patch(session string, p ledger.MemberPatch) error
	// Ready records that a member takes messages, with the evidence.
	Ready(session, evidence string)
	// AtRest is called when a member's turn is over.
	AtRest(session string)
}

// Usage handles the members' usage. Its methods are called on the loop.
type Usage interface {
	// Ended returns when the last limit of an agent was ended; zero: never, or unknown.
	Ended(agent string) time.Time
	// Limited records a limit that a member has reached; false: it could not be recorded.
	Limited(m loop.Member, v team.Verdict) bool
	// Counted records the usage in an observation.
	Counted(m loop.Member, o team.Observation)
}

// Delivery is the delivery to all members of a team.
type Delivery struct {
	loop.Quiet
	team    loop.Team
	core    Core
	usage   Usage
	courier Courier // nil: no channels
	policy  policy.ServicePolicy
	wall    func() time.Time
	ways    map[string]*way // by session key
	ages    ages            // of deliveries; hand-overs get a copy
}

// Options configure a Delivery.
type Options struct {
	Team    loop.Team
	Core    Core
	Usage   Usage
	Courier Courier // nil: no channels
	Policy  policy.ServicePolicy
	Wall    func() time.Time // for what people read
}

// New returns the service.
func New(o Options) *Delivery {
	return &Delivery{team: o.Team, core: o.Core, usage: o.Usage, courier: o.Courier, policy: o.Policy, wall: o.Wall, ways: map[string]*way{}, ages: ages{began: time.Now()}}
}

// way is the state of one member.
type way struct {
	conn        *conn           // nil if no channel is open
	shut        string          // why its channel could not be opened; "" if it is open, or being opened
	seen        state.Engine    // observations of its generation
	limit       time.Time       // Since of the last recorded limit
	asks        []team.Ask      // requests made before the channel was known to be open
	mark        ledger.TurnMark // start of the turn that the next idle notice covers
	interrupted time.Time       // when its turn was interrupted; zero: not since it began
}

// recipient is a member with its way.
type recipient struct {
	row loop.Member
	*way
}

// of returns a member of the core; nil for any other.
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

// at returns the member if it is running the generation.
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

// refresh reads the core's changes.
func (d *Delivery) refresh(m *recipient) {
	if row, ok := d.Bus.Look(m.row.SessionKey); ok {
		m.row = row
	}
}

// Event delivers mailed messages and answers.
func (d *Delivery) Event(e ledger.Event) {
	switch {
	case strings.HasPrefix(e.What, team.ApprovalEvents) && e.What != team.EventApprovalAsked:
		d.dialogAnswered(e)
		if id, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
			d.answerAsk(id)
		}
	case e.What == team.EventMessageMailed,
		e.What == team.EventMessageHeld && e.Before == string(team.Injected): // it is to be delivered again
		if m, ok := d.Bus.Find(e.Who); ok {
			d.Deliver(m.SessionKey)
		}
	}
}

// Looked drops the members that have left.
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

// Close closes all channels; the agents keep running.
func (d *Delivery) Close() {
	for _, w := range d.ways {
		d.close(w)
	}
}

// beside runs f beside the loop, without a continuation.
func (d *Delivery) beside(what string, f func(ctx context.Context)) {
	d.Bus.Go(what, func(ctx context.Context) func() {
		f(ctx)
		return nil
	})
}
