package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// envRename makes the test binary a supervisor that renames a member and is killed: STEP DIR
// SESSION NAME.
const envRename = "SUPERVISOR_TEST_RENAME"

func renameAndDie() int {
	arg := strings.Split(os.Getenv(envRename), "\n")
	step, l, session, name := arg[0], team.LayoutAt(arg[1]), arg[2], arg[3]
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	db, err := ledger.Open(ctx, l.Ledger(), ledger.Options{LockPath: l.LedgerLock()})
	if err == nil {
		s := New(Config{
			Layout: l, Ledger: ledger.New(db, ledger.Direct(db)), Backends: map[string]backends.Backend{"tmux": newMachine()},
			step: func(at string) {
				if at == step {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {} // nothing more happens here
				}
			},
		})
		if err = s.Start(ctx); err == nil {
			_, err = s.RenameMember(ctx, session, name)
		}
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

// stopped returns a member of a rig that ran, has mail, and was stopped.
func (r *rig) stopped(s *Supervisor, name string) ledger.Member {
	r.Helper()
	r.spawn(s, name, team.RestartNever)
	mkdir(r.T, string(r.layout.Bundle(name)))
	if err := os.WriteFile(r.layout.Bundle(name).Log(), []byte("said by "+name), 0o600); err != nil {
		r.Fatal(err)
	}
	if _, err := s.StopMembers(r.Context(), team.StopRequest{Names: []string{name}}); err != nil {
		r.Fatal(err)
	}
	r.mailTo(name, "first")
	return r.waitState(name, team.Completed)
}

// mailTo sends a message of the lead.
func (r *rig) mailTo(name, text string) ledger.Delivery {
	r.Helper()
	_, ds, err := r.mailer().Post(r.Context(), ledger.NewMessage{Kind: team.KindMessage, From: team.LeadName, To: name, Text: text})
	if err != nil {
		r.Fatal(err)
	}
	return ds[0]
}

func (r *rig) mailOf(name string) (texts []string) {
	r.Helper()
	box, err := r.mailer().Box(name)
	if err != nil {
		r.Fatal(err)
	}
	entries, err := box.Entries(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		texts = append(texts, e.Text)
	}
	return texts
}

// isRenamed checks that new has everything of old, once, and that old is free.
func (r *rig) isRenamed(s *Supervisor, m ledger.Member, mail ...string) {
	r.Helper()
	row, err := r.led.MemberBySession(r.Context(), m.SessionKey)
	if err != nil || row.Name != "new" || row.AgentID != "new@t" {
		r.Errorf("%+v, %v", row, err)
	}
	if open, err := r.led.OpenRenames(r.Context()); err != nil || len(open) > 0 {
		r.Errorf("open: %+v, %v", open, err)
	}
	if got := r.mailOf("new"); !slices.Equal(got, mail) {
		r.Errorf("the mail of new is %q, want %q", got, mail)
	}
	for _, path := range []string{filepath.Join(r.layout.Inboxes(), "old.json"), string(r.layout.Bundle("old"))} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			r.Errorf("%s is still there: %v", path, err)
		}
	}
	if log, err := os.ReadFile(r.layout.Bundle("new").Log()); string(log) != "said by old" {
		r.Errorf("the log of new is %q, %v", log, err)
	}
	cfg, err := os.ReadFile(r.layout.Config())
	if err != nil || !strings.Contains(string(cfg), `"new@t"`) || strings.Contains(string(cfg), `"old@t"`) {
		r.Errorf("config.json: %s, %v", cfg, err)
	}
	if _, err := s.StartMembers(r.Context(), []string{"old"}); err != nil { // as it was called
		r.Error(err)
	}
	<-r.m.events
	r.waitState("new", team.Running)
	if other := r.spawn(s, "old", team.RestartNever); other.Name != "old" || other.SessionKey == m.SessionKey {
		r.Errorf("%+v", other)
	}
	if got := r.mailOf("old"); len(got) != 0 {
		r.Errorf("the mail of the next old is %q", got)
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.stopped(s, "old")
	row, err := s.RenameMember(t.Context(), m.SessionKey, "new")
	if err != nil || row.Name != "new" {
		t.Fatalf("%+v, %v", row, err)
	}
	if again, err := s.RenameMember(t.Context(), m.SessionKey, "new"); err != nil || again.Name != "new" {
		t.Errorf("%+v, %v", again, err)
	}
	r.mailTo("old", "second")
	r.isRenamed(s, m, "first", "second")
}

func TestRenameOfOneThatRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "old", team.RestartNever)
	_, err := s.RenameMember(t.Context(), m.SessionKey, "new")
	if team.ReasonOf(err) != team.ReasonMemberRunning || team.HintOf(err) != "teamctl rename --restart old new" {
		t.Errorf("%v: %s", err, team.HintOf(err))
	}
	if open, err := r.led.OpenRenames(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("%+v, %v", open, err)
	}
	r.waitState("old", team.Running)
}

// A member that has left is renamed in the same way, and returns under its new name.
func TestRenameOfOneThatLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.stopped(s, "old")
	if _, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"old"}, Remove: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RenameMember(t.Context(), m.SessionKey, "new"); err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(r.layout.Bundle("new").Log()); string(log) != "said by old" {
		t.Errorf("%q, %v", log, err)
	}
	if row, err := r.led.Member(t.Context(), "new"); err != nil || row.RemovedAt == 0 || row.SessionKey != m.SessionKey {
		t.Errorf("%+v, %v", row, err)
	}
}

// A supervisor that is killed at any step leaves a rename that the next one completes. Mail that is
// sent meanwhile, to either name, arrives once.
func TestRenameKilled(t *testing.T) {
	t.Parallel()
	steps := []string{"applied", "mailbox", "begun", "linked", "bundle"}
	if testing.Short() {
		steps = steps[:2]
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := r.supervisor()
			m := r.stopped(s, "old")
			s.Close()
			r.killedAt(step, m)
			r.mailTo("old", "second") // nobody supervises
			if d := r.mailTo(m.SessionKey, "third"); d.State != team.Mailed {
				t.Errorf("%+v", d)
			}
			for _, name := range []string{"old", "new"} {
				if _, _, err := r.led.AddMember(t.Context(), ledger.Member{Name: name}, true); team.ReasonOf(err) != team.ReasonNameTaken {
					t.Errorf("%s is free: %v", name, err)
				}
			}
			s = r.supervisor()
			if _, err := s.RenameMember(t.Context(), m.SessionKey, "new"); err != nil { // whoever asks again
				t.Error(err)
			}
			r.isRenamed(s, m, "first", "second", "third")
		})
	}
}

// killedAt has another process rename old to new, and be killed at a step.
func (r *rig) killedAt(step string, m ledger.Member) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envRename+"="+strings.Join([]string{step, r.layout.Dir, m.SessionKey, "new"}, "\n"))
	out, err := cmd.CombinedOutput()
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || st.Signal() != syscall.SIGKILL {
		r.Fatalf("%v: %s", err, out)
	}
}

// A rename that cannot be applied is cancelled, and leaves nothing behind.
func TestRenameIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.stopped(s, "old")
	s.Close()
	r.killedAt("linked", m)
	starting, running := team.Starting, team.WantRunning
	if _, err := r.led.UpdateMember(t.Context(), ledger.MemberPatch{SessionKey: m.SessionKey, Observed: &starting, Desired: &running}); err != nil {
		t.Fatal(err)
	}
	s = r.supervisor()
	<-r.m.events
	r.waitState("old", team.Running)
	if got := r.mailOf("old"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("%q", got)
	}
	if other := r.spawn(s, "new", team.RestartNever); other.Name != "new" {
		t.Errorf("%+v", other)
	}
	if got := r.mailOf("new"); len(got) != 0 {
		t.Errorf("the mail of new is %q", got)
	}
}

// Two concurrent renames, with a spawn of the new name and mail to the old one: one rename takes
// effect, no two members share a name, and each message arrives once.
func TestRenameBesideOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.stopped(s, "old")
	const letters = 40
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	for _, name := range []string{"new", "newer"} {
		wg.Go(func() {
			_, err := s.RenameMember(t.Context(), m.SessionKey, name)
			errs <- err
		})
	}
	var other ledger.SpawnResult
	wg.Go(func() {
		var err error
		other, err = s.Spawn(t.Context(), team.SpawnRequest{Name: "new", Spec: team.MemberSpec{Agent: "command", Command: []string{"agent"}, WorktreeMode: "none", Cwd: r.layout.Dir}})
		if err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		for i := range letters {
			_, _, err := r.mailer().Post(t.Context(), ledger.NewMessage{
				Kind: team.KindMessage, From: team.LeadName, To: "old", Text: fmt.Sprint("letter ", i)})
			if err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	failed := 0
	for range 2 {
		if err := <-errs; err != nil {
			failed++
			if !team.IsCode(err, team.CodeConflict) {
				t.Error(err)
			}
		}
	}
	row, err := r.led.MemberBySession(t.Context(), m.SessionKey)
	if err != nil || row.Name == other.Member.Name || failed == 2 && row.Name != "old" || failed < 2 && row.Name == "old" {
		t.Errorf("%s after %d refusals, beside %s: %v", row.Name, failed, other.Member.Name, err)
	}
	if err := r.mailer().Collect(t.Context(), row); err != nil {
		t.Error(err)
	}
	want := []string{"first"}
	for i := range letters {
		want = append(want, fmt.Sprint("letter ", i))
	}
	if got := r.mailOf(row.Name); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if open, err := r.led.OpenRenames(t.Context()); err != nil || len(open) > 0 {
		t.Errorf("%+v, %v", open, err)
	}
}
