package tmux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errDisconnected means that the control client has ended; the server may be
// running.
var errDisconnected = errors.New("tmux control client disconnected")

// control is a control-mode client: one long-lived tmux process that reads
// commands from its standard input. It ends when that closes, thus at the
// latest with this process, and the session stays.
type control struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Closer
	done chan struct{} // closed when the reader has ended and the process is reaped

	mu      sync.Mutex // orders writes and the queue of waiting requests alike
	waiting []chan answer
	down    bool
}

type answer struct {
	out string
	err error
}

// dial attaches to a session. no-output suppresses pane output, so a busy pane
// costs nothing; ignore-size keeps this client from shrinking the session's
// windows.
//
// Each notification of tmux goes to notified, which must not wait for an answer.
func dial(ctx context.Context, tmux, socket, session string, notified func(line string)) (*control, error) {
	// -N: attaching would start a server if none is listening.
	cmd := exec.Command(tmux, "-u", "-N", "-S", socket, "-f", "/dev/null", "-C",
		"attach-session", "-f", "no-output,ignore-size", "-t", session)
	cmd.Env = serverEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // not affected by Ctrl-C in the terminal of this process
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("attach to tmux: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		_ = in.Close()
		return nil, fmt.Errorf("attach to tmux: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("attach to tmux: %w", err)
	}
	c := &control{cmd: cmd, in: in, out: out, done: make(chan struct{})}
	first := make(chan answer, 1) // the block of attach-session itself
	go c.read(bufio.NewReaderSize(out, 64<<10), first, notified)
	select {
	case a := <-first:
		if a.err != nil {
			c.close()
			return nil, fmt.Errorf("attach to tmux: %w", a.err)
		}
		return c, nil
	case <-ctx.Done():
		c.close()
		return nil, fmt.Errorf("attach to tmux: %w", context.Cause(ctx))
	}
}

func (c *control) run(ctx context.Context, args ...string) (string, error) {
	a, err := c.send(args)
	if err != nil {
		return "", err
	}
	return c.await(ctx, a, args[0])
}

func (c *control) await(ctx context.Context, a <-chan answer, name string) (string, error) {
	select {
	case r := <-a:
		var ref *refused
		if errors.As(r.err, &ref) {
			ref.cmd = name
		}
		return r.out, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("tmux %s: %w", name, context.Cause(ctx))
	}
}

// batch sends all commands before it reads the first answer.
func (c *control) batch(ctx context.Context, cmds ...[]string) error {
	return c.groups(ctx, cmds)[0].err
}

// groups sends everything before it reads the first answer.
func (c *control) groups(ctx context.Context, groups ...[][]string) []answer {
	as := make([]answer, len(groups))
	got, err := c.send(slices.Concat(groups...)...)
	for i, g := range groups {
		if err != nil {
			as[i].err = err
			continue
		}
		var printed []string
		for _, cmd := range g {
			switch out, err := c.await(ctx, got, cmd[0]); {
			case err != nil && as[i].err == nil:
				as[i].err = err
			case err == nil && out != "":
				printed = append(printed, out)
			}
		}
		as[i].out = strings.Join(printed, "\n")
	}
	return as
}

func (c *control) buffer(ctx context.Context, name, data string) error {
	const chunk = 16 << 10
	flag := []string{"set-buffer", "-b", name, "--"}
	for {
		n := min(len(data), chunk)
		if _, err := c.run(ctx, append(flag, data[:n])...); err != nil {
			return err
		}
		if data = data[n:]; data == "" {
			return nil
		}
		flag = []string{"set-buffer", "-a", "-b", name, "--"}
	}
}

// send queues one waiter for each command and writes all commands at once. The
// channel has a buffer for all answers: a caller need not receive them.
func (c *control) send(cmds ...[]string) (<-chan answer, error) {
	var b strings.Builder
	for _, cmd := range cmds {
		b.WriteString(line(cmd))
		b.WriteByte('\n')
	}
	a := make(chan answer, len(cmds))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, errDisconnected
	}
	for range cmds {
		c.waiting = append(c.waiting, a)
	}
	if _, err := io.WriteString(c.in, b.String()); err != nil {
		c.down = true               // the next request needs a new client
		return nil, errDisconnected // the reader answers all waiters
	}
	return a, nil
}

// read parses the stream: a block from %begin to the %end or %error with the
// same number answers a request if its flags mark it as this client's.
func (c *control) read(r *bufio.Reader, first chan<- answer, notified func(line string)) {
	defer close(c.done)
	var (
		body   strings.Builder
		number string
		mine   bool
		inside bool
	)
	for {
		l, err := r.ReadString('\n') // no Scanner: a line may have megabytes
		if err != nil {
			break
		}
		l = strings.TrimSuffix(l, "\n")
		if !inside {
			if f, ok := guard(l, "%begin"); ok {
				inside, number, mine = true, f.number, f.mine
				body.Reset()
			} else {
				notified(l)
			}
			continue
		}
		f, ok := guard(l, "%end")
		bad := false
		if !ok {
			f, bad = guard(l, "%error")
		}
		if (!ok && !bad) || f.number != number {
			body.WriteString(l)
			body.WriteByte('\n')
			continue
		}
		inside = false
		a := answer{out: strings.TrimSuffix(body.String(), "\n")}
		if bad {
			a = answer{err: &refused{msg: a.out}}
		}
		if !mine {
			if first != nil {
				first <- a
				first = nil
			}
			continue
		}
		c.mu.Lock()
		if len(c.waiting) > 0 {
			c.waiting[0] <- a
			c.waiting = c.waiting[1:]
		}
		c.mu.Unlock()
	}
	_ = c.in.Close()
	c.mu.Lock()
	c.down = true
	for _, w := range c.waiting {
		w <- answer{err: errDisconnected}
	}
	c.waiting = nil
	c.mu.Unlock()
	if first != nil {
		first <- answer{err: errDisconnected}
	}
	_ = c.cmd.Wait()
}

type guardLine struct {
	number string
	mine   bool
}

// guard parses "%begin <time> <number> <flags>".
func guard(l, word string) (guardLine, bool) {
	rest, ok := strings.CutPrefix(l, word+" ")
	if !ok {
		return guardLine{}, false
	}
	f := strings.Fields(rest)
	if len(f) != 3 {
		return guardLine{}, false
	}
	flags, err := strconv.Atoi(f[2])
	if err != nil {
		return guardLine{}, false
	}
	return guardLine{number: f[1], mine: flags&1 == 1}, true
}

func (c *control) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.down
}

// partWithin is how long a client may take to disconnect from its server, which
// also has the pipes: a stopped server would block the close.
const partWithin = time.Second

// close ends the client and waits for it.
func (c *control) close() {
	_ = c.in.Close()
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(partWithin):
		_ = c.cmd.Process.Kill()
		_ = c.out.Close()
		<-c.done
	}
}
