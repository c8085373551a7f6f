package supervisor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
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

// line is a channel with what the loop keeps of it. calls keeps its methods one at
// a time.
type line struct {
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

// openLine opens the channel of a member that has come up or was adopted.
func (s *Supervisor) openLine(m *member) {
	m.seen, m.limit = state.Engine{}, time.Time{}
	if s.cfg.Courier == nil || !m.plan.Channel || m.at == nil {
		return
	}
	if q := s.readQuota(); q != nil {
		m.seen.Ended = q.Ended(m.row.Spec.Agent)
	}
	session, gen := m.row.SessionKey, m.row.Generation
	s.markTurn(m)
	s.showState(m) // what an earlier supervisor wrote is not known any more
	in := ChannelIn{
		Layout: s.cfg.Layout, Member: m.row, Dir: m.row.Worktree, PID: m.at.Proc().Agent.PID, Screen: m.at,
		Report: func(o team.Observation) {
			if o.At.IsZero() {
				o.At = time.Now()
			}
			select {
			case s.msgs <- observed{session, gen, o}:
			case <-s.ctx.Done():
			}
		},
	}
	if in.Dir == "" {
		in.Dir = m.row.Spec.Cwd
	}
	s.step(func(ctx context.Context) message {
		ch, err := s.cfg.Courier.Open(ctx, in)
		if err == nil && ch == nil {
			return nil
		}
		if err != nil {
			s.log.Error("open the channel", "member", in.Member.Name, "err", err)
			return nil
		}
		if s.ctx.Err() != nil || !s.send(lineOpen{session, gen, ch}) {
			ch.Close()
		}
		return nil
	})
}

// lineOpen is a channel that was opened.
type lineOpen struct {
	session, generation string
	ch                  Channel
}

func (l lineOpen) apply(s *Supervisor) {
	m := s.members[l.session]
	if m == nil || m.row.Generation != l.generation || m.row.Observed != team.Running {
		s.closing(l.ch)
		return
	}
	s.closeLine(m)
	m.line = &line{Channel: l.ch, asked: map[string]int64{}, early: map[string]string{}, brings: map[int64]bool{}}
	s.breakOffLate(m)
	s.tellMode(m) // it may have changed since the channel was asked for
	asks := m.asks
	m.asks = nil
	for _, a := range asks {
		s.askFor(m, a)
	}
	s.deliver(m)
}

// tellMode tells the channel the mode that the member is to work in: an approved plan
// or a person may have changed it. It returns when that takes effect, "" at once.
func (s *Supervisor) tellMode(m *member) string {
	if m.line == nil {
		return ""
	}
	c, ok := m.line.Channel.(Moder)
	if !ok {
		return ""
	}
	return c.SetMode(m.row.Spec.Mode)
}

// closeLine gives the channel of a generation up.
func (s *Supervisor) closeLine(m *member) {
	if m.line == nil {
		return
	}
	ch := m.line.Channel
	m.line = nil
	s.closing(ch)
}

// closing closes a channel outside the loop: it waits for what reports to the loop.
func (s *Supervisor) closing(ch Channel) {
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		ch.Close()
	}()
}

// closeLines is for the end of the loop.
func (s *Supervisor) closeLines() {
	for _, m := range s.members {
		s.closeLine(m)
	}
}

// deliver hands over what waits for a member, one hand-over at a time.
func (s *Supervisor) deliver(m *member) {
	l := m.line
	if l == nil || m.row.Observed != team.Running {
		return
	}
	if l.busy {
		l.again = true
		return
	}
	l.busy = true
	row := m.row
	s.step(func(ctx context.Context) message {
		left, next, err := s.handOver(ctx, l, row)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("hand over mail", "member", row.Name, "err", err)
		}
		return handedOver{row.SessionKey, l, left || err != nil, next}
	})
}

// handedOver is the end of a hand-over.
type handedOver struct {
	session string
	line    *line
	left    bool
	next    time.Duration // until something is to be asked about; 0 for never
}

func (h handedOver) apply(s *Supervisor) {
	h.line.busy, h.line.waiting = false, h.left
	m := s.members[h.session]
	if m == nil || m.line != h.line {
		return
	}
	s.after(evidenceTimer(h.session), h.next, lookForEvidence{h.session})
	if h.line.again {
		h.line.again = false
		s.deliver(m)
	}
}

// handOver gives a channel what its member has not got, and writes what became of
// it. left says that something is still waiting, next when something that was handed over
// is to be asked about.
func (s *Supervisor) handOver(ctx context.Context, l *line, row ledger.Member) (left bool, next time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	out, err := s.cfg.Ledger.Waiting(ctx, row.SessionKey)
	if err != nil {
		return true, s.policy.Evidence, err
	}
	if left, next, err = s.handOverTo(ctx, l, row, out); err != nil {
		return left, next, err
	}
	due, err := s.giveUpHope(ctx, l, row, out, time.Now())
	return left, sooner(next, due), err
}

// handOverTo is handOver of what waits.
func (s *Supervisor) handOverTo(ctx context.Context, l *line, row ledger.Member, out []ledger.Outgoing) (left bool, next time.Duration, err error) {
	asking := !l.settled && l.settles()
	doubt, next := s.askAbout(l, out, asking, time.Now()) // handed over before, and not known to be accepted
	var give []team.Mail
	var drop []ledger.DeliveryMark
	for _, o := range out {
		switch o.Delivery.State {
		case team.Mailed, team.Held:
			if ownWay(ctx, s.cfg.Ledger, o.Message) {
				if o.Message.At < row.StartedAt { // who asked is gone
					drop = append(drop, ledger.DeliveryMark{MessageID: o.Message.ID, Recipient: o.Delivery.Recipient, State: team.Dropped,
						Reason: "the request was of an earlier process"})
				}
				continue
			}
			give = append(give, mail.Of(ctx, s.cfg.Ledger, o.Message))
		case team.Posted: // its poster mails it, and that wakes us
		case team.Injected, team.Unknown:
			if doubt[o.Message.ID] {
				again := mail.Of(ctx, s.cfg.Ledger, o.Message)
				again.Again = true
				give = append(give, again)
			}
		case team.Accepted, team.Read, team.Answered, team.Dropped:
		}
	}
	if len(drop) > 0 {
		if _, err := s.cfg.Ledger.MarkMany(ctx, drop); err != nil {
			return true, next, err
		}
	}
	if len(give) == 0 {
		return false, next, nil
	}
	if held, err := s.holdBack(ctx, row, out); held || err != nil {
		return true, next, err
	}
	l.calls.Lock()
	outcomes := l.Deliver(ctx, give)
	l.notePending(outcomes)
	l.settled = l.settled || asking && !slices.ContainsFunc(outcomes, func(o team.Outcome) bool { return doubt[o.ID] && o.State == team.Held })
	l.calls.Unlock()
	var marks []ledger.DeliveryMark
	var got []string
	for _, o := range outcomes {
		if doubt[o.ID] && o.State != team.Accepted { // it stays as it was
			left = left || o.State == team.Held
			continue
		}
		switch o.State {
		case team.Injected, team.Accepted:
			got = append(got, o.ID)
			if o.State == team.Injected {
				next = sooner(next, s.lookAgain(l))
			}
		default:
			left = true
		}
		if o.State == "" {
			continue
		}
		mark := ledger.DeliveryMark{MessageID: o.ID, Recipient: row.Name, State: o.State, Reason: o.Reason, Evidence: o.Evidence}
		if o.State == team.Held { // a hook may have given it meanwhile, and it must not be given again
			mark.IfStates = []team.DeliveryState{team.Mailed, team.Held}
		}
		marks = append(marks, mark)
	}
	return left, next, s.noteDelivered(ctx, row, marks, got)
}

// noteDelivered writes marks, and marks in the mailbox file what the agent has got:
// it must not find it there again.
func (s *Supervisor) noteDelivered(ctx context.Context, row ledger.Member, marks []ledger.DeliveryMark, got []string) error {
	// What was handed over was handed over, whatever ends now.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if _, err := s.cfg.Ledger.MarkMany(ctx, marks); err != nil {
		return err
	}
	if len(got) == 0 {
		return nil
	}
	box, err := s.mailer().Box(row.Name)
	if err != nil {
		return err
	}
	_, err = box.MarkRead(ctx, got...)
	return err
}

// observed is what was seen of a generation.
type observed struct {
	session, generation string
	team.Observation
}

// onSeen takes what a hook has seen.
func (s *Supervisor) onSeen(n Note) {
	for _, m := range s.members {
		if m.row.Name != n.Agent || m.row.Generation != n.Generation {
			continue
		}
		var o team.Observation
		if err := json.Unmarshal(n.Data, &o); err != nil {
			s.log.Warn("read what a hook saw", "member", n.Agent, "err", err)
			return
		}
		observed{m.row.SessionKey, n.Generation, o}.apply(s)
	}
}

func (o observed) apply(s *Supervisor) {
	m := s.members[o.session]
	if m == nil || m.row.Generation != o.generation || m.row.Observed != team.Running {
		return
	}
	if !m.plan.Channel { // what it does it says itself
		s.counted(m, o.Observation)
		return
	}
	was := m.row.Activity
	if o.At.UnixMilli() < m.row.StartedAt { // of a conversation that it has taken up: that turn was another process's
		o.Failed = ""
	}
	o.Failed = inOneLine(o.Failed)
	m.seen.Take(o.Observation)
	s.turnGoes(m, o.Observation)
	s.showState(m)
	s.turnBroken(m)
	if o.Activity == team.Limited {
		s.breakOffLate(m)
	}
	if len(o.Receipts) > 0 {
		s.receipts(m, o.Receipts)
	}
	if o.Ask != nil {
		s.askFor(m, *o.Ask)
	}
	if o.Settled != "" {
		s.settledElsewhere(m, o.Settled, answeredThere)
	}
	s.answerOwed(m)
	if m.row.Activity == team.Idle && was != team.Idle {
		s.turnEnded(m)
	}
	s.counted(m, o.Observation)
	switch l := m.line; {
	case l == nil:
	case l.waiting:
		s.deliver(m)
	case l.busy && m.row.Activity != was: // the hand-over may have seen what was before
		l.again = true
	}
}

// showState writes what the engine says to the member's row, where that is news.
func (s *Supervisor) showState(m *member) {
	v := m.seen.Verdict(time.Now())
	if v.Ready && !m.row.Ready {
		s.markReady(m, v.Source)
	}
	until := int64(0)
	if !v.Until.IsZero() {
		until = v.Until.UnixMilli()
		s.after("limited:"+m.row.SessionKey, time.Until(v.Until)+time.Millisecond, limitOver{m.row.SessionKey})
	}
	// One limit may follow another before anybody has heard of the first one's end.
	limit := v.Activity == team.Limited && (!v.Since.Equal(m.limit) || until != m.row.LimitedTo)
	if v.Activity != m.row.Activity || v.For != m.row.WaitsFor || until != m.row.LimitedTo || v.Failed != m.row.TurnError ||
		saysNoHooks(m.row, v) != state.HasNoHooks(m.row) {
		s.writeState(m, v, until)
	}
	if limit {
		s.limited(m, v)
	}
}

// writeState writes to the member's row what it does, in Unix milliseconds how long it
// is limited, and why.
func (s *Supervisor) writeState(m *member, v team.Verdict, until int64) {
	why := ""
	if v.Activity == team.Waiting || v.Activity == team.Limited {
		why = string(v.Activity)
		if v.For != "" {
			why += " for " + string(v.For)
		}
		if len(v.Evidence) > 0 {
			why += ": " + strings.Join(v.Evidence, " / ")
		}
	}
	if saysNoHooks(m.row, v) {
		why = state.NoHooksReason
	}
	if state.Paused(m.row) { // what was on its way when it was frozen
		why = state.PausedReason
	}
	p := ledger.MemberPatch{Activity: &v.Activity, WaitsFor: &v.For, LimitedTo: &until, TurnError: &v.Failed, Reason: &why}
	if v.Activity == team.Idle && (m.row.Activity != team.Idle || v.Failed != "" && v.Failed != m.row.TurnError) && m.plan.Channel {
		p.Notice = s.turnOver(m, v.Failed)
	}
	_ = s.patch(m, p)
}

// limitOver looks again once a limit is over.
type limitOver struct{ session string }

func (l limitOver) apply(s *Supervisor) {
	if m := s.members[l.session]; m != nil && m.row.Observed == team.Running {
		s.showState(m)
	}
}

// receipts writes what a channel has learned of mail that was handed over before.
func (s *Supervisor) receipts(m *member, list []team.Receipt) {
	row := m.row
	var marks []ledger.DeliveryMark
	var got []string
	for _, r := range list {
		marks = append(marks, ledger.DeliveryMark{MessageID: r.ID, Recipient: row.Name, State: r.State, Evidence: r.Evidence})
		got = append(got, r.ID)
	}
	s.step(func(ctx context.Context) message {
		if err := s.noteDelivered(ctx, row, marks, got); err != nil && ctx.Err() == nil {
			s.log.Warn("note receipts", "member", row.Name, "err", err)
		}
		return nil
	})
}

// Explain tells what a member does, who says so, and what else was seen.
func (s *Supervisor) Explain(ctx context.Context, name string) (team.Report, error) {
	member := ""
	r, err := ask(ctx, s, func(reply func(team.Report, error)) {
		ms, err := s.byName([]string{name})
		if err != nil {
			reply(team.Report{}, err)
			return
		}
		m := ms[0]
		member = m.row.Name
		r := m.seen.Report(time.Now())
		r.Mode = m.row.Spec.Mode
		if m.row.Observed == team.Running {
			r.ModeFrom = s.tellMode(m)
		}
		if !m.plan.Channel { // it says itself what it does
			r.Activity, r.Ready, r.Source, r.At = m.row.Activity, m.row.Ready, "its own word", time.UnixMilli(m.row.ActivityAt)
		}
		if m.row.Observed != team.Running {
			r.Verdict = team.Verdict{Activity: team.ActivityUnknown, Tier: team.TierProcess.String(), Source: string(m.row.Observed)}
			r.Evidence = slices.DeleteFunc([]string{m.row.Reason, m.row.ExitText}, func(s string) bool { return s == "" })
		}
		if state.Unknown(m.row) {
			r.Verdict = team.Verdict{Activity: team.ActivityUnknown, Tier: team.TierProcess.String(), Evidence: []string{m.row.Reason}}
		}
		reply(r, nil)
	})
	if err != nil {
		return r, err
	}
	for _, p := range bundle.Problems(s.cfg.Layout.Bundle(member)) { // not in the loop: it reads files
		r.Evidence = append(r.Evidence, "damaged: "+p.Error())
	}
	return r, nil
}

// InterruptMember ends the turn that a member is in: by its channel, else as Ctrl-C
// would.
func (s *Supervisor) InterruptMember(ctx context.Context, name string) error {
	type target struct {
		session, generation string
		l                   *line
		at                  backends.Attached
	}
	t, err := ask(ctx, s, func(reply func(target, error)) {
		ms, err := s.byName([]string{name})
		if err == nil && (ms[0].at == nil || ms[0].row.Observed != team.Running) {
			err = team.Errorf(team.CodeConflict, "%s does not run", name).WithReason(team.ReasonNotRunning)
		}
		if err != nil {
			reply(target{}, err)
			return
		}
		if ms[0].line != nil { // it may be seen idle before its channel has returned
			ms[0].interrupted = time.Now()
		}
		reply(target{ms[0].row.SessionKey, ms[0].row.Generation, ms[0].line, ms[0].at}, nil)
	})
	if err != nil {
		return err
	}
	if t.l == nil {
		return t.at.Interrupt(ctx)
	}
	t.l.calls.Lock()
	err = t.l.Interrupt(ctx)
	t.l.calls.Unlock()
	if err != nil {
		s.send(notInterrupted{t.session, t.generation})
	}
	return err
}

// saysNoHooks reports whether a member's row is to say that its hooks do not run.
func saysNoHooks(m ledger.Member, v team.Verdict) bool {
	return v.NoHooks && v.Activity != team.Waiting && v.Activity != team.Limited && !state.Paused(m)
}
