package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/teamctl/teamctl/internal/openpty"
)

// TestEndsFromScreen checks that what ends members and the team does so from a screen as the command that it names.
func TestEndsFromScreen(t *testing.T) {
	r := newFaultRig(t)
	for _, name := range []string{"ann", "bob", "cleo", "dora"} {
		r.agent(name, "never", "sleep", "3600")
	}
	says := func(words ...string) string {
		t.Helper()
		master, tty, err := openpty.Open()
		if err != nil {
			t.Skipf("no pty: %v", err)
		}
		c := exec.CommandContext(t.Context(), r.exe, "ui", "--plain", "--team", r.layout.Key)
		c.Env, c.Dir = append(slices.Clone(r.env), "TERM=xterm"), r.dir
		c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_ = tty.Close()
		var out []byte
		for buf := make([]byte, 4096); !bytes.Contains(out, []byte("help lists the words")); {
			n, err := master.Read(buf)
			if out = append(out, buf[:n]...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if _, err := master.WriteString(strings.Join(append(words, "quit"), "\n") + "\n"); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(master) // an error once the program has ended
		_ = master.Close()
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, append(out, rest...))
		}
		return string(rest)
	}
	roster := func(want ...string) {
		t.Helper()
		var out struct{ Members []struct{ Name string } }
		if err := json.Unmarshal([]byte(r.teamctl("ps", "--json")), &out); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range out.Members {
			names = append(names, m.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("the roster is %v; want %v", names, want)
		}
	}
	before := "team-lead"
	says("stop dora")
	roster(before, "ann", "bob", "cleo", "dora")
	says("kill ann", "bob") // not its name
	roster(before, "ann", "bob", "cleo", "dora")
	says("kill ann", "ann")
	roster(before, "bob", "cleo", "dora")
	says("shutdown bob")
	roster(before, "cleo", "dora")
	if out := says("delete-team", r.layout.Key); !strings.Contains(out, "cleo") {
		t.Errorf("delete while a member runs: %s", out)
	}
	roster(before, "cleo", "dora")
	says("shutdown-team", r.layout.Key)
	roster(before)
	says("delete-team", r.layout.Key)
	if _, err := os.Stat(r.layout.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the team's directory: %v", err)
	}
}
