package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

const (
	maxText = 16 << 10        // bytes kept of what a hook writes
	grace   = 2 * time.Second // between SIGTERM and SIGKILL
)

// answer is what a hook said.
type answer struct {
	block, stop bool
	text        string
}

// failure is a hook that gave no answer.
type failure struct{ why string }

func (f *failure) Error() string { return f.why }

// runHook runs one hook to its end and ends everything that it has started: what stays
// behind would outlive its time limit. A *failure is the hook's, any other error ours.
func runHook(ctx context.Context, book run.Book, r Hook, in Input, stdin []byte, environ []string) (answer, error) {
	limit := r.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	if environ == nil {
		environ = os.Environ()
	}
	stdout, stderr := &head{max: maxText}, &head{max: maxText}
	scope, err := book.Open(run.Hook, in.Cwd)
	if err != nil {
		return answer{}, err
	}
	end, err := scope.Run(ctx, run.Cmd{
		Command: r.Command, Dir: in.Cwd, Env: append(environ[:len(environ):len(environ)], team.EnvTeam+"="+in.Team),
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Limit: limit, Grace: grace,
	})
	err = errors.Join(err, scope.Close())
	switch {
	case end.Cut:
		return answer{}, errors.Join(ctx.Err(), err)
	case end.Late:
		return answer{}, &failure{fmt.Sprintf("it took longer than %s", limit)}
	case err != nil:
		return answer{}, &failure{err.Error()}
	}
	return judge(end, stdout.text(), stderr.text())
}

// judge reads the answer of a hook that has ended.
func judge(end run.Ended, stdout, stderr string) (answer, error) {
	switch {
	case end.Err != nil:
		return answer{}, &failure{"it could not be run: " + end.Err.Error()}
	case end.OK():
		return judgeOutput(stdout)
	case end.Code == 2:
		text := stderr
		if text == "" {
			text = stdout
		}
		if text == "" {
			text = "no reason was given"
		}
		return answer{block: true, text: text}, nil
	case end.Signal != "":
		return answer{}, &failure{"it was ended by a signal" + after(stderr)}
	}
	return answer{}, &failure{fmt.Sprintf("exit status %d", end.Code) + after(stderr)}
}

// judgeOutput reads the JSON that a hook may write; other text means nothing.
func judgeOutput(stdout string) (answer, error) {
	if !strings.HasPrefix(stdout, "{") {
		return answer{}, nil
	}
	var said struct {
		Continue   *bool  `json:"continue"`
		StopReason string `json:"stopReason"`
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil {
		return answer{}, &failure{"its output is not valid JSON: " + err.Error()}
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
