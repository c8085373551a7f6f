package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/proc"
	"github.com/teamctl/teamctl/internal/childattr"
	"github.com/teamctl/teamctl/team"
)

const (
	maxText = 16 << 10        // bytes kept of what a rule writes
	grace   = 2 * time.Second // between SIGTERM and SIGKILL
)

// answer is what a rule said.
type answer struct {
	block, stop bool
	text        string
}

// failure is a rule that gave no answer.
type failure struct{ why string }

func (f *failure) Error() string { return f.why }

// run runs one rule to its end and ends everything that it has started: what stays
// behind would outlive its time limit. A *failure is the rule's, any other error ours.
func run(ctx context.Context, r Rule, in Input, stdin []byte, environ []string) (answer, error) {
	limit := r.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if environ == nil {
		environ = os.Environ()
	}
	// The processes of the rule are known by this, whatever they do to hide.
	generation := team.NewUUID()
	cmd := exec.Command("bash", "-c", r.Command)
	cmd.Dir = in.Cwd
	cmd.Env = append(environ[:len(environ):len(environ)], team.EnvTeam+"="+in.Team, team.EnvGen+"="+generation, team.EnvDetached+"=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	childattr.DieWithUs(cmd.SysProcAttr)
	stdout, stderr := &head{max: maxText}, &head{max: maxText}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), stdout, stderr
	cmd.WaitDelay = grace

	ended := make(chan error, 1)
	started := make(chan error, 1)
	go func() {
		// The signal of DieWithUs comes when this thread ends, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return answer{}, &failure{"it could not be started: " + err.Error()}
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	reap := func() error { return <-ended }
	var (
		err  error
		late bool
	)
	// Only its own exit is waited for: what it leaves in the background may hold
	// its output open, and is ended below.
	select {
	case err = <-ended:
		err = errors.Join(err, endAll(cmd.Process.Pid, generation, 0))
	case <-timer.C:
		late = true
		err = endAll(cmd.Process.Pid, generation, grace)
		_ = reap() // it was ended by us
	case <-ctx.Done():
		err = endAll(cmd.Process.Pid, generation, grace)
		_ = reap() // it was ended by us
		return answer{}, errors.Join(ctx.Err(), err)
	}
	if late {
		return answer{}, &failure{fmt.Sprintf("it took longer than %s", limit)}
	}
	return judge(err, stdout.text(), stderr.text())
}

// endAll ends the tree of a rule. The root may be gone already, and its pid is not
// used again before it has been waited for.
func endAll(pid int, generation string, grace time.Duration) error {
	var roots []backends.ProcID
	if id, err := proc.Identify(pid); err == nil {
		roots = append(roots, id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := proc.KillTree(ctx, roots, generation, grace)
	return err
}

// judge reads the answer of a rule that has ended.
func judge(err error, stdout, stderr string) (answer, error) {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return judgeOutput(stdout)
	case !errors.As(err, &exit):
		return answer{}, &failure{err.Error()}
	case exit.ExitCode() == 2:
		text := stderr
		if text == "" {
			text = stdout
		}
		if text == "" {
			text = "no reason was given"
		}
		return answer{block: true, text: text}, nil
	case exit.ExitCode() < 0:
		return answer{}, &failure{"it was ended by a signal" + after(stderr)}
	}
	return answer{}, &failure{fmt.Sprintf("exit status %d", exit.ExitCode()) + after(stderr)}
}

// judgeOutput reads the JSON that a rule may write; other text means nothing.
func judgeOutput(stdout string) (answer, error) {
	if !strings.HasPrefix(stdout, "{") {
		return answer{}, nil
	}
	var said struct {
		Continue   *bool  `json:"continue"`
		StopReason string `json:"stopReason"`
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		return answer{}, &failure{"what it wrote is no JSON: " + err.Error()}
	}
	if said.Continue == nil || *said.Continue {
		return answer{}, nil
	}
	if said.StopReason == "" {
		said.StopReason = "no reason was given"
	}
	return answer{stop: true, text: said.StopReason}, nil
}

func after(stderr string) string {
	if stderr == "" {
		return ""
	}
	return ": " + stderr
}

// head keeps the beginning of what is written to it and takes the rest.
type head struct {
	buf bytes.Buffer
	max int
}

var _ io.Writer = (*head)(nil)

func (h *head) Write(p []byte) (int, error) {
	if left := h.max - h.buf.Len(); left > 0 {
		h.buf.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

func (h *head) text() string { return strings.TrimSpace(strings.ToValidUTF8(h.buf.String(), "?")) }
