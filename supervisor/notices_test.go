package supervisor

import (
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// notices are the notices of a kind, with their texts.
func notices[F inbox.Frame](r *rig, kind team.Kind) (list []ledger.Message, frames []F) {
	r.Helper()
	list, err := r.led.Messages(r.Context(), ledger.MessageFilter{Kind: kind})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range list {
		f, ok := inbox.Parse(m.Text)
		if !ok || m.To != team.LeadName {
			r.Fatalf("%+v", m)
		}
		frames = append(frames, f.(F))
	}
	return list, frames
}

// The lead gets one notice, from the system, for each member that has ended.
func TestTheLeadHearsWhoIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		end    func(r *rig, s *Supervisor)
		status inbox.NoticeStatus
		says   string
		left   bool
	}{
		{"done", func(r *rig, _ *Supervisor) { r.m.agent(r.layout, "a").end(backends.Exit{Known: true}) },
			inbox.NoticeCompleted, `Teammate "a" completed their task.`, false},
		{"stopped", func(r *rig, s *Supervisor) { <-r.stop(s, team.StopRequest{Names: []string{"a"}}) },
			inbox.NoticeKilled, `Teammate "a" was stopped.`, false},
		{"shut down", func(r *rig, s *Supervisor) { <-r.stop(s, team.StopRequest{Names: []string{"a"}, Remove: true}) },
			inbox.NoticeKilled, `Teammate "a" was stopped.`, true},
		{"killed", func(r *rig, s *Supervisor) {
			<-r.stop(s, team.StopRequest{Names: []string{"a"}, Remove: true, Force: true})
		},
			inbox.NoticeKilled, `Teammate "a" was stopped.`, true},
		{"stopped, then removed", func(r *rig, s *Supervisor) {
			<-r.stop(s, team.StopRequest{Names: []string{"a"}})
			<-r.stop(s, team.StopRequest{Names: []string{"a"}, Remove: true})
		}, inbox.NoticeKilled, `Teammate "a" was stopped.`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			s := r.supervisor()
			r.spawn(s, "a", team.RestartOnFailure)
			c.end(r, s)
			row := r.wait("a", "gone", func(m ledger.Member) bool { return m.Observed.Terminal() && (m.RemovedAt != 0) == c.left })
			list, says := notices[inbox.TeammateTerminated](r, team.KindTeammateTerminated)
			if len(list) != 1 {
				t.Fatalf("told %d times", len(list))
			}
			want := inbox.TeammateTerminated{Message: c.says, AgentID: row.AgentID, Status: c.status, OutputFile: r.layout.Bundle("a").Log()}
			if list[0].From != team.SystemName || says[0] != want {
				t.Errorf("from %s: %+v", list[0].From, says[0])
			}
			r.wait("a", "mailed", func(ledger.Member) bool {
				d, err := r.led.Delivery(t.Context(), list[0].ID, team.LeadName)
				return err == nil && d.State == team.Mailed
			})
		})
	}
}

// A restart is not an end.
func TestARestartIsNotTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	first := r.spawn(s, "a", team.RestartAlways)
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 3})
	r.wait("a", "running again", func(m ledger.Member) bool {
		return m.Observed == team.Running && m.Generation != first.Generation
	})
	if list, _ := notices[inbox.TeammateTerminated](r, team.KindTeammateTerminated); len(list) != 0 {
		t.Errorf("told of %d", len(list))
	}
}

// A member that is given up is reported as failed, with the reason, and not as idle.
func TestTheLeadHearsWhoFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 3, Reason: "no disk"})
	r.waitState("a", team.Failed)
	list, says := notices[inbox.IdleNotification](r, team.KindIdle)
	if len(list) != 1 || list[0].From != "a" || says[0].IdleReason != inbox.IdleFailed {
		t.Fatalf("%+v", list)
	}
	for _, part := range []string{"exit 3", "no disk"} {
		if !strings.Contains(says[0].FailureReason, part) {
			t.Errorf("%q lacks %q", says[0].FailureReason, part)
		}
	}
	if list, _ := notices[inbox.TeammateTerminated](r, team.KindTeammateTerminated); len(list) != 0 {
		t.Error("it may be started again: it is not gone")
	}
}

// The end of a foreign agent's turn is reported once for each idle period, even if a
// new supervisor sees it idle again.
func TestAnIdleForeignAgentIsTold(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	count := func() int { list, _ := notices[inbox.IdleNotification](r, team.KindIdle); return len(list) }
	be := func(a team.Activity) {
		t.Helper()
		say(team.Observation{Tier: team.TierHook, Activity: a, Source: "a hook"})
		r.wait("a", string(a), func(m ledger.Member) bool { return m.Activity == a })
	}
	be(team.Idle)
	be(team.Working)
	be(team.Idle)
	if n := count(); n != 2 {
		t.Fatalf("two turns were told %d times", n)
	}
	c.s.Close() // like kill -9
	c.s = r.supervisor()
	say = (<-c.opened).Report
	r.wait("a", "unknown", func(m ledger.Member) bool { return m.Activity == team.ActivityUnknown })
	be(team.Idle)
	if n := count(); n != 2 {
		t.Errorf("after the supervisor's death it was told %d times", n)
	}
	if r.m.starts != 1 {
		t.Errorf("idle is no end, and it was started %d times", r.m.starts)
	}
	list, says := notices[inbox.IdleNotification](r, team.KindIdle)
	if list[0].From != "a" || says[0].From != "a" || says[0].IdleReason != inbox.IdleAvailable {
		t.Errorf("%+v", says[0])
	}
}

// During a shutdown an agent that reports idle gets no answer in the lead's name: it has the
// request, and the deadline holds.
func TestIdleDuringAShutdownIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.answers = true
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	done := r.stop(s, team.StopRequest{Names: []string{"a"}, Wait: time.Hour, Remove: true})
	req := r.shutdownRequestTo("a")
	r.answer("a", team.KindIdle, "", encode(r, inbox.IdleNotification{From: "a", Timestamp: "t", IdleReason: inbox.IdleAvailable}))
	r.answer("a", team.KindShutdownApproved, req.RequestID, encode(r, inbox.ShutdownApproved{RequestID: req.RequestID, From: "a"}))
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	if got := <-done; got.err != nil || got.out[0].Outcome != "approved" {
		t.Fatalf("%+v", got)
	}
	list, err := r.led.Messages(t.Context(), ledger.MessageFilter{From: team.LeadName})
	if err != nil || len(list) != 1 || list[0].Kind != team.KindShutdownRequest {
		t.Errorf("in the lead's name: %+v, %v", list, err)
	}
}

// If the turn of a foreign agent failed, the failure is reported once with its error,
// and the member's row says so until its next turn. A failure of an earlier process
// does not count.
func TestAFailedTurnIsTold(t *testing.T) {
	t.Parallel()
	c := &fakeCourier{}
	r, say := talking(t, c)
	see := func(o team.Observation) {
		o.Tier, o.Source = team.TierHook, "a hook"
		say(o)
	}
	told := func() (out []inbox.IdleNotification) {
		_, out = notices[inbox.IdleNotification](r, team.KindIdle)
		return out
	}
	failed := func(m ledger.Member) bool { return m.Activity == team.Idle && m.TurnError == "API Error: 529 too busy" }

	see(team.Observation{Activity: team.Idle, Failed: "of a process before", At: time.Now().Add(-time.Hour)})
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle && m.TurnError == "" })
	see(team.Observation{Activity: team.Working})
	see(team.Observation{Activity: team.Idle, Failed: "API Error: 529\n  too busy"})
	r.wait("a", "failed", failed)
	see(team.Observation{Activity: team.Idle, Failed: "API Error: 529 too busy"})
	see(team.Observation{Activity: team.Working})
	see(team.Observation{Activity: team.Idle})
	r.wait("a", "idle again", func(m ledger.Member) bool { return m.Activity == team.Idle && m.TurnError == "" })
	list := told()
	if len(list) != 3 || list[0].IdleReason != inbox.IdleAvailable || list[2].IdleReason != inbox.IdleAvailable ||
		list[1].IdleReason != inbox.IdleFailed || list[1].FailureReason != "API Error: 529 too busy" {
		t.Fatalf("told %+v", list)
	}

	see(team.Observation{Activity: team.Working})
	see(team.Observation{Activity: team.Idle}) // one source knows that it is at rest
	r.wait("a", "idle", func(m ledger.Member) bool { return m.Activity == team.Idle && len(told()) == 4 })
	see(team.Observation{Failed: "API Error: 529 too busy"}) // and another one why
	r.wait("a", "failed", failed)
	if list = told(); len(list) != 5 || list[4].IdleReason != inbox.IdleFailed {
		t.Errorf("told %+v", list)
	}
}

// A dialog that appears at the end of a turn is not rest: the lead is not told of an idle agent
// before its screen was read.
func TestDialogAtTheEndOfATurnIsNotTold(t *testing.T) {
	t.Parallel()
	r, say := talking(t, &fakeCourier{})
	told := func() int {
		list, _ := notices[inbox.IdleNotification](r, team.KindIdle)
		return len(list)
	}
	is := func(a team.Activity) {
		t.Helper()
		r.wait("a", string(a), func(m ledger.Member) bool { return m.Activity == a })
	}
	now := time.Now().Add(-3 * time.Second)
	say(team.Observation{Tier: team.TierHook, Activity: team.Working, At: now, Source: "hook BeforeAgent"})
	say(team.Observation{Tier: team.TierScreen, Activity: team.Working, At: now, Source: "rule busy"})
	is(team.Working)
	say(team.Observation{Tier: team.TierHook, Activity: team.Idle, At: now.Add(time.Second), Source: "hook AfterAgent", Confirm: true})
	say(team.Observation{Tier: team.TierScreen, Activity: team.Waiting, For: team.WaitQuestion, At: now.Add(2 * time.Second), Source: "rule loop-dialog"})
	is(team.Waiting)
	if n := told(); n != 0 {
		t.Errorf("%d idle notices of an agent that asks", n)
	}
	say(team.Observation{Tier: team.TierScreen, Activity: team.Idle, At: now.Add(3 * time.Second), Source: "rule prompt"})
	is(team.Idle)
	if n := told(); n != 1 {
		t.Errorf("%d idle notices of an agent at rest", n)
	}
}
