package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/internal/fakecli"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/internal/view/viewtest"
)

func TestMain(m *testing.M) {
	if status, ok := fakecli.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// TestPlay plays the team, and checks that the screens read of it what docs/screens shows.
func TestPlay(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	dir := t.TempDir()
	exe, err := strays.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	self, err := strays.Self()
	if err != nil {
		t.Fatal(err)
	}
	day, err := play(t.Context(), exe, self, dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := encode(day)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("..", "..", viewtest.File))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is stale, scripts/screens writes it (-want +got):\n%s", viewtest.File, d)
	}
}
