package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestChatOutputCloses checks that a chat ends when the reader of its output has gone, and that it
// ends nothing else: the turn of a member continues, and the lead's is left to the next chat
// without a trace of a crash, with its command ended.
func TestChatOutputCloses(t *testing.T) {
	for name, chat := range map[string][]string{"dev": {"chat", "dev"}, "team-lead": {"chat"}} {
		t.Run(name, func(t *testing.T) {
			r := newFaultRig(t)
			rules, at := filepath.Join(r.dir, "rules.yaml"), filepath.Join(r.dir, "pid")
			if err := os.WriteFile(rules, []byte("team: f\npermissions:\n  allow:\n    - {tool: shell}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			r.teamctl("approvals", "rules", "-f", rules)
			r.teamctl("spawn", "dev", "--agent", "llm", "--backend", "in-process")
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, r.exe, chat...)
			cmd.Dir, cmd.Env = r.dir, r.env
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			reads, writes, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = writes
			if err := errors.Join(cmd.Start(), writes.Close()); err != nil {
				t.Fatal(err)
			}
			write := func(line string) {
				t.Helper()
				if _, err := io.WriteString(stdin, line+"\n"); err != nil {
					t.Error(err)
				}
			}
			write("@@shell echo $$ >" + at + ".tmp && mv " + at + ".tmp " + at + " && exec sleep 100000")
			pid := 0
			r.until("the command", func() bool {
				b, err := os.ReadFile(at)
				if err == nil {
					pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
				}
				return err == nil
			})
			if err := reads.Close(); err != nil {
				t.Fatal(err)
			}
			write("/help")
			_ = cmd.Wait() // ExitCode reports the result
			if status := cmd.ProcessState.ExitCode(); status != 128+int(syscall.SIGPIPE) {
				t.Errorf("the chat ended with %d", status)
			}
			trace := r.teamctl("session", "show", name, "--trace")
			if strings.Contains(trace, "turn.recovered") {
				t.Errorf("the turn crashed:\n%s", trace)
			}
			if name == "dev" {
				if err := syscall.Kill(pid, 0); err != nil || !strings.Contains(trace, "running") {
					t.Errorf("its command: %v; its turn:\n%s", err, trace)
				}
				r.teamctl("interrupt", "dev")
			} else if !strings.Contains(trace, "its process stopped") {
				t.Errorf("the turn does not wait for the next chat:\n%s", trace)
			}
			r.until("the end of the command", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		})
	}
}
