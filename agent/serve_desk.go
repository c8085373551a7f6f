package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/teamctl/teamctl/agent/llm"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// yieldAfter is the minimum wait for which a turn releases its place in the lane.
const yieldAfter = 10 * time.Second

// desk is a turn's access to the server. Its methods run on the goroutine of the turn.
type desk struct {
	*server
	run *running
}

// on runs do on the goroutine of Serve.
func (d *desk) on(ctx context.Context, do func(context.Context)) error {
	a := ask{do: do, done: make(chan struct{})}
	select {
	case d.asks <- a:
		<-a.done
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// own reports whether the turn belongs to the member's own session, which has the mailbox.
func (d *desk) own() bool { return d.run.job.Session == d.id.Session }

// Look implements llm.Desk.
func (d *desk) Look(ctx context.Context) (v llm.Verdict, err error) {
	if !d.own() {
		return llm.GoOn, nil
	}
	err = d.on(ctx, func(c context.Context) { v = d.look(c) })
	return v, err
}

// Take implements llm.Desk.
func (d *desk) Take(ctx context.Context, token llm.Token) (v llm.Verdict, err error) {
	if !d.own() {
		return llm.GoOn, nil
	}
	var taken error
	if err = d.on(ctx, func(c context.Context) { v, taken = d.takeAt(c, d.run, token) }); err != nil && v != llm.Steered {
		return v, err
	}
	return v, taken
}

// Late implements llm.Desk.
func (d *desk) Late(ctx context.Context) error {
	if !d.own() {
		return nil
	}
	var taken error
	if err := d.on(ctx, func(c context.Context) { taken = d.takeLate(c) }); err != nil {
		return err
	}
	return taken
}

// Allowed implements llm.Desk.
func (d *desk) Allowed(ctx context.Context) error {
	shown, counted := "", false
	defer func() {
		if counted { // even if the turn has been ended meanwhile
			_ = d.on(context.WithoutCancel(ctx), func(context.Context) { d.waiting-- })
		}
	}()
	for {
		changed, why, until := d.changed(), "", time.Time{}
		err := d.on(ctx, func(c context.Context) {
			if why, until = d.inTheWay(c, d.run.job.Session); why != "" {
				if !counted {
					counted = true
					d.waiting++ // the loop does not show it as working meanwhile
				}
				if d.stopped == nil && why != shown { // a limit that this member reached is shown already
					d.showAs(c, team.Limited, 0, why)
					d.out.line("waits: %s", why)
				}
				return
			}
			d.goOn(c, true)
			if shown != "" {
				d.showAs(c, team.Working, 0, "")
			}
		})
		if err != nil || why == "" {
			return err
		}
		shown = why
		if err := d.waitUntil(ctx, changed, until, why); err != nil {
			return err
		}
	}
}

// Limited implements llm.Desk.
func (d *desk) Limited(ctx context.Context, limit *team.LimitReached) error {
	if err := d.on(ctx, func(c context.Context) { d.limited(c, limit) }); err != nil {
		return err
	}
	if d.quota == nil {
		until := d.env.Now().Add(yieldAfter)
		if limit.Until.After(until) {
			until = limit.Until
		}
		return d.waitUntil(ctx, nil, until, limit.Error())
	}
	return d.Allowed(ctx)
}

// Wait implements llm.Desk.
func (d *desk) Wait(ctx context.Context, long time.Duration, what team.WaitFor, why string) error {
	if what == "" {
		return d.wait(ctx, nil, long, why)
	}
	if err := d.show(ctx, what, why); err != nil {
		return err
	}
	err := d.wait(ctx, nil, long, why) // a change of the ledger is not what it waits for
	return errors.Join(err, d.over(ctx))
}

// show shows a wait, but of a turn that has ended none.
func (d *desk) show(ctx context.Context, what team.WaitFor, why string) error {
	shown := false
	err := d.on(ctx, func(c context.Context) {
		d.showWaiting(c, team.Waiting, what, why)
		shown = true
	})
	if err != nil && shown {
		return errors.Join(err, d.over(ctx))
	}
	return err
}

// over stops showing a wait, even if the turn has been ended meanwhile.
func (d *desk) over(ctx context.Context) error {
	return d.on(context.WithoutCancel(ctx), func(c context.Context) { d.showWaiting(c, team.Working, "", "") })
}

// Pause implements llm.Desk. A member whose turn waits for a child is shown as working.
func (d *desk) Pause(ctx context.Context, what team.WaitFor, why string) (resume func(context.Context) error, err error) {
	if what == "" {
		ref := d.run.job.Ref()
		err := d.Write(ctx, "give the lane back", func(c context.Context) error { return d.in.Sessions.YieldTurn(c, ref, why) })
		return func(ctx context.Context) error { return d.resume(ctx, ref) }, err
	}
	if err := d.show(ctx, what, why); err != nil {
		return nil, err
	}
	ref := d.run.job.Ref()
	if err := d.Write(ctx, "give the lane back", func(c context.Context) error { return d.in.Sessions.YieldTurn(c, ref, why) }); err != nil {
		return nil, errors.Join(err, d.over(ctx))
	}
	return func(ctx context.Context) error {
		err := d.resume(ctx, ref)
		return errors.Join(err, d.over(ctx))
	}, nil
}

// wait waits for a change or the end of a time; 0 means no limit.
func (d *desk) wait(ctx context.Context, changed <-chan struct{}, long time.Duration, why string) error {
	return d.aside(ctx, long == 0 || long > yieldAfter, why, func() error {
		var over <-chan time.Time
		if long > 0 {
			over = time.After(long)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-over:
		}
		return nil
	})
}

// waitUntil waits for a change or a time of the wall clock; zero means no limit. Timers stand still
// while the machine is suspended, so the clock is read again each minute. It waits for a second at
// least, since what it waited for may not be over at that time.
func (d *desk) waitUntil(ctx context.Context, changed <-chan struct{}, until time.Time, why string) error {
	if until.IsZero() {
		return d.wait(ctx, changed, 0, why)
	}
	left := func() time.Duration { return until.Sub(d.env.Now()) }
	return d.aside(ctx, left() > yieldAfter, why, func() error {
		for wait := max(left(), time.Second); wait > 0; wait = left() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-changed:
				return nil
			case <-time.After(min(wait, time.Minute)):
			}
		}
		return nil
	})
}

// aside waits; a long wait releases the place in the lane.
func (d *desk) aside(ctx context.Context, long bool, why string, wait func() error) error {
	if !long {
		return wait()
	}
	ref := d.run.job.Ref()
	if err := d.Write(ctx, "give the lane back", func(c context.Context) error { return d.in.Sessions.YieldTurn(c, ref, why) }); err != nil {
		return err
	}
	if err := wait(); err != nil {
		return err
	}
	return d.resume(ctx, ref)
}

// resume takes a place in the lane again, as soon as one is free.
func (d *desk) resume(ctx context.Context, ref ledger.TurnRef) error {
	for {
		changed, ok := d.changed(), false
		err := d.Write(ctx, "take the lane again", func(c context.Context) (err error) {
			ok, err = d.in.Sessions.ResumeTurn(c, ref)
			return err
		})
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// changed returns a channel that is closed at the next change of the ledger or the mailbox.
func (s *server) changed() <-chan struct{} {
	s.wake.Lock()
	defer s.wake.Unlock()
	if s.woken == nil {
		s.woken = make(chan struct{})
	}
	return s.woken
}

// wakeTurns makes waiting turns check again.
func (s *server) wakeTurns() {
	s.wake.Lock()
	defer s.wake.Unlock()
	if s.woken != nil {
		close(s.woken)
		s.woken = nil
	}
}

// Claim implements llm.Desk. After a turn of the member's own session its mail comes first.
func (d *desk) Claim() *ledger.ClaimTurnIn {
	if d.own() {
		return nil
	}
	return &ledger.ClaimTurnIn{Member: d.id.Session, Generation: d.id.Generation}
}

// Write implements llm.Desk.
func (d *desk) Write(ctx context.Context, doing string, fn func(context.Context) error) error {
	return d.write(ctx, doing, fn)
}

// Line implements llm.Desk.
func (d *desk) Line(format string, args ...any) { d.out.line(format, args...) }

// Say implements llm.Desk. A model's text must not control the terminal: control characters are
// dropped one by one, since a sequence may arrive in pieces.
func (d *desk) Say(text string) {
	_, _ = d.out.Write([]byte(plain.Clean(strings.ReplaceAll(text, "\r", ""))))
}

// showWaiting shows what the member waits for, or that it is working again.
func (s *server) showWaiting(ctx context.Context, a team.Activity, what team.WaitFor, why string) {
	if a == team.Waiting {
		s.waiting++
	} else if s.waiting--; s.waiting > 0 {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishLimit)
	defer cancel()
	why = cut(oneLine(why), maxFailure)
	_, err := s.env.Ledger.UpdateMember(c, ledger.MemberPatch{SessionKey: s.id.Session, Activity: &a, WaitsFor: &what, Reason: &why})
	if err != nil {
		s.again = max(s.again, time.Second)
		return
	}
	s.activity = a
}
