package shim

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/backends/holder"
	"github.com/teamctl/teamctl/internal/openpty"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

// The mark ends the log wherever a read splits it, and never appears in it;
// text that only resembles its beginning does.
func TestCopyLog(t *testing.T) {
	t.Parallel()
	mark := string(endMark("g1"))
	for _, c := range []struct {
		name   string
		writes []string
		over   bool
		want   string
		ended  bool // before the pipe is closed
	}{
		{"plain", []string{"a\n", "b"}, true, "a\nb", false},
		{"the mark", []string{"a\n" + mark}, true, "a\n", true},
		{"in two", []string{"a\n" + mark[:3], mark[3:]}, true, "a\n", true},
		{"byte by byte", strings.Split("ab"+mark, ""), true, "ab", true},
		{"its beginning only", []string{"a" + mark[:7]}, true, "a" + mark[:7], false},
		{"its beginning, then text", []string{"a" + mark[:7], "b"}, true, "a" + mark[:7] + "b", false},
		{"of another generation", []string{"a" + string(endMark("g2")) + "b"}, true, "a" + string(endMark("g2")) + "b", false},
		{"while the agent lives", []string{"a" + mark + "b", "c"}, false, "a" + mark + "bc", false},
		{"begun twice", []string{mark[:5] + mark}, true, mark[:5], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			l, err := bundle.OpenLog(path)
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			ended := make(chan error, 1)
			fd := int(r.Fd()) // blocking from here on
			go func() { ended <- copyLog(fd, -1, l, []byte(mark), func() bool { return c.over }) }()
			for _, s := range c.writes {
				if _, err := w.WriteString(s); err != nil {
					t.Fatal(err)
				}
			}
			if c.ended {
				err = <-ended
				w.Close()
			} else {
				w.Close()
				err = <-ended
			}
			if err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != c.want {
				t.Errorf("%q, %v; want %q", b, err, c.want)
			}
		})
	}
}

// startLogger starts the log writer of a generation; in is its input.
func startLogger(t *testing.T, b team.Bundle, gen string) (c *exec.Cmd, in io.WriteCloser) {
	t.Helper()
	c = exec.Command(os.Args[0], "shim", bundle.StepLog, "--bundle", string(b), "--generation", gen)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = c.Wait() })
	return c, in
}

// The log writer records itself, and waiting for it ends when it exits.
func TestLoggerProcess(t *testing.T) {
	t.Parallel()
	b, gen := team.Bundle(t.TempDir()), team.NewUUID()
	_, in := startLogger(t, b, gen)
	if err := os.WriteFile(b.Log(), []byte("before\n"), 0o600); err != nil { // of an earlier generation
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if holder.AwaitLog(ctx, b, gen) || ctx.Err() == nil {
		t.Error("the wait ended while the logger lives")
	}
	if err := bundle.WriteProc(b, backends.Proc{Generation: gen, Agent: backends.ProcID{PID: 1, StartTicks: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(append([]byte("after\n"), endMark(gen)...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if !holder.AwaitLog(ctx, b, gen) {
		t.Error("the logger did not end at the mark")
	}
	if text, err := os.ReadFile(b.Log()); err != nil || string(text) != "before\nafter\n" {
		t.Errorf("%q, %v", text, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if holder.AwaitLog(ctx, b, team.NewUUID()) {
		t.Error("nobody's logger is gone")
	}
}

// A log writer that is told to finish writes what it was given before. It says that the log has ended only
// if the agent has.
func TestLoggerIsTold(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{false, true} {
		b, gen := team.Bundle(t.TempDir()), team.NewUUID()
		agent := backends.ProcID{PID: 1, StartTicks: 1}
		if lives {
			var err error
			if agent, err = proc.Self(); err != nil {
				t.Fatal(err)
			}
		}
		if err := bundle.WriteProc(b, backends.Proc{Generation: gen, Agent: agent}); err != nil {
			t.Fatal(err)
		}
		c, in := startLogger(t, b, gen)
		text := strings.Repeat("last words\n", 3000) + string(endMark(gen))[:9]
		if _, err := io.WriteString(in, text); err != nil {
			t.Fatal(err)
		}
		if !holder.FinishLog(t.Context(), b, gen) {
			t.Error("it did not finish")
		}
		if err := c.Wait(); (err != nil) != lives {
			t.Errorf("the agent lives: %v, the log writer: %v", lives, err)
		}
		if got, err := os.ReadFile(b.Log()); err != nil || string(got) != text {
			t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
		}
		if holder.LoggerKilled(b, gen) != lives {
			t.Errorf("the agent lives: %v, and the log is to go on: %v", lives, !lives)
		}
	}
}

func TestAgentGone(t *testing.T) {
	t.Parallel()
	b := team.Bundle(t.TempDir())
	if agentGone(b, "g") {
		t.Error("gone without proc.json")
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.WriteProc(b, backends.Proc{Generation: "g", Agent: self}); err != nil {
		t.Fatal(err)
	}
	if agentGone(b, "g") || agentGone(b, "other") {
		t.Error("a living agent is gone")
	}
}

// The end of the output is marked although the terminal takes nothing until the exit is recorded, as
// that of a tmux that did not run, or although a person has stopped the output.
func TestMarkOnTerminal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ agent, typed string }{
		"full":    {agent: "for bs in 512 1 1; do dd if=/dev/zero of=/dev/tty bs=$bs oflag=nonblock; sleep 0.1; done 2>/dev/null"},
		"stopped": {agent: "read go", typed: "go\n\x13"},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave, err := openpty.Open()
			if err != nil {
				t.Fatal(err)
			}
			l := launch(t, "sh", "-c", tt.agent)
			c := exec.Command(os.Args[0], "shim", "--bundle", string(l.Bundle), "--generation="+l.Generation)
			c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = master.Close()
				_ = c.Process.Kill()
				_ = c.Wait()
			})
			if err := slave.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := master.WriteString(tt.typed); err != nil {
				t.Fatal(err)
			}
			for range time.Tick(10 * time.Millisecond) {
				if _, err := bundle.ReadExit(l.Bundle, l.Generation); err == nil {
					break
				}
			}
			if err := master.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			var got []byte
			for buf := make([]byte, 4096); !bytes.HasSuffix(got, []byte(askRead)); {
				n, err := master.Read(buf)
				if got = append(got, buf[:n]...); err != nil {
					break
				}
			}
			if want := append(endMark(l.Generation), askRead...); !bytes.HasSuffix(got, want) {
				t.Errorf("%d bytes that end in %q", len(got), got[max(0, len(got)-80):])
			}
			if _, err := master.WriteString(allRead); err != nil {
				t.Fatal(err)
			}
		})
	}
}
