package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/filelock"
	"github.com/teamctl/teamctl/internal/publish"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
)

// The test binary is also the supervisor's program, as "supervise --team KEY".
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "supervise" {
		os.Exit(superviseMain(os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "ghost" {
		os.Exit(ghostMain(os.Args[2]))
	}
	done := strays.Place(team.EnvRuntime)
	// A supervisor's reaper ends with the supervisor, a moment after its lock is free.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/teamctl/teamctl/internal/control.reap"), goleak.Cleanup(func(code int) {
		os.Exit(done(code))
	}))
}

// lockSupervisor takes the locks that a supervisor holds for life.
func lockSupervisor(ctx context.Context, l team.Layout) (held supervisorLocks, err error) {
	if err := PrivateDir(l.Runtime()); err != nil {
		return held, err
	}
	if held[0], err = filelock.Lock(ctx, l.SupervisorLock()); err != nil {
		return held, err
	}
	if held[1], err = filelock.Lock(ctx, l.RuntimeLock()); err != nil {
		return held, errors.Join(err, held[0].Unlock())
	}
	return held, nil
}

func superviseMain(key string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	home, err := team.FindHome()
	if err != nil {
		return 1
	}
	stopsAt("start")
	ready := Ready()
	if os.Getenv(envStops) == "locked" {
		if _, err := lockSupervisor(ctx, home.Team(key)); err != nil {
			return 1
		}
		stopsAt("locked")
	}
	err = Serve(ctx, ServeIn{
		Layout: home.Team(key), Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Listening: func() { ready(nil) },
		Build: func(_ context.Context, _ Inside, cfg *supervisor.Config) (func(), error) {
			cfg.Backends = map[string]backends.Backend{}
			stopsAt("built")
			if path := os.Getenv("TEST_BUILD_WAITS"); path != "" {
				lock, err := filelock.Lock(ctx, path)
				if err != nil {
					return nil, err
				}
				_ = lock.Unlock()
			}
			if os.Getenv("TEST_BUILD_FAILS") != "" {
				return nil, team.Errorf(team.CodeUnavailable, "no tmux here").WithHint("install it")
			}
			return func() {}, nil
		},
	})
	ready(err)
	return team.ExitStatus(err)
}

// envStops says where a supervisor's process stops itself.
const envStops = "TEST_STOPS"

func stopsAt(where string) {
	if os.Getenv(envStops) == where {
		// A thread other than the one that stops the process may go on for a moment.
		goesOn := make(chan os.Signal, 1)
		signal.Notify(goesOn, syscall.SIGCONT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-goesOn
	}
}

// newTeam makes an empty team in a home with short paths.
func newTeam(t *testing.T) team.Layout {
	t.Helper()
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(strays.End(strays.Below(dir)), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	l := team.Home{Dir: filepath.Join(dir, "h")}.Team("t")
	for _, d := range []string{l.Inboxes(), l.Locks(), l.Members()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	led := openLedger(t, l, true)
	if _, err := led.CreateTeam(t.Context(), ledger.TeamRow{Key: "t", Name: "t", LeadSession: "lead"}); err != nil {
		t.Fatal(err)
	}
	if err := publish.Config(t.Context(), l, led); err != nil {
		t.Fatal(err)
	}
	return l
}

func openLedger(t *testing.T, l team.Layout, create bool) *ledger.Ledger {
	t.Helper()
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: create, LockPath: l.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w, _ := Writer(l, ledger.Direct(db))
	return ledger.New(db, w)
}

func dial(t *testing.T, l team.Layout) *Client {
	t.Helper()
	s, err := Dialer([]string{os.Args[0]})(t.Context(), l, true)
	if err != nil {
		t.Fatal(err)
	}
	c := s.(*Client)
	t.Cleanup(func() {
		_ = c.Quit(context.WithoutCancel(t.Context()), false)
		c.Close()
		waitGone(t, l)
	})
	return c
}

// waitGone waits until no supervisor holds the team's lock.
func waitGone(t *testing.T, l team.Layout) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	lock, err := lockSupervisor(ctx, l)
	if err != nil {
		t.Fatalf("the supervisor does not leave: %v", err)
	}
	_ = lock.Unlock()
}

func TestStartedOnceByManyStarters(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	var wg sync.WaitGroup
	pids := make([]int, 16)
	for i := range pids {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, err := Dialer([]string{os.Args[0]})(t.Context(), l, true)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.(*Client).Close()
			st, err := s.Status(t.Context())
			if err != nil {
				t.Error(err)
			}
			pids[i] = st.PID
		}()
	}
	wg.Wait()
	dial(t, l)
	for _, pid := range pids {
		if pid == 0 || pid != pids[0] {
			t.Fatalf("several supervisors: %v", pids)
		}
	}
}

func TestSecondSupervisorNamesTheFirst(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), ServeIn{Layout: l, Log: slog.New(slog.DiscardHandler)})
	if !team.IsCode(err, team.CodeConflict) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", st.PID)) {
		t.Fatalf("err = %v", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatalf("the loser took the winner's socket: %v", err)
	}
}

func TestKilledSupervisorIsReplaced(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	for range 3 {
		st, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(st.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitGone(t, l)
		s, err := Dialer([]string{os.Args[0]})(t.Context(), l, false)
		if s != nil || err != nil {
			t.Fatalf("who starts none: %v, %v", s, err)
		}
		if _, err := NewClient(l.Socket()).Status(t.Context()); !supervisor.IsStopped(err) || !errors.Is(err, ledger.ErrWriterGone) {
			t.Fatalf("err = %v", err)
		}
		if again, err := c.Status(t.Context()); err != nil || again.PID == st.PID {
			t.Fatalf("asked again: pid %d after %d, %v", again.PID, st.PID, err)
		}
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	l := newTeam(t)
	t.Setenv("TEST_BUILD_FAILS", "1")
	_, err := Dialer([]string{os.Args[0]})(t.Context(), l, true)
	if !team.IsCode(err, team.CodeUnavailable) || err.Error() != "no tmux here" || team.HintOf(err) != "install it" {
		t.Fatalf("err = %v, hint %q", err, team.HintOf(err))
	}
	waitGone(t, l)
}

func TestNobodyThereAndNoStart(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	s, err := Dialer([]string{os.Args[0]})(t.Context(), l, false)
	if s != nil || err != nil {
		t.Fatalf("%v, %v", s, err)
	}
}

func TestErrorsKeepCodeReasonAndHint(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	_, err := c.Capture(t.Context(), "nobody", 0)
	if !team.IsCode(err, team.CodeNotFound) || team.ReasonOf(err) != "member_not_found" || team.HintOf(err) == "" {
		t.Fatalf("err = %v, reason %q, hint %q", err, team.ReasonOf(err), team.HintOf(err))
	}
	err = c.View(t.Context(), "nobody", nil)
	if !team.IsCode(err, team.CodeNotFound) || team.ReasonOf(err) != "member_not_found" || team.HintOf(err) == "" {
		t.Errorf("view: %v, reason %q, hint %q", err, team.ReasonOf(err), team.HintOf(err))
	}
}

// Writes go through the socket while a supervisor is up and directly when it is
// killed; an answer that was lost is asked for again by the operation's id.
func TestWritesSurviveTheSupervisor(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	c := dial(t, l)
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		led := openLedger(t, l, false)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				_, err := led.CreateTasks(t.Context(), []ledger.NewTask{{Subject: fmt.Sprintf("%d/%d", w, i), Description: "d"}}, "t")
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	for range 3 {
		st, err := c.Status(t.Context())
		if err != nil {
			break // it is between two lives
		}
		_ = syscall.Kill(st.PID, syscall.SIGKILL)
		waitGone(t, l)
		c = dial(t, l)
	}
	wg.Wait()
	led := openLedger(t, l, false)
	tasks, err := led.Tasks(t.Context(), ledger.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, task := range tasks {
		seen[task.Subject]++
	}
	if len(tasks) != writers*each || len(seen) != writers*each {
		t.Fatalf("%d tasks, %d different; want %d of each", len(tasks), len(seen), writers*each)
	}
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	l := newTeam(t)
	dial(t, l)
	for path, want := range map[string]os.FileMode{l.Socket(): 0o600, l.Runtime(): 0o700} {
		fi, err := os.Stat(path)
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, fi.Mode(), err, want)
		}
	}
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := PrivateDir(open); err != nil {
		t.Errorf("a directory of ours that is open: %v", err)
	}
	if fi, err := os.Stat(open); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("it stays open: %v, %v", fi.Mode(), err)
	}
	shared := filepath.Join(dir, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := PrivateDir(shared); !team.IsCode(err, team.CodeDenied) {
		t.Errorf("a directory that everybody may write to: %v", err)
	}
}
