package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// TestSilent checks which supervisors count as silent, and how long it takes to know.
func TestSilent(t *testing.T) {
	t.Parallel()
	hung := team.Errorf(team.CodeUnavailable, "it is stopped").WithReason(team.ReasonHung)
	busy := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, c := range map[string]struct {
		dial  func(context.Context) error
		want  bool
		after time.Duration
	}{
		"answers or is down": {dial: func(context.Context) error { return nil }},
		"stopped":            {dial: func(context.Context) error { return hung }, want: true},
		"stopped for long":   {dial: func(context.Context) error { return fmt.Errorf("reach: %w", syscall.EAGAIN) }, want: true},
		"cannot be reached":  {dial: func(context.Context) error { return syscall.EACCES }},
		"busy":               {dial: busy, want: true, after: SilentAfter},
		"this process is frozen": {dial: func(ctx context.Context) error {
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble: the time is not real
			return context.Cause(ctx)
		}, want: true, after: 2 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := &Team{Env: &Env{Dial: func(ctx context.Context, _ team.Layout, start bool) (Supervisor, error) {
				if start {
					t.Error("a supervisor is started")
				}
				return nil, c.dial(ctx)
			}}}
			began := time.Now()
			if got := x.silent(t.Context()); got != c.want || time.Since(began) != c.after {
				t.Errorf("%s: %t after %s, want %t after %s", name, got, time.Since(began), c.want, c.after)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := x.Ask(ctx)(); err == nil {
				t.Errorf("%s: no error after the end of the context", name)
			}
		})
	}
}

// TestLastSign checks that a supervisor that is down counts as known to run until its end, if that
// was seen, else until its last sign.
func TestLastSign(t *testing.T) {
	t.Parallel()
	lock, end := time.UnixMilli(1_700_000_000_000), time.UnixMilli(1_700_000_279_000)
	const up = "12\n" + team.SupervisorAdopted + "\n"
	for file, want := range map[string]time.Time{
		"":                           lock, // it has removed the file, or was never seen
		up:                           lock,
		"12\n":                       lock, // another one is starting
		up + team.SupervisorEnd(end): end,
		up + team.SupervisorEnd(end) + team.SupervisorEnd(end.Add(time.Hour)): end, // seen again, by a process that was stopped
		up + "ended soon\n": lock,
	} {
		if got := lastSign([]byte(file), lock); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", file, got, want)
		}
	}
}

// TestNoteEnd checks that only the first end of a supervisor that has adopted the members is noted, and never in
// the file of another one.
func TestNoteEnd(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_700_000_279_000)
	const up = "12\n" + team.SupervisorAdopted + "\n"
	for file, want := range map[string]string{
		"":                          "",
		"12\n":                      "12\n",
		"13\nadopted\n":             "13\nadopted\n",
		up:                          up + team.SupervisorEnd(at),
		up + team.SupervisorEnd(at): up + team.SupervisorEnd(at),
	} {
		x := &Team{Layout: team.Home{Dir: t.TempDir()}.Team("f")}
		if err := x.NoteEnd(12, at); err != nil {
			t.Errorf("without a file: %v", err)
		}
		path := x.Layout.SupervisorPID()
		err := errors.Join(os.MkdirAll(x.Layout.Dir, 0o700), os.WriteFile(path, []byte(file), 0o600), x.NoteEnd(12, at))
		if got, rerr := os.ReadFile(path); err != nil || rerr != nil || string(got) != want {
			t.Errorf("%q: %q, %v, %v; want %q", file, got, err, rerr, want)
		}
	}
}

// TestLastSignIgnoresOthers checks that an event that no supervisor has seen is no sign of one.
func TestLastSignIgnoresOthers(t *testing.T) {
	t.Parallel()
	r := newTalkRig(t)
	ran := time.Now().Add(-time.Hour).Truncate(time.Second)
	err := errors.Join(os.WriteFile(r.Layout.SupervisorLock(), nil, 0o600), os.Chtimes(r.Layout.SupervisorLock(), ran, ran))
	if _, added := r.Ledger.Event(t.Context(), ledger.Event{What: team.EventTaskCreated, ID: "1"}); err != nil || added != nil {
		t.Fatal(err, added)
	}
	if at, err := r.LastSign(t.Context()); err != nil || !at.Equal(ran) {
		t.Errorf("the last sign was at %v, %v; want %v", at, err, ran)
	}
}
