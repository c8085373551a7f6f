package pty

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/team"
)

const relayBytes = 64 << 20

func relayFile(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "big")
	p := bytes.Repeat([]byte(strings.Repeat("relayed ", 10)+"\n"), relayBytes/81)
	if err := os.WriteFile(path, p, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkRelayFloor is a plain loop that reads a terminal and forgets.
func BenchmarkRelayFloor(b *testing.B) {
	path := relayFile(b)
	b.SetBytes(relayBytes)
	for b.Loop() {
		f, err := pty.Start(exec.Command("cat", path))
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 32<<10)
		for {
			if _, err := f.Read(buf); err != nil {
				break
			}
		}
		_ = f.Close()
	}
}

// BenchmarkRelay is the same through a shim: log, model and start included.
func BenchmarkRelay(b *testing.B) {
	path := relayFile(b)
	dir, err := os.MkdirTemp("/tmp", "tp")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b.Setenv(team.EnvRuntime, filepath.Join(dir, "r"))
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	l := team.Home{Dir: filepath.Join(dir, "h")}.Team("demo")
	be := New(Options{Layout: l, ShimArgv: []string{exe, "shim"}})
	defer func() { _ = be.Close() }()
	b.SetBytes(relayBytes)
	for b.Loop() {
		h, err := be.Start(b.Context(), backends.Launch{
			Team: "demo", Agent: "a", Generation: team.NewUUID(), Bundle: l.Bundle("a"),
			Argv: []string{"cat", path}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir,
		})
		if err != nil {
			b.Fatal(err)
		}
		<-h.Exited()
		if !h.Exit().Success() {
			b.Fatalf("%+v", h.Exit())
		}
	}
}

// TestFirstScreen: a person sees the screen at once, whatever the history.
func TestFirstScreen(t *testing.T) {
	r := newRig(t)
	a := start(t, r, launch(t, r, "a", "flood", "3000"))
	captured(t, a, "00002999")
	fast := time.Hour
	for range 5 {
		begun := time.Now()
		c, f := rawClient(t, a.Pane().Socket, roleView)
		if k, p, err := f.next(); err != nil || k != kindOutput || !bytes.Contains(p, []byte("00002999")) {
			t.Fatalf("%c, %v", k, err)
		}
		fast = min(fast, time.Since(begun))
		_ = c.Close()
	}
	if fast > 50*time.Millisecond {
		t.Errorf("the first screen came after %s", fast)
	}
}
