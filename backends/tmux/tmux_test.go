package tmux

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if status, handled := backendtest.Main(); handled {
		os.Exit(status)
	}
	flag.Parse()
	os.Unsetenv("TMUX")
	os.Unsetenv("TMUX_PANE")
	done := strays.Place(team.EnvRuntime)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(done(code)) }))
}

// newRig makes a team whose private server ends with the test.
func newRig(t *testing.T) *backendtest.Rig {
	t.Helper()
	l, n := backendtest.Place(t)
	open := func(t *testing.T) backends.Backend { return openBackend(t, l, n) }
	t.Cleanup(func() {
		b := New(Options{Layout: l})
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := b.CloseTeam(ctx); err != nil {
			t.Errorf("close team: %v", err)
		}
		_ = b.Close()
	})
	return &backendtest.Rig{Layout: l, Open: open, Notify: n.Path()}
}

func openBackend(t *testing.T, l team.Layout, n *bundle.Notifier) *Backend {
	t.Helper()
	exe, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	b := New(Options{Layout: l, ShimArgv: []string{exe, "shim"}, Notifier: n})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func TestExercise(t *testing.T) {
	backendtest.Exercise(t, backendtest.Capabilities{Process: true, Terminal: true, Few: testing.Short()}, newRig)
}
