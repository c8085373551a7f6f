package supervisor

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/state"
	"github.com/teamctl/teamctl/team"
)

// blind makes adoptions fail until see is called, and holds the member's run lock as its shim
// would, until the end: an attempt may check the lock after that.
func (r *rig) blind(name string, err error) (see func()) {
	r.Helper()
	mkdir(r.T, string(r.layout.Bundle(name)))
	lock, lerr := bundle.LockRun(r.layout.Bundle(name))
	if lerr != nil {
		r.Fatal(lerr)
	}
	r.Cleanup(lock.Unlock)
	r.m.blinded(err)
	return func() { r.m.blinded(nil) }
}

func (m *machine) blinded(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blind = err
}

// A failed adoption says nothing about the agent: while its lock is held its state is unknown,
// nothing is started beside it, and it is adopted as soon as possible.
func TestAdoptionThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"tmux away":          team.Errorf(team.CodeUnavailable, "tmux is not installed"),
		"no descriptor left": errors.New("too many open files"),
		"said to be gone":    team.Errorf(team.CodeNotFound, "no such pane"), // the lock says otherwise
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.supervisor()
			before := r.spawn(s, "a", team.RestartAlways)
			s.Close()
			see := r.blind("a", err)
			s = r.supervisor()
			row := r.wait("a", "in doubt", state.Unknown)
			if row.Observed != team.Running || row.Activity != team.ActivityUnknown || row.Generation != before.Generation ||
				!strings.Contains(row.Reason, err.Error()) || !strings.Contains(row.Reason, "run lock is held") {
				t.Errorf("in doubt: %+v", row)
			}
			for verb, f := range map[string]func() error{
				"start":   func() error { _, err := s.StartMembers(t.Context(), []string{"a"}); return err },
				"restart": func() error { _, err := s.RestartMembers(t.Context(), []string{"a"}); return err },
				"capture": func() error { _, err := s.Capture(t.Context(), "a", 0); return err },
			} {
				if err := f(); team.ReasonOf(err) != "state_unknown" || !team.IsCode(err, team.CodeUnavailable) {
					t.Errorf("%s: %v; want state_unknown", verb, err)
				}
			}
			see()
			row = r.wait("a", "adopted", func(m ledger.Member) bool { return !state.Unknown(m) })
			if row.Observed != team.Running || row.Generation != before.Generation || row.Restarts != 0 || r.m.starts != 1 {
				t.Errorf("adopted: %+v after %d starts", row, r.m.starts)
			}
			r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 125})
			r.waitState("a", team.Completed)
		})
	}
}

// A member that two probes report as dead is dead, whatever error the backend has.
func TestTwoProbesSayDead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	s.Close()
	mkdir(t, string(r.layout.Bundle("a")))
	r.m.blinded(errors.New("no server"))
	r.supervisor()
	if row := r.waitState("a", team.Failed); row.ExitText != "exit unknown" {
		t.Errorf("ended %q", row.ExitText)
	}
}

// A record of an exit that cannot be read now is read later: until then nothing is known.
func TestExitThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	s.Close()
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 7})
	r.exitFile("a", r.m.agent(r.layout, "a").exit)
	path := r.layout.Bundle("a").Exit()
	if err := errors.Join(os.Rename(path, path+".hidden"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	r.supervisor()
	if row := r.wait("a", "in doubt or ended", func(m ledger.Member) bool { return state.Unknown(m) || m.Observed != team.Running }); row.Observed != team.Running {
		t.Fatalf("ended %q although its record could not be read", row.ExitText)
	}
	if err := os.Rename(path+".hidden", path); err != nil {
		t.Fatal(err)
	}
	if row := r.waitState("a", team.Failed); row.ExitText != "exit 7" {
		t.Errorf("ended %q", row.ExitText)
	}
}

// A stop of a member in doubt probes once more: it stops what it finds, and reports if it cannot
// tell; the desired state stays recorded.
func TestStopInDoubt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	s.Close()
	see := r.blind("a", errors.New("no server"))
	s = r.supervisor()
	r.wait("a", "in doubt", state.Unknown)
	out, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"a"}})
	if err == nil || len(out) != 1 || out[0].Outcome != "failed" || !strings.Contains(out[0].Reason, "no server") {
		t.Errorf("stop: %+v, %v", out, err)
	}
	see()
	if row := r.waitState("a", team.Completed); row.Desired != team.WantStopped {
		t.Errorf("wanted: %s", row.Desired)
	}
	if !r.m.agent(r.layout, "a").ended() || r.m.starts != 1 {
		t.Error("it was not stopped")
	}
}
