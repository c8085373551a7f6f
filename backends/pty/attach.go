package pty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/pty/vt"
	"github.com/teamctl/teamctl/team"
)

// DefaultPrefix is ctrl-b.
const DefaultPrefix = 0x02

// AttachIn configures Attach.
type AttachIn struct {
	Socket     string          // Pane.Socket
	Generation string          // "" matches whichever has the socket
	Shim       backends.ProcID // if known, it is asked to recreate a missing socket
	In, Out    *os.File        // the user's terminal; In may be something else in tests
	ReadOnly   bool            // send no input and keep the size
	Prefix     byte            // 0: DefaultPrefix; prefix d detaches, prefix prefix sends it
	Cols, Rows int             // of the user's terminal
	Winch      <-chan struct{} // after each receive, the size is read from Out; may be nil
}

// AttachResult is the reason why Attach returned.
type AttachResult struct {
	Detached bool           // by the prefix, or at the end of In
	Exit     *backends.Exit // the agent has exited
}

// Attach shows an agent's terminal to a user until they detach or the agent
// exits. In is put into raw mode and always restored; on return Out leaves
// every mode that the agent had set. An agent that has exited is CodeNotFound,
// a lost connection (the holder was killed, or this client did not keep up with
// the output) CodeUnavailable.
func Attach(ctx context.Context, in AttachIn) (res AttachResult, err error) {
	c, err := dial(ctx, in.Socket, in.Shim)
	if err != nil {
		return res, fmt.Errorf("attach: %w", err)
	}
	a := &attachment{in: in, conn: c, keys: keys{prefix: in.Prefix}}
	if a.keys.prefix == 0 {
		a.keys.prefix = DefaultPrefix
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	f := &frames{r: c, max: frameMax}
	if err := a.greet(f); err != nil {
		return res, fmt.Errorf("attach: %w", err)
	}
	fd := int(in.In.Fd())
	if term.IsTerminal(fd) {
		old, err := term.MakeRaw(fd)
		if err != nil {
			return res, fmt.Errorf("attach: set the terminal to raw mode: %w", err)
		}
		defer func() { _ = term.Restore(fd, old) }()
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return res, fmt.Errorf("attach: %w", err)
	}
	quit := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { a.typing(fd, pipe[0]) })
	others.Go(func() { a.sizing(quit) })
	res, err = a.show(f)
	_ = c.Close() // unblocks goroutines that write to it
	close(quit)
	_ = unix.Close(pipe[1])
	others.Wait()
	_ = unix.Close(pipe[0])
	_, _ = in.Out.Write(vt.Restore(a.alternate))
	if a.left() && res.Exit == nil {
		return AttachResult{Detached: true}, nil
	}
	if cerr := context.Cause(ctx); cerr != nil && res.Exit == nil {
		return res, cerr
	}
	return res, err
}

// attachment is the state of one Attach.
type attachment struct {
	in        AttachIn
	keys      keys
	alternate bool

	mu       sync.Mutex // guards writes to conn
	conn     *os.File
	detached bool
}

func (a *attachment) greet(f *frames) error {
	role := roleAttach
	if a.in.ReadOnly {
		role = roleView
	}
	a.write(appendJSON(nil, kindHello, hello{
		Version: protocolVersion, Generation: a.in.Generation, Role: role, Cols: a.in.Cols, Rows: a.in.Rows,
	}))
	k, p, err := f.next()
	if err != nil {
		return team.Errorf(team.CodeUnavailable, "its holder closed the connection: %w", err)
	}
	switch k {
	case kindHello:
		return nil
	case kindReply:
		var r reply
		if err := json.Unmarshal(p, &r); err == nil && r.Error != nil {
			return r.Error
		}
	default:
	}
	return team.Errorf(team.CodeUnavailable, "its holder speaks a different protocol")
}

func (a *attachment) write(frame []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.conn.Write(frame) // show reports errors of the connection
}

func (a *attachment) left() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.detached
}

func (a *attachment) detach() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.detached = true
	_, _ = a.conn.Write(appendFrame(nil, kindDetach, nil))
	_ = a.conn.Close()
}

// show copies the terminal's output until the end.
func (a *attachment) show(f *frames) (AttachResult, error) {
	var scan vt.Scanner
	for {
		k, p, err := f.next()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrClosed) ||
			errors.Is(err, unix.ECONNRESET) {
			return AttachResult{}, team.Errorf(team.CodeUnavailable, "the connection to the terminal was lost").
				WithHint("attach again: the holder closes a connection that does not keep up with the output")
		}
		if err != nil {
			return AttachResult{}, fmt.Errorf("attach: %w", err)
		}
		switch k {
		case kindOutput:
			scan.Scan(p, func(k vt.Kind, _ []byte) {
				if k == vt.Enter || k == vt.Leave {
					a.alternate = k == vt.Enter
				}
			})
			_, err = a.in.Out.Write(p)
		case kindNotice:
			_, err = a.in.Out.Write([]byte{7})
		case kindExit:
			e, err := parseExit(p)
			if err != nil {
				return AttachResult{}, fmt.Errorf("attach: %w", err)
			}
			return AttachResult{Exit: &e}, nil
		default: // of a later version of the protocol
		}
		if err != nil { // the user's terminal was closed
			return AttachResult{}, fmt.Errorf("attach: write to the terminal: %w", err)
		}
	}
}

// typing sends what the user types until the other end of wake is closed.
func (a *attachment) typing(fd, wake int) {
	buf := make([]byte, 32<<10)
	for {
		ok, err := readable(fd, wake)
		if err != nil || !ok {
			return
		}
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n == 0 {
			a.detach()
			return
		}
		out, detach := a.keys.feed(buf[:n])
		if len(out) > 0 && !a.in.ReadOnly {
			a.write(appendFrame(nil, kindInput, out))
		}
		if detach {
			a.detach()
			return
		}
	}
}

func (a *attachment) sizing(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case _, ok := <-a.in.Winch:
			if !ok {
				return
			}
			cols, rows, err := term.GetSize(int(a.in.Out.Fd()))
			if err == nil && !a.in.ReadOnly {
				a.write(appendSize(nil, cols, rows))
			}
		}
	}
}
