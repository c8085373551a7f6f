package pty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/internal/unixsock"
	"github.com/teamctl/teamctl/team"
)

const (
	// callWithin limits a call; the shim itself gives up typing earlier, and
	// a busy machine may take seconds to pass that on.
	callWithin = typeWithin + 10*time.Second
	// dialWithin limits the wait for a recreated socket.
	dialWithin = 2 * time.Second
	dialAgain  = 20 * time.Millisecond
)

// dial connects to a shim's socket. If it was removed, the shim (if known and
// alive) is asked to recreate it. Without a shim the error is CodeNotFound.
func dial(ctx context.Context, socket string, shim backends.ProcID) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	t := time.NewTicker(dialAgain)
	defer t.Stop()
	for asked := false; ; {
		c, err := unixsock.Dial(socket)
		if err == nil {
			return c, nil
		}
		gone := errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
		if gone && (shim.PID == 0 || !proc.Alive(shim)) {
			return nil, team.Errorf(team.CodeNotFound, "its terminal does not exist")
		}
		if gone && !asked {
			asked = true
			_ = proc.Signal(shim, syscall.SIGUSR1)
		} else if !gone && !errors.Is(err, syscall.EAGAIN) {
			return nil, fmt.Errorf("connect to its terminal: %w", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to its terminal: %w", err)
		}
	}
}

// call sends one request to the shim on a connection of its own: nothing stays
// open for an agent that no client watches.
func (a *attached) call(ctx context.Context, verb string, k kind, in any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	text, err := a.ask(ctx, k, in)
	if err == nil {
		return text, nil
	}
	if !proc.Alive(a.Proc().Shim) {
		return "", team.Errorf(team.CodeNotFound, "%s %s: it has exited", verb, a.Launch().Agent)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "", team.Errorf(team.CodeTimeout, "%s %s: its holder does not answer: %w", verb, a.Launch().Agent, err)
	}
	return "", fmt.Errorf("%s %s: %w", verb, a.Launch().Agent, err)
}

func (a *attached) ask(ctx context.Context, k kind, in any) (string, error) {
	c, err := dial(ctx, a.pane.Socket, a.Proc().Shim)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	out := appendJSON(nil, kindHello, hello{Version: protocolVersion, Generation: a.Launch().Generation, Role: roleCall})
	if _, err = c.Write(appendJSON(out, k, in)); err == nil {
		f := frames{r: c, max: frameMax}
		for {
			var got kind
			var p []byte
			if got, p, err = f.next(); err != nil {
				break
			}
			if got != kindReply {
				continue
			}
			var r reply
			if err := json.Unmarshal(p, &r); err != nil {
				return "", fmt.Errorf("read the reply: %w", err)
			}
			if r.Error != nil {
				return "", r.Error
			}
			return r.Text, nil
		}
	}
	if cerr := ctx.Err(); cerr != nil {
		return "", cerr
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return "", team.Errorf(team.CodeUnavailable, "its holder closed the connection")
	}
	return "", err
}
