package supervisor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/hooks"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/services"
	"github.com/teamctl/teamctl/team"
)

// events waits until there are n events of a kind and returns them.
func (r *rig) events(what string, n int) []ledger.Event {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Minute)
	defer cancel()
	changes, stop, err := r.led.Changes(ctx)
	if err != nil {
		r.Fatal(err)
	}
	defer stop()
	for {
		list, err := r.led.Events(ctx, 0, 0, ledger.EventFilter{What: what})
		if err != nil {
			r.Fatal(err)
		}
		if len(list) >= n {
			return list
		}
		select {
		case <-changes:
		case <-ctx.Done():
			r.Fatalf("%d events %s, want %d: %v", len(list), what, n, list)
		}
	}
}

func (r *rig) config(yaml string) {
	r.Helper()
	if err := os.WriteFile(hooks.ConfigFile(r.layout.Home), []byte(yaml), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) activity(m ledger.Member, a team.Activity) {
	r.Helper()
	if _, err := r.led.UpdateMember(r.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Activity: &a}); err != nil {
		r.Fatal(err)
	}
}

// An agent that a hook always sends back to work is left idle in the end.
func TestRuleCannotKeepAnAgentAwakeForEver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config("hooks: {TeammateIdle: 'echo go on >&2; exit 2'}")
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	for n := 1; n <= services.MaxIdleBlocks; n++ {
		r.activity(m, team.Idle)
		r.events("message.mailed", n)
		r.activity(m, team.Working)
	}
	r.activity(m, team.Idle)
	if e := r.events("hook.failed", 1)[0]; e.ID != "a" || e.After != "it has blocked 8 times in a row: the agent is left idle" {
		t.Errorf("told %+v", e)
	}
	if posted := r.events("message.posted", 1); len(posted) != services.MaxIdleBlocks {
		t.Errorf("%d messages, want %d", len(posted), services.MaxIdleBlocks)
	}
}

// The feedback of a hook on an exit goes to the lead, since the member reads nothing any more.
func TestRuleAboutAnExit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.config("hooks: {TeammateExited: 'grep -q signal || exit 0; echo look at it >&2; exit 2'}")
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	if err := r.m.agent(r.layout, "a").Stop(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.events("message.mailed", 2) { // the other one tells that it has failed
		msg, err := r.led.Message(t.Context(), e.ID)
		if err != nil || msg.To != team.LeadName || msg.From != "a" {
			t.Errorf("%+v, %v", msg, err)
		}
		if msg.Kind == team.KindError && msg.Text == "look at it" {
			return
		}
	}
	t.Error("the hook was not heard")
}

// A stop that a hook has requested is carried out by the next supervisor if the first was killed; a
// member that was started again since continues.
func TestStopOfARuleIsNotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "old", team.RestartAlways)
	r.spawn(s, "new", team.RestartAlways)
	s.Close()
	for name, at := range map[string]int64{"old": time.Now().UnixMilli(), "new": 1} {
		if _, err := r.led.Event(t.Context(), ledger.Event{What: "hook.stop", ID: name, After: "enough", At: at}); err != nil {
			t.Fatal(err)
		}
	}
	r.supervisor()
	if m := r.wait("old", "stopped", func(m ledger.Member) bool { return m.Observed.Terminal() }); m.Desired != team.WantStopped {
		t.Errorf("desired %s", m.Desired)
	}
	if m := r.waitState("new", team.Running); m.Desired != team.WantRunning {
		t.Errorf("desired %s", m.Desired)
	}
}

// The loop does not wait for a hook: a slow one delays nothing.
func TestSlowRuleHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	mark := filepath.Join(t.TempDir(), "asked")
	r.config("hooks: {TeammateIdle: 'touch " + mark + "; exec sleep 300'}")
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	for range 2 * services.MaxAsking {
		r.activity(m, team.Idle)
		r.activity(m, team.Working)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(5 * time.Minute); ; <-ticker.C {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the hook was not asked")
		}
	}
	r.spawn(s, "b", team.RestartNever)
	if _, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
}
