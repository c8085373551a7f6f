package supervisor

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// shutdownRequestTo waits for the request in the member's mailbox.
func (r *rig) shutdownRequestTo(name string) inbox.ShutdownRequest {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Minute)
	defer cancel()
	w, err := inbox.Watch(ctx, r.layout.Inboxes())
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	rings := w.Changes(name)
	box, err := inbox.Open(r.layout.Inboxes(), r.layout.Locks(), name)
	if err != nil {
		r.Fatal(err)
	}
	for {
		entries, err := box.Consume(ctx, 0, nil)
		if err != nil {
			r.Fatal(err)
		}
		for _, e := range entries {
			if f, ok := inbox.Parse(e.Text); ok {
				if req, ok := f.(inbox.ShutdownRequest); ok {
					return req
				}
			}
		}
		select {
		case <-rings:
		case <-ctx.Done():
			r.Fatal("no shutdown request came")
		}
	}
}

func (r *rig) answer(name string, kind team.Kind, id, text string) {
	r.Helper()
	_, _, err := r.mailer().Post(r.Context(), ledger.NewMessage{
		Kind: kind, From: name, To: team.LeadName, RequestID: id, Text: text,
	})
	if err != nil {
		r.Fatal(err)
	}
}

func TestGracefulStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	r.policy.Grace = time.Minute // it ends by itself, however slow the machine is
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	done := r.stop(s, team.StopRequest{Names: []string{"a"}, Reason: "all done", Wait: time.Hour, Remove: true})
	req := r.shutdownRequestTo("a")
	if req.Reason != "all done" || req.From != team.LeadName {
		t.Errorf("request %+v", req)
	}
	r.answer("a", team.KindShutdownApproved, req.RequestID, encode(r, inbox.ShutdownApproved{RequestID: req.RequestID, From: "a"}))
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	got := <-done
	if got.err != nil || len(got.out) != 1 || got.out[0].Outcome != "approved" || got.out[0].Exit != "exit 0" {
		t.Fatalf("%+v", got)
	}
	row := r.waitState("a", team.Completed)
	if row.RemovedAt == 0 || r.m.starts != 1 {
		t.Fatalf("row %+v, %d starts", row, r.m.starts)
	}
}

type stopResult struct {
	out []team.Stopped
	err error
}

func (r *rig) stop(s *Supervisor, in team.StopRequest) <-chan stopResult {
	ch := make(chan stopResult, 1)
	go func() {
		out, err := s.StopMembers(context.WithoutCancel(r.Context()), in)
		ch <- stopResult{out, err}
	}()
	return ch
}

func TestRejectedStopGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	done := r.stop(s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour})
	req := r.shutdownRequestTo("a")
	r.answer("a", team.KindShutdownRejected, req.RequestID, encode(r, inbox.ShutdownRejected{RequestID: req.RequestID, From: "a", Reason: "mid-task"}))
	got := <-done
	if !team.IsCode(got.err, team.CodeConflict) || got.out[0].Outcome != "rejected" || got.out[0].Reason != "mid-task" {
		t.Fatalf("%+v", got)
	}
	if row := r.waitState("a", team.Running); row.Desired != team.WantRunning {
		t.Fatalf("desired %s", row.Desired)
	}
}

// A foreign agent is asked like others. After its approval it is ended when its turn is over, not
// at the deadline: it does not exit by itself.
func TestForeignAgentIsAsked(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{answers: true, grace: time.Hour}
	r, say := talking(t, c)
	say(team.Observation{Tier: team.TierHook, Activity: team.Working, Ready: true, Source: "a hook"})
	r.wait("a", "ready", func(m ledger.Member) bool { return m.Ready && m.Activity == team.Working })
	done := r.stop(c.s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour})
	req := r.shutdownRequestTo("a")
	say(team.Observation{Tier: team.TierHook, Activity: team.Idle, Source: "a hook"}) // it has not answered yet
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle })
	say(team.Observation{Tier: team.TierHook, Activity: team.Working, Source: "a hook"})
	r.wait("a", "working", func(m ledger.Member) bool { return m.Activity == team.Working })
	r.answer("a", team.KindShutdownApproved, req.RequestID, encode(r, inbox.ShutdownApproved{RequestID: req.RequestID, From: "a"}))
	approved := func() bool {
		st, err := c.s.Debug(t.Context())
		return err == nil && strings.HasPrefix(st.Members[0].Stopping, "draining approved")
	}
	r.until("approved", approved)
	say(team.Observation{Tier: team.TierHook, Activity: team.Idle, Source: "a hook"})
	if got := <-done; got.err != nil || got.out[0].Outcome != "approved" || got.out[0].Exit != "signal SIGTERM" {
		t.Fatalf("%+v", got)
	}
}

// A member that does not take messages yet is neither asked nor waited for.
func TestForeignAgentThatIsNotReadyIsNotAsked(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{answers: true}
	r, _ := talking(t, c)
	got := <-r.stop(c.s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour})
	if got.err != nil || got.out[0].Outcome != "stopped" {
		t.Fatalf("%+v", got)
	}
	if list, err := r.led.Messages(t.Context(), ledger.MessageFilter{Kind: team.KindShutdownRequest}); err != nil || len(list) > 0 {
		t.Errorf("asked: %+v, %v", list, err)
	}
}

func TestForeignAnswerIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	r.policy.StopWait = 300 * time.Millisecond
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	r.spawn(s, "b", team.RestartAlways)
	done := r.stop(s, team.StopRequest{Names: []string{"a"}})
	req := r.shutdownRequestTo("a")
	// b rejects in the name of a: the sender of the message is b, so it does not count.
	r.answer("b", team.KindShutdownRejected, req.RequestID, encode(r, inbox.ShutdownRejected{RequestID: req.RequestID, From: "a", Reason: "no"}))
	// a rejects an earlier request, which is over.
	r.answer("a", team.KindShutdownRejected, "shutdown-1@a", encode(r, inbox.ShutdownRejected{RequestID: "shutdown-1@a", From: "a", Reason: "late"}))
	got := <-done
	if got.err != nil || got.out[0].Outcome != "deadline" || got.out[0].Exit != "signal SIGTERM" {
		t.Fatalf("%+v", got)
	}
}

// An answer that arrives while its sender is already being ended does not change what
// is reported about the end.
func TestLateApprovalIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	r.spawn(s, "b", team.RestartAlways)
	ending, release := make(chan struct{}), make(chan struct{})
	begun, free := sync.OnceFunc(func() { close(ending) }), sync.OnceFunc(func() { close(release) })
	defer free()
	r.m.onStop = func(a *agent) {
		begun()
		<-release
		a.end(backends.Exit{Known: true, Code: -1, Signal: "SIGTERM"})
	}
	done := r.stop(s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour})
	req := r.shutdownRequestTo("a")
	forced := r.stop(s, team.StopRequest{Names: []string{"a"}, Force: true})
	<-ending
	r.answer("a", team.KindShutdownApproved, req.RequestID, encode(r, inbox.ShutdownApproved{RequestID: req.RequestID, From: "a"}))
	answersAreRead(r, s)
	free()
	for _, c := range []<-chan stopResult{done, forced} {
		if got := <-c; got.err != nil || got.out[0].Outcome != "forced" {
			t.Errorf("%+v", got)
		}
	}
}

// A rejection that arrives after the end of the processes, and before their exit is recorded, does
// not start the member again.
func TestRejectionAfterTheEndIsIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	r.spawn(s, "b", team.RestartAlways)
	r.m.onStop = func(*agent) {} // its exit is seen later
	done := r.stop(s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour})
	req := r.shutdownRequestTo("a")
	forced := r.stop(s, team.StopRequest{Names: []string{"a"}, Force: true})
	r.until("the end of the stop step", func() bool {
		d, err := s.Debug(t.Context())
		i := slices.IndexFunc(d.Members, func(m team.DebugMember) bool { return m.Name == "a" })
		return err == nil && i >= 0 && d.Members[i].Step == "" && strings.Contains(d.Members[i].Stopping, team.StopForced)
	})
	r.answer("a", team.KindShutdownRejected, req.RequestID, encode(r, inbox.ShutdownRejected{RequestID: req.RequestID, From: "a", Reason: "too late"}))
	answersAreRead(r, s)
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: -1, Signal: "SIGTERM"})
	for _, c := range []<-chan stopResult{done, forced} {
		if got := <-c; got.err != nil || got.out[0].Outcome != team.StopForced {
			t.Fatalf("%+v", got)
		}
	}
	if row := r.waitState("a", team.Killed); row.Desired != team.WantStopped {
		t.Errorf("desired %s", row.Desired)
	}
}

// answersAreRead returns once the answers so far have been read: they are read in order, and that
// of b, which it gives, counts.
func answersAreRead(r *rig, s *Supervisor) {
	r.Helper()
	done := r.stop(s, team.StopRequest{Names: []string{"b"}, Wait: time.Hour})
	req := r.shutdownRequestTo("b")
	r.answer("b", team.KindShutdownRejected, req.RequestID, encode(r, inbox.ShutdownRejected{RequestID: req.RequestID, From: "b", Reason: "busy"}))
	if got := <-done; !team.IsCode(got.err, team.CodeConflict) || got.out[0].Outcome != team.StopRejected || got.out[0].Reason != "busy" {
		r.Fatalf("%+v", got)
	}
}

func TestConcurrentIntentsLastWins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	release := make(chan struct{})
	r.m.onStop = func(a *agent) {
		<-release
		a.end(backends.Exit{Known: true, Code: -1, Signal: "SIGTERM"})
	}
	var wg sync.WaitGroup
	each := func(f func() error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := f(); err != nil && team.ReasonOf(err) != "superseded" {
				t.Error(err)
			}
		}()
	}
	stop := func() error {
		_, err := s.StopMembers(context.WithoutCancel(t.Context()), team.StopRequest{Names: []string{"a"}})
		return err
	}
	restart := func() error {
		_, err := s.RestartMembers(context.WithoutCancel(t.Context()), []string{"a"})
		return err
	}
	for range 5 {
		each(stop)
		each(restart)
	}
	r.wait("a", "wanted otherwise", func(m ledger.Member) bool { return m.Observed == team.Running })
	close(release)
	wg.Wait() // every caller got its answer
	if err := restart(); err != nil {
		t.Fatal(err)
	}
	r.waitState("a", team.Running)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.waitState("a", team.Completed)
}
