package pty

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/backendtest"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/shim"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "shim":
			os.Exit(shim.Main(os.Args[2:], Host()))
		case "plainshim":
			os.Exit(shim.Main(os.Args[2:]))
		case "agent":
			os.Exit(agent(os.Args[2:]))
		}
	}
	if status, handled := backendtest.Main(); handled {
		os.Exit(status)
	}
	flag.Parse()
	done := strays.Place(team.EnvRuntime)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(done(code)) }))
}

func newRig(t *testing.T) *backendtest.Rig {
	t.Helper()
	l, n := backendtest.Place(t)
	return &backendtest.Rig{
		Layout: l, Notify: n.Path(),
		Open: func(t *testing.T) backends.Backend { return openBackend(t, l, n) },
	}
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
