package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestUpAsksAtATerminal checks that up on a terminal shows the commands of a file in a repository
// in full, runs them only after a yes, and does not ask again after that.
func TestUpAsksAtATerminal(t *testing.T) {
	r := newFaultRig(t)
	file := "team: asked\nrepo: .\ntasks:\n  - {id: one, subject: one, run: \"true \\e[8m\\u200b; rm -rf x\"}\n"
	if err := os.WriteFile(r.dir+"/repo/teamctl.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	up := func(answer string) (string, int) {
		t.Helper()
		c := exec.Command(r.exe, "up", "-f", r.dir+"/repo/teamctl.yaml")
		c.Dir, c.Env = r.dir, r.env
		tty := startOnTerminal(t, c, 80, 24)
		defer func() { _ = tty.Close() }()
		if _, err := io.WriteString(tty, answer); err != nil { // waits in the terminal
			t.Fatal(err)
		}
		var out bytes.Buffer
		_, _ = io.Copy(&out, tty) // EIO at the end
		return out.String(), exitCode(c.Wait())
	}
	for _, answer := range []string{"n\n", "\n"} {
		out, code := up(answer)
		if code != 5 || !strings.Contains(out, `task one run: true \x1b[8m\u200b; rm -rf x`) || !strings.Contains(out, "Run them? [y/N]") {
			t.Errorf("answered %q: %d\n%s", answer, code, out)
		}
	}
	if out := r.teamctl("ls", "-o", "name"); strings.Contains(out, "asked") {
		t.Errorf("up created the team without consent:\n%s", out)
	}
	if out, code := up("y\n"); code != 0 || !strings.Contains(out, "team asked is up") {
		t.Errorf("answered yes: %d\n%s", code, out)
	}
	r.teamctl("delete", "--force", "--team", "asked")
	if out, code := up(""); code != 0 || strings.Contains(out, "[y/N]") {
		t.Errorf("asked again: %d\n%s", code, out)
	}
	r.teamctl("delete", "--force", "--team", "asked")
}
