package supervisor

import (
	"context"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/supervisor/state"
)

// bus implements the Bus of the services.
type bus struct{ s *Supervisor }

// job is a function of a service to be run on the loop.
type job struct {
	what string
	f    func()
}

func (j job) apply(*Supervisor) { j.f() }

// fired reports that a service's timer has fired.
type fired struct {
	name string
	f    func()
}

func (t fired) apply(s *Supervisor) {
	delete(s.timers, t.name)
	t.f()
}

func (b bus) Go(what string, f func(context.Context) func()) {
	b.s.step(func(ctx context.Context) message {
		then := f(ctx)
		if then == nil {
			return nil
		}
		return job{what, then}
	})
}

func (b bus) After(name string, d time.Duration, f func()) { b.s.after(name, d, fired{name, f}) }

func (b bus) Armed(name string) bool { return b.s.timers[name] != nil }

func (b bus) Send(what string, f func()) bool { return b.s.send(job{what, f}) }

func (b bus) Members() []loop.Member {
	out := make([]loop.Member, 0, len(b.s.members))
	for _, m := range b.s.members {
		out = append(out, view(m))
	}
	return out
}

func (b bus) Look(session string) (loop.Member, bool) {
	m := b.s.members[session]
	if m == nil {
		return loop.Member{}, false
	}
	return view(m), true
}

func (b bus) Find(name string) (loop.Member, bool) {
	m := b.s.find(name)
	if m == nil {
		return loop.Member{}, false
	}
	return view(m), true
}

func view(m *member) loop.Member {
	return loop.Member{Member: m.row, Busy: m.step != stepNone || m.stop != nil, Paused: state.Paused(m.row), Channel: m.plan.Channel, Screen: m.at}
}

// The following methods implement delivery.Core.

func (b bus) Patch(session string, p ledger.MemberPatch) error {
	m := b.s.members[session]
	if m == nil {
		return unknownMember(session, nil)
	}
	return b.s.patch(m, p)
}

func (b bus) Ready(session, evidence string) {
	if m := b.s.members[session]; m != nil {
		b.s.markReady(m, evidence)
	}
}

func (b bus) AtRest(session string) {
	if m := b.s.members[session]; m != nil {
		b.s.turnEnded(m)
	}
}
