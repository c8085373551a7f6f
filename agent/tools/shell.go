package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/teamctl/teamctl/internal/run"
)

// Times of a command.
const (
	shellTimeout = 2 * time.Minute
	shellLongest = time.Hour
	shellGrace   = 2 * time.Second // between SIGTERM and SIGKILL
)

// maxBackground is the maximum number of background commands that run, keptBackground of those
// that have ended and can still be looked at.
const (
	maxBackground  = 8
	keptBackground = 20
)

// ShellConfig configures commands.
type ShellConfig struct {
	Env      []string // the whole environment, without keys of providers and the member's token
	Commands run.Book // where commands are recorded while they run
	// Task returns the variables of the current task; nil: none.
	Task func(ctx context.Context) ([]string, error)
	// Enter is called on the thread that starts a command, to confine it; may be nil.
	Enter func() error
}

type shellIn struct {
	Command    string `json:"command" jsonschema:"command line for bash, run in the worktree"`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"seconds, default 120, at most 3600"`
	Background bool   `json:"background,omitempty" jsonschema:"return at once; the command lives until it ends, is killed, or the agent ends"`
}

type shellIDIn struct {
	ID string `json:"id" jsonschema:"id of a command in the background"`
}

func (s *Space) shellTool() Tool {
	return Typed("shell", "Run a command line with bash in the worktree, without a terminal. Everything that it starts ends with it.", Shell, false,
		func(in shellIn) Subject { return Subject{Command: in.Command} },
		func(ctx context.Context, c Call, in shellIn) (Out, error) {
			if strings.TrimSpace(in.Command) == "" {
				return failed("command is empty"), nil
			}
			limit := shellTimeout
			if in.Timeout > 0 {
				limit = min(time.Duration(in.Timeout)*time.Second, shellLongest)
			}
			if in.Background {
				return s.back.start(s, in.Command)
			}
			out := newTail(c.Progress, s.cfg.Outputs)
			end, err := s.execute(ctx, in.Command, limit, out)
			if err == nil && end.Cut {
				err = context.Cause(ctx)
			}
			if err != nil {
				_ = out.drop()
				return Out{}, err
			}
			text, file, err := out.end()
			if err != nil {
				return Out{}, err
			}
			return ended(text, file, end, limit), nil
		})
}

// execute runs a command and returns when no process of it is left.
func (s *Space) execute(ctx context.Context, command string, limit time.Duration, out *tail) (run.Ended, error) {
	scope, err := s.cfg.Shell.Commands.Open(run.Tool, s.dir)
	if err != nil {
		return run.Ended{}, err
	}
	env, err := s.environ(ctx)
	if err != nil {
		return run.Ended{}, errors.Join(err, scope.Close())
	}
	safe := s.cfg.Secrets.Writer(out)
	end, err := scope.Run(ctx, run.Cmd{Command: command, Dir: s.dir, Env: env, Stdout: safe, Stderr: safe, Limit: limit, Grace: shellGrace, Enter: s.cfg.Shell.Enter})
	return end, errors.Join(err, safe.Close(), scope.Close())
}

// environ returns the environment of a new command.
func (s *Space) environ(ctx context.Context) ([]string, error) {
	if s.cfg.Shell.Task == nil {
		return s.cfg.Shell.Env, nil
	}
	task, err := s.cfg.Shell.Task(ctx)
	return slices.Concat(s.cfg.Shell.Env, task), err
}

// ended returns the result of a command.
func ended(text, file string, end run.Ended, limit time.Duration) Out {
	text = strings.TrimRight(text, "\n")
	if text != "" {
		text += "\n"
	}
	return Out{Text: text + "[" + end.Why(limit) + "]", Failed: !end.OK(), Note: end.Why(limit), File: file}
}

// background has the commands of a session that run beside its turns.
type background struct {
	mu     sync.Mutex
	list   []*job
	n      int
	closed bool
	wait   sync.WaitGroup
}

// job is one background command.
type job struct {
	id      string
	command string
	began   time.Time
	out     *tail
	cancel  context.CancelFunc
	done    chan struct{}
	end     run.Ended // after done
	err     error
	shown   atomic.Bool // its end and the last of its output were shown
}

func (b *background) start(s *Space, command string) (Out, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return Out{}, errors.New("the session ends")
	}
	if running := slices.DeleteFunc(slices.Clone(b.list), (*job).ended); len(running) >= maxBackground {
		return failed("%d commands run in the background already: end one with shell_kill", len(running)), nil
	}
	b.forget()
	b.n++
	ctx, cancel := context.WithCancel(context.Background())
	// No file: shell_output names none, and the file would stay open as long as the session.
	j := &job{id: fmt.Sprint("b", b.n), command: command, began: time.Now(), out: newTail(nil, ""), cancel: cancel, done: make(chan struct{})}
	b.list = append(b.list, j)
	b.wait.Go(func() {
		defer close(j.done)
		defer cancel()
		j.end, j.err = s.execute(ctx, command, 0, j.out)
	})
	return Out{Text: fmt.Sprintf("Started %s in the background: shell_output shows what it writes, shell_kill ends it.", j.id), Note: j.id}, nil
}

// forget drops commands that have ended until keptBackground of them are left: those whose end was
// shown first, and the oldest first.
func (b *background) forget() {
	over := -keptBackground
	for _, j := range b.list {
		if j.ended() {
			over++
		}
	}
	for _, drop := range []func(*job) bool{func(j *job) bool { return j.shown.Load() }, (*job).ended} {
		b.list = slices.DeleteFunc(b.list, func(j *job) bool {
			if over <= 0 || !drop(j) {
				return false
			}
			over--
			return true
		})
	}
}

// showEnd returns the last output of a command that has ended. Nothing of it is kept then.
func (j *job) showEnd() string {
	text := j.out.news()
	j.out.clear()
	j.shown.Store(true)
	return text
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

func (b *background) find(id string) (*job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for _, j := range b.list {
		if j.id == id {
			return j, nil
		}
		ids = append(ids, j.id)
	}
	if len(ids) == 0 {
		return nil, wrongf("no command was started in the background")
	}
	return nil, wrongf("no command %q in the background: there is %s", id, strings.Join(ids, ", "))
}

// close ends every command.
func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	for _, j := range b.list {
		j.cancel()
	}
	b.mu.Unlock()
	b.wait.Wait()
}

// Background lists the background commands, one line each.
func (s *Space) Background() []string {
	s.back.mu.Lock()
	defer s.back.mu.Unlock()
	var out []string
	for _, j := range s.back.list {
		if !j.ended() {
			out = append(out, j.id+": "+cutLine(strings.ReplaceAll(j.command, "\n", " ")))
		}
	}
	return out
}

func (s *Space) shellOutputTool() Tool {
	return Typed("shell_output", "Show what a command in the background has written since the last look, and whether it still runs.", Own, true, nil,
		func(_ context.Context, _ Call, in shellIDIn) (Out, error) {
			j, err := s.back.find(in.ID)
			if err != nil {
				return Out{}, err
			}
			if !j.ended() { // asked before its output is read, so that the last output is complete
				return Out{Text: fmt.Sprintf("%s\n[%s runs since %s]", j.out.news(), j.id, time.Since(j.began).Round(time.Second)), Note: j.id + " runs"}, nil
			}
			text := j.showEnd()
			if j.err != nil {
				return Out{}, j.err
			}
			return ended(text, "", j.end, 0), nil
		})
}

func (s *Space) shellKillTool() Tool {
	return Typed("shell_kill", "End a command in the background with everything that it has started.", Own, false, nil,
		func(ctx context.Context, _ Call, in shellIDIn) (Out, error) {
			j, err := s.back.find(in.ID)
			if err != nil {
				return Out{}, err
			}
			j.cancel()
			select {
			case <-j.done:
			case <-ctx.Done():
				return Out{}, context.Cause(ctx)
			}
			return Out{Text: strings.TrimLeft(j.showEnd()+"\n["+j.id+" has ended]", "\n"), Note: j.id}, nil
		})
}

// Sizes of the parts of a long output that are shown.
const (
	headBytes = 15 << 10
	tailBytes = 35 << 10
	fileBytes = 16 << 20 // maximum of a stored output
)

// tail keeps the beginning and the end of an output, and all of it in a file once it is too long
// to be shown.
type tail struct {
	progress func(string)
	dir      string

	mu    sync.Mutex
	head  []byte
	last  []byte // output after head, with its beginning cut
	total int64
	told  int64 // part of total that was reported
	file  *os.File
	kept  int64 // bytes in the file
	err   error
}

func newTail(progress func(string), dir string) *tail { return &tail{progress: progress, dir: dir} }

// Write implements io.Writer. It never fails: a full disk must not stop a command.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.total += int64(len(b))
	t.keep(b)
	rest := b
	if n := min(headBytes-len(t.head), len(rest)); n > 0 {
		t.head, rest = append(t.head, rest[:n]...), rest[n:]
	}
	t.last = append(t.last, rest...)
	if len(t.last) > 2*tailBytes {
		t.last = append(t.last[:0], t.last[len(t.last)-tailBytes:]...)
	}
	t.mu.Unlock()
	if t.progress != nil {
		t.progress(string(b))
	}
	return len(b), nil
}

// keep writes the output to a file once it is longer than what is shown.
func (t *tail) keep(b []byte) {
	if t.dir == "" || t.err != nil || t.total <= headBytes+tailBytes || t.kept >= fileBytes {
		return
	}
	if t.file == nil {
		if t.err = os.MkdirAll(t.dir, 0o700); t.err != nil {
			return
		}
		if t.file, t.err = os.OpenFile(filepath.Join(t.dir, "shell-"+uuid.NewString()+".txt"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); t.err != nil {
			return
		}
		before := append(slices.Clone(t.head), t.last...)
		n, err := t.file.Write(before)
		t.kept, t.err = int64(n), err
	}
	if t.err == nil {
		n, err := t.file.Write(b[:min(int64(len(b)), fileBytes-t.kept)])
		t.kept += int64(n)
		t.err = err
	}
}

// end returns the whole output, or its beginning and end with the file that has all of it.
func (t *tail) end() (text, file string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil && t.err == nil {
		file = t.file.Name()
		t.err = t.file.Sync()
	}
	if t.file != nil {
		t.err = errors.Join(t.err, t.file.Close())
		t.file = nil
	}
	if t.total <= headBytes+tailBytes {
		return strings.ToValidUTF8(string(t.head)+string(t.last), "\ufffd"), "", nil
	}
	if t.err != nil {
		file = ""
	}
	last := t.last[max(0, len(t.last)-tailBytes):]
	cut := t.total - int64(len(t.head)) - int64(len(last))
	note := fmt.Sprintf("\n[... %d bytes left out", cut)
	if file != "" {
		note += "; the whole is in " + file
	}
	return strings.ToValidUTF8(string(t.head), "") + note + " ...]\n" + strings.ToValidUTF8(string(last), ""), file, nil
}

// news returns what was written since the last call, as far as it is kept.
func (t *tail) news() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := append(slices.Clone(t.head), t.last...)
	gone := t.total - int64(len(all)) // between head and last
	fresh := t.total - t.told
	t.told = t.total
	switch {
	case fresh <= 0:
		return ""
	case gone == 0 || fresh <= int64(len(t.last)):
		all = all[int64(len(all))-fresh:]
		return strings.ToValidUTF8(string(all[max(0, len(all)-MaxBytes):]), "\ufffd")
	}
	return fmt.Sprintf("[... %d bytes left out ...]\n%s", fresh-int64(len(t.last)), strings.ToValidUTF8(string(t.last), ""))
}

// clear forgets the output of a command that has ended.
func (t *tail) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head, t.last = nil, nil
}

// drop removes the file of an output that is not shown.
func (t *tail) drop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		return nil
	}
	err := errors.Join(t.file.Close(), os.Remove(t.file.Name()))
	t.file = nil
	return err
}
