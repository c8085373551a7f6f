package tool

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
