package supervisor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// A restart returns when the member is up again, not while it is being stopped.
func TestRestartAnswersWhenUpAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans = plans{answers: true}
	s := r.supervisor()
	before := r.spawn(s, "a", team.RestartOnFailure)
	go func() { // the agent takes its time to approve
		time.AfterFunc(50*time.Millisecond, func() {
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
		})
	}()
	rows, err := s.RestartMembers(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Generation == before.Generation || rows[0].Observed != team.Running {
		t.Errorf("restarted: %s, generation new %v", rows[0].Observed, rows[0].Generation != before.Generation)
	}
}

// A restart that the agent rejects, or that cannot stop it, fails with that reason, and the agent
// continues: nothing restarts it later.
func TestRestartOfOneThatStays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		code team.Code
		says string
		stay func(r *rig)
	}{
		{"rejected", team.CodeConflict, "a rejected the shutdown: mid-task", func(r *rig) {
			req := r.shutdownRequestTo("a")
			r.answer("a", team.KindShutdownRejected, req.RequestID,
				encode(r, inbox.ShutdownRejected{RequestID: req.RequestID, From: "a", Reason: "mid-task"}))
		}},
		{"not to be stopped", team.CodeInternal, "a could not be stopped: it is stuck", func(*rig) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.plans = plans{answers: c.code == team.CodeConflict}
			r.policy.StopWait = time.Minute
			r.m.unstop = errors.New("it is stuck")
			s := r.supervisor()
			before := r.spawn(s, "a", team.RestartOnFailure)
			answered := make(chan error, 1)
			go func() {
				_, err := s.RestartMembers(t.Context(), []string{"a"})
				answered <- err
			}()
			c.stay(r)
			select {
			case err := <-answered:
				if !team.IsCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v", err)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("the restart was not answered")
			}
			row := r.waitState("a", team.Running)
			if row.Generation != before.Generation || row.NextStart != 0 || row.Desired != team.WantRunning {
				t.Errorf("%+v", row)
			}
		})
	}
}

// A supervisor records a restart before it begins: if it is killed, the next one completes the
// restart, whether the agent has ended or not, and whatever its restart policy is.
func TestRestartOutlivesItsSupervisor(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		r := newRig(t)
		s := r.supervisor()
		before := r.spawn(s, "a", team.RestartNever)
		hang := make(chan struct{})
		stopping := make(chan struct{}, 1)
		r.m.onStop = func(*agent) { stopping <- struct{}{}; <-hang }
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			_, _ = s.RestartMembers(t.Context(), []string{"a"})
		}()
		<-stopping
		r.wait("a", "wanted again", func(m ledger.Member) bool { return m.NextStart != 0 && m.Desired == team.WantRunning })
		s.cancel() // like kill -9: its steps hang
		<-s.done
		<-answered
		r.m.onStop = nil
		if gone {
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
			r.exitFile("a", r.m.agent(r.layout, "a").exit)
		}
		r.supervisor()
		row := r.wait("a", "running again", func(m ledger.Member) bool {
			return m.Observed == team.Running && m.Generation != before.Generation
		})
		if row.NextStart != 0 {
			t.Errorf("gone %v: next start is still %d", gone, row.NextStart)
		}
		close(hang)
	}
}

// A back-off that a changed wall clock has moved far into the future is not awaited.
func TestFault14BackoffAfterAClockJump(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartOnFailure)
	s.Close()
	exited, backoff, day := team.Exited, team.Backoff, time.Now().Add(24*time.Hour).UnixMilli()
	for _, p := range []ledger.MemberPatch{{Observed: &exited}, {Observed: &backoff, NextStart: &day}} {
		p.SessionKey = m.SessionKey
		if _, err := r.led.UpdateMember(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	r.supervisor()
	r.waitState("a", team.Running)
}
