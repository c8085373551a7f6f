package worktree

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestOutputOfWhatExited checks that a command's output is complete although a process that it has left
// keeps the pipes open, and that nobody waits for that process.
func TestOutputOfWhatExited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		status       int
	}{
		{"success", `sleep 1000 & echo $!; i=0; while [ $i -lt 1500 ]; do echo 12345678901234567890; i=$((i+1)); done; echo end >&2`, 0},
		{"failure", `sleep 1000 & echo $!; echo end >&2; exit 3`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			messages := capped{max: 2}
			cmd := exec.Command("sh", "-c", c.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.WaitDelay = stopGrace
			err := runTo(cmd, &out, &messages)
			if cmd.Process == nil {
				t.Fatal(err)
			}
			if kill := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); kill != nil {
				t.Errorf("the command has left nothing: %v", kill)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.status || (err == nil) != (c.status == 0) {
				t.Errorf("exit %d: %v", got, err)
			}
			if n := strings.Count(out.String(), "12345678901234567890\n"); c.status == 0 && n != 1500 {
				t.Errorf("%d lines", n)
			}
			if messages.String() != "en" {
				t.Errorf("messages %q", messages.String())
			}
		})
	}
}
