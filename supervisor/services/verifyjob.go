package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/cgroup"
	"github.com/teamctl/teamctl/internal/plain"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/regular"
	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/supervisor/loop"
	"github.com/teamctl/teamctl/team"
)

const (
	// SettingVerifyTimeout is the setting with the default duration of a team's verifications.
	SettingVerifyTimeout = "verify-timeout"
	// VerifyTimeout applies if the team has set none; MaxVerify is the maximum.
	VerifyTimeout = 10 * time.Minute
	MaxVerify     = time.Hour

	verifyGrace   = 5 * time.Second // between SIGTERM and SIGKILL
	verifyLogMax  = 1 << 20         // bytes kept of one verification, and of the earlier ones
	verifyTailMax = 4096            // bytes included in the message to the owner
	verifyLines   = 40
)

// verifyJob has everything needed to run a verification.
type verifyJob struct {
	v          ledger.Verification
	generation string
	dir        string
	gone       string // why it cannot run; empty: it can
	env        []string
	limit      time.Duration
	log        string // path; empty: none
	group      *cgroup.Group
}

// verifyEnding is a VerifyEnd, or reports that the supervisor cut the command short.
type verifyEnding struct {
	ledger.VerifyEnd
	cut bool
}

// verifyJob finds the directory of a task's work, and the environment of its command.
func (s *Verifications) verifyJob(ctx context.Context, v ledger.Verification) (*verifyJob, error) {
	j := &verifyJob{v: v, generation: team.NewUUID()}
	row, err := s.team.Ledger.Team(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.team.Ledger.MemberBySession(ctx, v.Session)
	switch {
	case err == nil:
		b := s.team.Layout.Bundle(m.Name)
		if err := os.MkdirAll(string(b), 0o700); err == nil { // otherwise it has no log
			j.log = b.VerifyLog()
		}
	case team.IsCode(err, team.CodeNotFound): // it has worked without being on the roster
		m = ledger.Member{SessionKey: v.Session, Name: v.Name, Spec: team.MemberSpec{WorktreeMode: "none"}}
	default:
		return nil, err
	}
	if j.dir, err = s.place.VerifyDir(ctx, row, m); err != nil {
		return nil, err
	}
	if j.gone = missing(j.dir); j.gone != "" {
		return j, nil
	}
	if j.env, err = s.place.VerifyEnv(ctx, row, m, j.dir); err != nil {
		return nil, err
	}
	j.env = append(j.env, team.EnvTaskID+"="+v.Task)
	if j.limit, err = s.verifyLimit(ctx, v.Task); err != nil {
		return nil, err
	}
	g, err := cgroup.Create(cgroup.Name(s.team.Layout.Key, m.Name+"-verify", j.generation))
	if err != nil { // it runs anyway, as an agent does
		return j, nil // see above
	}
	j.group = g
	if _, err := g.SetLimits(m.Spec.Limits); err != nil && !errors.Is(err, cgroup.ErrUnsupported) {
		s.team.Log.Warn("limit a verification", "member", m.Name, "err", err)
	}
	return j, nil
}

// missing returns why a command cannot run in a directory; empty if it can.
func missing(dir string) string {
	if dir == "" {
		return "there is no directory to run it in"
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return dir + " is gone"
	}
	return ""
}

// verifyLimit returns the time limit of a task's command: the task's own (metadata.timeout), else
// the team's.
func (s *Verifications) verifyLimit(ctx context.Context, id string) (time.Duration, error) {
	task, err := s.team.Ledger.Task(ctx, id)
	if err != nil && !team.IsCode(err, team.CodeNotFound) {
		return 0, err
	}
	var said struct {
		Timeout json.RawMessage `json:"timeout"`
	}
	_ = json.Unmarshal(task.Metadata, &said) // an object, or nothing
	var text string
	if json.Unmarshal(said.Timeout, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			return min(d, MaxVerify), nil
		}
	}
	text = ""
	if _, err := s.team.Ledger.Setting(ctx, SettingVerifyTimeout, &text); err != nil {
		return 0, err
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return min(d, MaxVerify), nil
	}
	return VerifyTimeout, nil
}

func (j *verifyJob) place() string {
	if j.group == nil {
		return ""
	}
	return j.group.Path()
}

func (j *verifyJob) close() {
	if j.group != nil {
		_ = j.group.Remove() // a group with living processes stays, and identifies them
	}
}

// run runs the command. An error means that processes may be left.
func (j *verifyJob) run(ctx context.Context, log *slog.Logger) (verifyEnding, error) {
	e := verifyEnding{VerifyEnd: ledger.VerifyEnd{ID: j.v.ID, Generation: j.generation, ExitCode: -1}}
	if j.gone != "" {
		e.Gone, e.Why = true, j.gone
		return e, nil
	}
	out := openVerifyLog(j.log, log)
	out.line("── task %s, attempt %d, %s: verify $ %s", j.v.Task, j.v.Attempt, time.Now().UTC().Format(time.RFC3339), j.v.Command)
	cmd := run.Cmd{
		Command: j.v.Command, Dir: j.dir, Env: j.env, Generation: j.generation,
		Stdout: out, Stderr: out, Limit: j.limit, Grace: verifyGrace,
	}
	if j.group != nil {
		cmd.Group = j.group
	}
	began := time.Now()
	end, err := run.Run(ctx, cmd)
	e.cut, e.Passed, e.ExitCode = end.Cut, end.OK(), end.Code
	e.Why = end.Why(j.limit)
	if !e.cut && !e.Passed {
		if why := missing(j.dir); why != "" {
			e.Gone, e.Why = true, why
		}
	}
	out.line("── %s, %s", e.Why, time.Since(began).Round(time.Millisecond))
	e.Log = out.path
	e.Tail = bundle.LastLines(plain.Text(out.close()), verifyLines)
	return e, err
}

// verifyLeft ends the processes of a verification that an earlier supervisor has left.
func (s *Verifications) verifyLeft(ctx context.Context, v ledger.Verification) error {
	var group proc.Group
	g, err := cgroup.Open(v.Place)
	if v.Place != "" && err == nil {
		group = g
	}
	if err := run.End(group, v.Generation, verifyGrace); err != nil {
		return fmt.Errorf("end the remaining processes of verification %d: %w", v.ID, err)
	}
	if group != nil {
		_ = g.Remove()
	}
	write, done := loop.Writing(ctx)
	defer done()
	return s.team.Ledger.AbandonVerification(write, v.ID, v.Generation)
}

// verifyLog receives the output of a verification: the beginning goes into a file up to a bound,
// the end into memory.
type verifyLog struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	f    *os.File // nil: none
	left int
	tail []byte
}

func openVerifyLog(path string, log *slog.Logger) *verifyLog {
	o := &verifyLog{path: path, log: log, left: verifyLogMax}
	if path == "" {
		return o
	}
	if info, err := os.Stat(path); err == nil && info.Size() > verifyLogMax {
		_ = os.Rename(path, path+".1") // otherwise the log grows
	}
	var err error
	if o.f, err = regular.OpenFile(filepath.Clean(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600); err != nil {
		log.Warn("open the log of verifications", "err", err)
		o.path = ""
	}
	return o
}

// line writes a line that is not part of the output.
func (o *verifyLog) line(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.f != nil {
		_, _ = fmt.Fprintf(o.f, format+"\n", args...)
	}
}

// Write implements io.Writer and never fails: a full disk fails no verification.
func (o *verifyLog) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.f != nil && o.left > 0 {
		n := min(len(p), o.left)
		_, _ = o.f.Write(p[:n])
		if o.left -= n; o.left == 0 {
			_, _ = o.f.WriteString("\n── the rest of the output is left out\n")
		}
	}
	o.tail = append(o.tail, p[max(0, len(p)-verifyTailMax):]...)
	if n := len(o.tail); n > verifyTailMax {
		o.tail = append(o.tail[:0], o.tail[n-verifyTailMax:]...)
	}
	return len(p), nil
}

// close closes the log and returns the end of the output.
func (o *verifyLog) close() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.f != nil {
		if err := o.f.Close(); err != nil {
			o.log.Warn("close the log of verifications", "err", err)
		}
		o.f = nil
	}
	return string(o.tail)
}
