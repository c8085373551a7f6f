package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// fullDisk is a writer that, while it is full, refuses every write whose name or arguments contain a text.
type fullDisk struct {
	ledger.Writer
	mu      sync.Mutex
	refuse  string
	refused int
}

func (f *fullDisk) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	f.mu.Lock()
	no := f.refuse != "" && strings.Contains(op.Name+" "+string(op.Args), f.refuse)
	if no {
		f.refused++
		f.refuse = "" // there is space again
	}
	f.mu.Unlock()
	if no {
		return nil, errors.New("database or disk is full")
	}
	return f.Writer.Write(ctx, op)
}

// full is a ledger of the rig that refuses one write, as soon as it is asked to.
func (r *rig) full() *fullDisk {
	full := &fullDisk{Writer: ledger.Direct(r.db)}
	r.led = ledger.New(r.db, full)
	return full
}

// next refuses the next write whose name or arguments contain a text.
func (f *fullDisk) next(refuse string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = refuse
}

// session returns the session key of a member, also of one that has left.
func (r *rig) session(name string) string {
	r.Helper()
	all, err := r.led.Members(r.Context(), true)
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range all {
		if m.Name == name {
			return m.SessionKey
		}
	}
	r.Fatalf("no member %q", name)
	return ""
}

// times returns how many writes were refused.
func (f *fullDisk) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused
}

// The consequences of an exit are written again if the disk was full at that moment: a member does
// not stay exited without anybody to handle it.
func TestFault32VerdictOfAFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  string
		restart team.RestartPolicy
		code    int
		want    team.Observed
	}{
		"the back-off":   {`"backoff"`, team.RestartAlways, 1, team.Running},
		"the giving up":  {`"failed"`, team.RestartNever, 1, team.Failed},
		"the completion": {`"completed"`, team.RestartOnFailure, 0, team.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			full := r.full()
			s := r.supervisor()
			before := r.spawn(s, "a", c.restart)
			full.next(c.refuse)
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: c.code})
			r.wait("a", string(c.want), func(m ledger.Member) bool {
				return m.Observed == c.want && (c.want != team.Running || m.Generation != before.Generation)
			})
			full.mu.Lock()
			defer full.mu.Unlock()
			if full.refused != 1 {
				t.Errorf("refused %d times", full.refused)
			}
		})
	}
}

// That an agent is up is written again, and until then it is not taken for one whose start was cut
// short: nothing is started beside it. Its channel is opened once its row says that it is up.
func TestFault32UpOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, adopted := range []bool{false, true} {
		c := &fakeCourier{deliver: func(_ context.Context, mail []team.Mail) (out []team.Outcome) {
			for _, m := range mail {
				out = append(out, team.Outcome{ID: m.ID, State: team.Accepted, Evidence: "it answers"})
			}
			return out
		}}
		r := newRig(t)
		full := r.full()
		r.talk(c, team.RestartAlways)
		s := c.s
		before, err := r.led.Member(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		starts := 1
		if adopted {
			s.Close()
			for _, o := range []team.Observed{team.Exited, team.Starting} {
				if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: before.SessionKey, Observed: &o}); err != nil {
					t.Fatal(err)
				}
			}
			full.next(`"running"`)
			s = r.supervisor()
		} else {
			starts = 2
			full.next(`"running"`)
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
			<-r.m.events
		}
		r.wait("a", "refused", func(ledger.Member) bool { return full.times() == 1 })
		if rows, err := s.StartMembers(t.Context(), []string{"a"}); err != nil || rows[0].Observed != team.Running {
			t.Errorf("adopted %v: started meanwhile: %+v, %v", adopted, rows, err)
		}
		row := r.waitState("a", team.Running)
		r.m.mu.Lock()
		if r.m.starts != starts {
			t.Errorf("adopted %v: started %d times, want %d", adopted, r.m.starts, starts)
		}
		r.m.mu.Unlock()
		at := r.m.agent(r.layout, "a")
		if row.Generation != at.launch.Generation || row.PID != at.proc.Agent.PID || row.StartedAt == 0 || row.Restarts != starts-1 {
			t.Errorf("adopted %v: %+v", adopted, row)
		}
		(<-c.opened).Report(team.Observation{Tier: team.TierHook, Activity: team.Idle, Source: "a hook"})
		id := r.post("hello")
		r.until("delivered", func() bool { return r.delivery(id).State == team.Accepted })
		s.Close()
	}
}

// The end of a stop is also written again, and the stop is answered after it: a member that is said
// to be removed is.
func TestFault32StopOnAFullDisk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse  string
		ended   bool // before the stop
		want    team.Observed
		outcome string
	}{
		"the final state":               {`"observed":"killed"`, false, team.Killed, team.StopForced},
		"the removal":                   {"member.leave", false, team.Killed, team.StopForced},
		"the removal of one that ended": {"member.leave", true, team.Failed, team.StopAlready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			full := r.full()
			s := r.supervisor()
			r.spawn(s, "a", team.RestartNever)
			if c.ended {
				r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
				r.waitState("a", team.Failed)
			}
			full.next(c.refuse)
			out, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}, Force: true, Remove: true})
			if err != nil || len(out) != 1 || out[0].Outcome != c.outcome {
				t.Errorf("%+v, %v", out, err)
			}
			if m, err := r.led.MemberBySession(t.Context(), r.session("a")); err != nil || m.RemovedAt == 0 || m.Observed != c.want {
				t.Errorf("answered, and it is %s, removed at %d, %v", m.Observed, m.RemovedAt, err)
			}
			if n := full.times(); n != 1 {
				t.Errorf("refused %d times", n)
			}
		})
	}
}

// So is the end of a member for which nobody waits: of a stop that an earlier supervisor was asked for.
func TestFault32OrderedStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, refuse := range []string{"member.leave", `"observed":"completed"`} {
		r := newRig(t)
		full := r.full()
		s := r.supervisor()
		r.spawn(s, "a", team.RestartNever)
		s.Close()
		r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
		stopped, exited := team.WantStopped, team.Exited
		if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: r.session("a"), Observed: &exited, Desired: &stopped, StopOrder: &ledger.StopOrder{Remove: true}}); err != nil {
			t.Fatal(err)
		}
		full.next(refuse)
		s = r.supervisor()
		r.until("removed", func() bool {
			m, err := r.led.MemberBySession(t.Context(), r.session("a"))
			return err == nil && m.RemovedAt != 0 && m.Observed == team.Completed
		})
		if n := full.times(); n != 1 {
			t.Errorf("%s: refused %d times", refuse, n)
		}
		s.Close()
	}
}

// A stop whose end is not written yet gives way to a later start.
func TestFault32StartAfterAStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := r.full()
	s := r.supervisor()
	before := r.spawn(s, "a", team.RestartNever)
	full.next(`"observed":"completed"`)
	stop := r.stop(s, team.StopRequest{Names: []string{"a"}})
	r.until("refused", func() bool { return full.times() == 1 })
	rows, err := s.StartMembers(t.Context(), []string{"a"})
	if err != nil || rows[0].Observed != team.Running || rows[0].Generation == before.Generation {
		t.Errorf("%+v, %v", rows, err)
	}
	if got := <-stop; got.err != nil || got.out[0].Outcome != team.StopUnasked {
		t.Errorf("%+v", got)
	}
	again, err := s.StartMembers(t.Context(), []string{"a"})
	if err != nil || again[0].Generation != rows[0].Generation || again[0].Observed != team.Running {
		t.Errorf("%+v, %v", again, err)
	}
}

// Force that comes while the end of a stop is not written yet ends nothing: nothing is left.
func TestFault32ForceAfterAStopOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := r.full()
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	r.waitState("a", team.Failed)
	full.next("member.leave")
	stop := r.stop(s, team.StopRequest{Names: []string{"a"}, Remove: true})
	r.until("refused", func() bool { return full.times() == 1 })
	if _, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}, Force: true, NoWait: true}); err != nil && !team.IsCode(err, team.CodeNotFound) {
		t.Error(err) // it has left by now, or it has not
	}
	if got := <-stop; got.err != nil || got.out[0].Outcome != team.StopAlready {
		t.Errorf("%+v", got)
	}
	if m, err := r.led.MemberBySession(t.Context(), r.session("a")); err != nil || m.RemovedAt == 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// The consequences of a failed start are also written again.
func TestFault32FailedStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := r.full()
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	r.m.mu.Lock()
	r.m.fail = errors.New("no space left on device")
	r.m.mu.Unlock()
	full.next("start failed")
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for refused := 0; refused == 0; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the failed start was never written")
		}
		full.mu.Lock()
		refused = full.refused
		full.mu.Unlock()
	}
	r.m.mu.Lock()
	r.m.fail = nil
	r.m.mu.Unlock()
	r.waitState("a", team.Running)
}

// The member's tasks are released, too: otherwise they would be blocked until their leases expire.
func TestFault32TasksOfAnExitOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, stop := range []bool{false, true} {
		r := newRig(t)
		full := r.full()
		s := r.supervisor()
		m := r.spawn(s, "a", team.RestartAlways)
		if _, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "work"}}, team.LeadName); err != nil {
			t.Fatal(err)
		}
		if _, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: m.SessionKey, ID: "1"}); err != nil {
			t.Fatal(err)
		}
		full.next("a ended: ")
		want := team.Running // again
		if stop {
			out, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}, Force: true})
			if err != nil || len(out) != 1 || len(out[0].Tasks) != 1 {
				t.Errorf("%+v, %v", out, err)
			}
			want = team.Killed
		} else {
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
		}
		r.wait("a", string(want), func(now ledger.Member) bool {
			return now.Observed == want && (stop || now.Generation != m.Generation)
		})
		if task, err := r.led.Task(t.Context(), "1"); err != nil || task.Status != team.TaskPending {
			t.Errorf("the task is %s of %s, %v", task.Status, task.OwnerName, err)
		}
		full.mu.Lock()
		if full.refused != 1 {
			t.Errorf("refused %d times", full.refused)
		}
		full.mu.Unlock()
		s.Close()
	}
}
