package agentlab

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHome checks that a home has the files of its programs, that its commands get no variable from outside,
// and that its removal ends what still runs in it and leaves nothing.
func TestHome(t *testing.T) {
	dir := t.TempDir()
	all, err := StandIns("/bin/echo", filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("A_SECRET_OF_OURS", "x")
	h, err := NewHome(t.Context(), dir, filepath.Join(dir, "cache"), "http://127.0.0.1:9", all[:2])
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range h.Files {
		if got, err := os.ReadFile(filepath.Join(h.User, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	out, err := h.Run(t.Context(), "sh", "-c", `claude from "$HOME" "$A_SECRET_OF_OURS" && git rev-parse --abbrev-ref HEAD`)
	if err != nil || out != "from "+h.User+" \nmain\n" {
		t.Errorf("said %q, %v", out, err)
	}
	left := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
	left.Env = h.Env
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(h.Reap(), h.Remove()); err != nil {
		t.Error(err)
	}
	if err := left.Wait(); err == nil {
		t.Error("what was left running is not ended")
	}
	for _, d := range []string{h.Dir, h.Sockets} {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", d, err)
		}
	}
}

// A program that is not installed is said to be missing, and nothing is left behind.
func TestHomeMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := NewHome(t.Context(), dir, filepath.Join(dir, "none"), "", Clients()[:1]); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "claude is not installed") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
