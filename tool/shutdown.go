package tool

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// joinedWait is how long a joined program may take to answer a shutdown request.
const joinedWait = 10 * time.Second

// stop stops members. A shutdown (in.Remove) includes programs that have joined: they are not
// supervised, so they are asked by mail, and awaited while the supervisor stops the others.
func (t *Team) stop(ctx context.Context, c Caller, in team.StopRequest) ([]team.Stopped, error) {
	names, err := t.addresses(in.Names)
	if err != nil {
		return nil, err
	}
	in.Names = names
	if in.From == "" {
		in.From = c.Name
	}
	named := len(in.Names) > 0
	in, left, err := t.leftBefore(ctx, in)
	if err != nil || named && len(in.Names) == 0 {
		return left, err
	}
	joined, in, others, err := t.joinedOf(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.NoWait && len(joined) > 0 { // the supervisor enforces the deadline
		if _, err := t.supervisor(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]team.Stopped, len(joined))
	errs := make([]error, len(joined))
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.askJoined(ctx, c, joined, in, out, errs)
	}()
	var list []team.Stopped
	if others {
		list, err = supervise(ctx, t, func(s Supervisor) ([]team.Stopped, error) { return s.StopMembers(ctx, in) })
	}
	<-done
	list = append(list, out...)
	request := "stop"
	if in.Force {
		request = "kill"
	}
	for _, x := range list {
		if x.Name != "" && x.Outcome != team.StopAlready && x.Outcome != team.StopAlreadyLeft {
			errs = append(errs, t.noteRequest(ctx, c, request, x.Name))
		}
	}
	list = append(list, left...)
	slices.SortFunc(list, func(a, b team.Stopped) int { return strings.Compare(a.Name, b.Name) })
	return list, joinErrors(append([]error{err}, errs...))
}

// joinedOf splits a request into the joined programs to shut down and the rest; others reports
// whether the supervisor has members to stop.
func (t *Team) joinedOf(ctx context.Context, in team.StopRequest) (joined []ledger.Member, _ team.StopRequest, others bool, err error) {
	if !in.Remove {
		return nil, in, true, nil
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, in, false, err
	}
	named := len(in.Names) > 0
	for _, m := range members {
		if m.Name == team.LeadName {
			continue
		}
		if !team.KindOf(m.Spec.Agent).External {
			others = others || !named
			continue
		}
		at := slices.Index(in.Names, m.Name)
		if named && at < 0 {
			continue
		}
		joined = append(joined, m)
		if named {
			in.Names = slices.Delete(slices.Clone(in.Names), at, at+1)
		}
	}
	return joined, in, others || len(in.Names) > 0 || len(joined) == 0, nil
}

// askJoined asks all programs before it waits for any: they share the deadline.
func (t *Team) askJoined(ctx context.Context, c Caller, joined []ledger.Member, in team.StopRequest, out []team.Stopped, errs []error) {
	if len(joined) == 0 {
		return
	}
	if in.Wait == 0 {
		in.Wait = joinedWait
	}
	began := time.Now()
	wait, cancel := context.WithDeadline(ctx, began.Add(in.Wait))
	defer cancel()
	changes, stop, err := t.Ledger.Changes(ctx)
	if err != nil {
		errs[0] = err
		return
	}
	defer stop()
	for i, m := range joined {
		out[i].Name, out[i].Joined = m.Name, true
		out[i].Request, errs[i] = t.requestJoined(ctx, c, m, in)
		if in.NoWait {
			out[i].Outcome = team.StopRequested
		}
	}
	for !in.NoWait {
		waits := false
		for i, m := range joined {
			if out[i].Outcome != "" || errs[i] != nil {
				continue
			}
			out[i].Outcome, out[i].Reason, errs[i] = t.joinedAnswer(ctx, c, m, out[i].Request, in.Force || wait.Err() != nil && ctx.Err() == nil, in.Force)
			out[i].Took = time.Since(began)
			waits = waits || out[i].Outcome == "" && errs[i] == nil
		}
		if !waits || ctx.Err() != nil {
			break
		}
		select {
		case <-changes:
		case <-wait.Done():
		}
	}
	for i, m := range joined {
		if errs[i] != nil && out[i].Outcome == "" {
			out[i].Outcome, out[i].Reason = "failed", errs[i].Error()
		} else if out[i].Outcome == "" {
			errs[i] = errors.Join(ctx.Err(), team.Errorf(team.CodeTimeout, "%s has not answered", m.Name))
		}
		if !in.NoWait {
			out[i].Request = ""
		}
	}
}

// requestJoined mails the request, unless members are stopped without asking.
func (t *Team) requestJoined(ctx context.Context, c Caller, m ledger.Member, in team.StopRequest) (id string, err error) {
	if in.Force {
		return "", nil
	}
	from := in.From
	if from == "" {
		from = team.LeadName
	}
	until := time.Now().Add(in.Wait)
	if !in.NoWait {
		until = until.Add(joinedWait) // the waiting command goes first; it may be killed
	}
	msg, err := services.JoinedRequest(from, m, in.Reason, until)
	if err != nil {
		return "", err
	}
	_, _, err = t.mailer(c).Post(ctx, msg)
	return msg.RequestID, err
}

// joinedAnswer returns the state of a joined program that was asked; "" if it has not answered. It
// removes a program that has approved, and with end also one that has not answered.
func (t *Team) joinedAnswer(ctx context.Context, c Caller, m ledger.Member, request string, end, force bool) (outcome, reason string, err error) {
	now, err := t.Ledger.MemberBySession(ctx, m.SessionKey)
	if err != nil {
		return "", "", err
	}
	if now.RemovedAt != 0 {
		return team.StopApproved, "", nil
	}
	if request != "" {
		if outcome, reason, err = services.JoinedAnswer(ctx, t.Ledger, m, request); err != nil || outcome == team.StopRejected {
			return outcome, reason, err
		}
		if outcome == team.StopApproved {
			return outcome, "", t.leave(ctx, c, m)
		}
	}
	switch {
	case !end:
		return "", "", nil
	case force:
		return team.StopForced, "", t.leave(ctx, c, m)
	}
	return team.StopDeadline, "", t.leave(ctx, c, m)
}
