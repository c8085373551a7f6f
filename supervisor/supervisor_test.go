package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	for k, v := range map[string]string{"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1"} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	if os.Getenv(envRename) != "" {
		os.Exit(renameAndDie())
	}
	goleak.VerifyTestMain(m)
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestExitIsFollowedByPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		restart team.RestartPolicy
		exit    backends.Exit
		want    team.Observed
		starts  int
	}{
		{"success-is-done", team.RestartOnFailure, backends.Exit{Known: true}, team.Completed, 1},
		{"125-is-done", team.RestartAlways, backends.Exit{Known: true, Code: 125}, team.Completed, 1},
		{"never", team.RestartNever, backends.Exit{Known: true, Code: 3}, team.Failed, 1},
		{"exec-failure-is-permanent", team.RestartAlways, backends.Exit{ExecFailed: true, Reason: "no such file"}, team.Failed, 1},
		{"failure-starts-again", team.RestartOnFailure, backends.Exit{Known: true, Code: 3}, team.Running, 2},
		{"unknown-is-no-success", team.RestartOnFailure, backends.Exit{Code: -1}, team.Running, 2},
		{"always", team.RestartAlways, backends.Exit{Known: true}, team.Running, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			s := r.supervisor()
			first := r.spawn(s, "a", c.restart)
			r.m.agent(r.layout, "a").end(c.exit)
			row := r.wait("a", string(c.want), func(m ledger.Member) bool {
				return m.Observed == c.want && (c.starts == 1 || m.Generation != first.Generation)
			})
			if r.m.starts != c.starts || row.Restarts != c.starts-1 {
				t.Errorf("starts %d, restarts %d; want %d starts", r.m.starts, row.Restarts, c.starts)
			}
		})
	}
}

func TestFault11CrashLoopGivesUpAndStartForgets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartOnFailure)
	for i := 1; i < 8; i++ {
		r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
		<-r.m.events
		r.waitState("a", team.Running)
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	row := r.waitState("a", team.Failed)
	if r.m.starts != 8 || row.Failures != 8 || !strings.Contains(row.Reason, "crash loop") {
		t.Fatalf("starts %d, row %+v", r.m.starts, row)
	}
	if _, err := s.StartMembers(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if row = r.waitState("a", team.Running); row.Failures != 0 {
		t.Fatalf("failures %d after a manual start", row.Failures)
	}
}

func TestFailedSpawnLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.m.fail = team.Errorf(team.CodeUnavailable, "no pane")
	s := r.supervisor()
	_, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "a", Spec: team.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}})
	if !team.IsCode(err, team.CodeUnavailable) || !strings.Contains(err.Error(), "no pane") {
		t.Fatalf("err = %v", err)
	}
	rows, err := r.led.Members(t.Context(), false)
	if err != nil || len(rows) != 1 {
		t.Fatalf("roster %v, %v", rows, err)
	}
	cfg, err := team.ReadConfig(r.layout.Config())
	if err != nil || len(cfg.Members) != 1 {
		t.Fatalf("config %+v, %v", cfg, err)
	}
}

// A start that takes too long is given up and reported: the first one in the answer, a later one as
// a failure like others.
func TestStartTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartAlways)
	s.Close()
	r.policy.Start = 30 * time.Millisecond
	r.m.gate = make(chan struct{})
	s = r.supervisor()
	_, err := s.Spawn(t.Context(), team.SpawnRequest{Name: "b", Spec: team.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}})
	if !team.IsCode(err, team.CodeTimeout) || team.ReasonOf(err) != "start_timeout" || !strings.Contains(err.Error(), "not up after 30ms") {
		t.Fatalf("err = %v", err)
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 1})
	row := r.wait("a", "given up", func(m ledger.Member) bool { return strings.Contains(m.Reason, "not up after 30ms") })
	// On a busy machine only the last failure is seen, after which it is not started again.
	if row.ExitText != "start failed" || row.Observed != team.Exited && row.Observed != team.Backoff && row.Observed != team.Failed {
		t.Errorf("row %+v", row)
	}
}

// TestNextSupervisorAdopts: a supervisor that ends leaves its agents to the next one, whether it
// ends in order or can write nothing more, as if it were killed there.
// TestFault01SupervisorKilled20Agents kills a process.
func TestNextSupervisorAdopts(t *testing.T) {
	t.Parallel()
	t.Run("closed", func(t *testing.T) { t.Parallel(); nextAdopts(t, func(*cutWriter) {}) })
	t.Run("cut off", func(t *testing.T) { t.Parallel(); nextAdopts(t, (*cutWriter).cut) })
}

// cutWriter is a supervisor's writer until it is cut; after that it writes nothing.
type cutWriter struct {
	ledger.Writer
	gone atomic.Bool
}

func (w *cutWriter) cut() { w.gone.Store(true) }

func (w *cutWriter) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	if w.gone.Load() {
		return nil, ledger.ErrWriterGone
	}
	return w.Writer.Write(ctx, op)
}

func nextAdopts(t *testing.T, before func(*cutWriter)) {
	r := newRig(t)
	plain := r.led
	start := func() (*Supervisor, func()) {
		w := &cutWriter{Writer: ledger.Direct(r.db)}
		r.led = ledger.New(r.db, w)
		defer func() { r.led = plain }()
		s := r.supervisor()
		return s, func() { before(w); s.Close() }
	}
	s, end := start()
	first := r.spawn(s, "a", team.RestartOnFailure)
	r.spawn(s, "b", team.RestartNever)
	for i := range 10 {
		end()
		if i == 9 {
			r.m.agent(r.layout, "b").end(backends.Exit{Known: true, Code: 7})
			r.exitFile("b", r.m.agent(r.layout, "b").exit)
		}
		_, end = start()
	}
	row := r.waitState("a", team.Running)
	if row.PID != first.PID || row.Restarts != 0 || r.m.starts != 2 {
		t.Fatalf("adopted %+v after %d starts; was %+v", row, r.m.starts, first)
	}
	if row = r.waitState("b", team.Failed); row.ExitText != "exit 7" {
		t.Fatalf("b ended %q while nobody looked, want exit 7", row.ExitText)
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true, Code: 125})
	r.waitState("a", team.Completed)
}

func TestExitNobodySawIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	r.spawn(s, "a", team.RestartNever)
	s.Close()
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	r.supervisor()
	if row := r.waitState("a", team.Failed); row.ExitText != "exit unknown" {
		t.Fatalf("exit %q, want unknown", row.ExitText)
	}
}

func TestInterruptedStartIsTakenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.m.gate = make(chan struct{})
	s := r.supervisor()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Spawn(ctx, team.SpawnRequest{Name: "a", Spec: team.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}})
		done <- err
	}()
	r.waitState("a", team.Starting)
	cancel()
	<-done
	s.Close()
	close(r.m.gate)
	r.supervisor()
	r.waitState("a", team.Running)
	if r.m.starts != 1 {
		t.Fatalf("%d starts", r.m.starts)
	}
}

// The process that spawns may be killed at any moment: a member on the roster is started, and known
// to the supervisor.
func TestSpawnOfOneWhoIsGone(t *testing.T) {
	r := newRig(t)
	s := r.supervisor()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 20 {
		name := fmt.Sprint("a", i)
		if _, err := s.Spawn(gone, team.SpawnRequest{Name: name, Spec: team.MemberSpec{WorktreeMode: "none", Cwd: r.layout.Dir}}); !errors.Is(err, context.Canceled) && err != nil {
			t.Fatal(err)
		}
		r.waitState(name, team.Running)
	}
}

func TestDeadMembersTasksReturn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	m := r.spawn(s, "a", team.RestartNever)
	tasks, err := r.led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: "x", Description: "x"}}, "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.led.Claim(t.Context(), ledger.ClaimIn{Owner: m.SessionKey, Lease: ledger.Lease}); err != nil {
		t.Fatal(err)
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Code: -1, Known: true, Signal: "SIGKILL"})
	r.waitState("a", team.Failed)
	got, err := r.led.Task(t.Context(), tasks[0].ID)
	if err != nil || got.Status != team.TaskPending || got.Owner != "" {
		t.Fatalf("task %+v, %v", got, err)
	}
}

func TestLeavesWhenIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.supervisor()
	r.spawn(first, "a", team.RestartNever)
	r.waitState("a", team.Running)
	first.Close()
	r.idle = 20 * time.Millisecond
	s := r.supervisor() // with a member from its start
	select {
	case <-s.Done():
		t.Fatal("left while a member ran")
	case <-time.After(100 * time.Millisecond):
	}
	r.m.agent(r.layout, "a").end(backends.Exit{Known: true})
	select {
	case <-s.Done():
	case <-time.After(5 * time.Minute):
		t.Fatal("stayed with nothing to supervise")
	}
	if _, err := s.Status(t.Context()); !errors.Is(err, ErrStopped) {
		t.Fatalf("err = %v", err)
	}
}

func TestReadyByItsOwnWordOrSettledOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.policy.Settle, r.policy.Silent, r.policy.Start = 20*time.Millisecond, time.Minute, time.Minute
	s := r.supervisor()
	mkdir(t, string(r.layout.Bundle("quiet")))
	r.spawn(s, "quiet", team.RestartNever)
	if row := r.waitState("quiet", team.Running); row.Ready {
		t.Fatal("ready without any evidence")
	}
	if err := os.WriteFile(r.layout.Bundle("quiet").Log(), []byte("$ "), 0o600); err != nil {
		t.Fatal(err)
	}
	r.wait("quiet", "ready", func(m ledger.Member) bool { return m.Ready })
	s.Close()

	notes := make(chan Note)
	r.plans.reports = true
	r.policy.Start = 2 * time.Second // it has to be up within it
	r.notes = notes
	s = r.supervisor()
	m := r.spawn(s, "talker", team.RestartNever)
	row := r.wait("talker", "told to be late", func(m ledger.Member) bool { return m.Reason != "" })
	if row.Ready || !strings.Contains(row.Reason, "not ready after") {
		t.Fatalf("row %+v", row)
	}
	notes <- Note{Agent: "talker", Generation: "an older one", Event: "ready"}
	notes <- Note{Agent: "talker", Generation: m.Generation, Event: "ready"}
	if row = r.wait("talker", "ready", func(m ledger.Member) bool { return m.Ready }); row.Reason != "" {
		t.Fatalf("reason %q after all", row.Reason)
	}
}

// A datagram is lost if the socket was deleted or the loop is late: the bundle has the same report.
func TestReadyByItsWordInTheBundle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.plans.reports = true
	r.policy.Start = time.Minute
	s := r.supervisor()
	m := r.spawn(s, "early", team.RestartNever)
	b := r.layout.Bundle("early")
	if err := bundle.SayReady(b, r.layout.NotifySocket(), "early", "an older one"); err != nil {
		t.Fatal(err)
	}
	if err := bundle.SayReady(b, r.layout.NotifySocket(), "early", m.Generation); err != nil {
		t.Fatal(err)
	}
	if row := r.wait("early", "ready", func(m ledger.Member) bool { return m.Ready }); row.Generation != m.Generation {
		t.Fatalf("row %+v", row)
	}
	m = r.spawn(s, "late", team.RestartNever)
	s.Close()
	if row := r.waitState("late", team.Running); row.Ready {
		t.Fatal("ready without any evidence")
	}
	if err := bundle.SayReady(r.layout.Bundle("late"), r.layout.NotifySocket(), "late", m.Generation); err != nil {
		t.Fatal(err)
	}
	r.supervisor()
	r.wait("late", "ready", func(m ledger.Member) bool { return m.Ready })
}

func TestRecoverStartsOnlyWhatWasLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.supervisor()
	for _, n := range []string{"lost", "failed", "stopped", "up"} {
		r.spawn(s, n, team.RestartNever)
	}
	r.m.agent(r.layout, "failed").end(backends.Exit{Known: true, Code: 1})
	r.waitState("failed", team.Failed)
	if _, err := s.StopMembers(t.Context(), team.StopRequest{Names: []string{"stopped"}}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	r.m.agent(r.layout, "lost").end(backends.Exit{Code: -1})
	s = r.supervisor()
	r.waitState("lost", team.Failed)
	got, err := s.RecoverMembers(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome := map[string]string{}
	for _, x := range got {
		outcome[x.Name] = x.Outcome
	}
	want := map[string]string{"lost": "started", "failed": "left", "stopped": "left", "up": "running"}
	if !maps.Equal(outcome, want) {
		t.Fatalf("%v, want %v", outcome, want)
	}
	// One probe that speaks for life is enough to leave a member alone.
	r.m.agent(r.layout, "lost").end(backends.Exit{Code: -1})
	r.waitState("lost", team.Failed)
	mkdir(t, string(r.layout.Bundle("lost")))
	lock, err := filelock.Lock(t.Context(), r.layout.Bundle("lost").RunLock())
	if err != nil {
		t.Fatal(err)
	}
	if got, err = s.RecoverMembers(t.Context(), []string{"lost"}); err != nil || got[0].Outcome != "alive" {
		t.Fatalf("%+v, %v", got, err)
	}
	// A process that was killed lets go of its lock a moment after it is gone to the eye.
	time.AfterFunc(dyingFor/20, func() { _ = lock.Unlock() })
	if got, err = s.RecoverMembers(t.Context(), []string{"lost"}); err != nil || got[0].Outcome != "started" {
		t.Fatalf("%+v, %v", got, err)
	}
}
