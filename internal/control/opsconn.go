package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// errNoStream is a supervisor of a version that does not know frames.
var errNoStream = team.Errorf(team.CodeUnavailable, "the supervisor takes no stream of operations").WithReason("no_stream")

// stream sends an operation and waits for its answer. Errors of the connection wrap
// ledger.ErrWriterGone.
func (c *Client) stream(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	ctx, stop := c.attended(ctx)
	defer stop()
	conn, used, err := c.takeConn(ctx)
	if err != nil {
		return nil, err
	}
	for {
		out, err := conn.roundTrip(ctx, op)
		if err == nil {
			c.putConn(conn)
			return parseAnswer(out)
		}
		_ = conn.Close()
		// A connection that lay idle may be of a supervisor that is no more. What has
		// an id is applied once, so another can be asked.
		if !used || op.ID == "" || ctx.Err() != nil {
			return nil, c.gone(ctx, err)
		}
		used = false
		if conn, err = c.dialOps(ctx); err != nil {
			return nil, err
		}
	}
}

// takeConn is an idle connection (used) or a new one.
func (c *Client) takeConn(ctx context.Context) (conn *opsConn, used bool, err error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		conn, c.idle = c.idle[n-1], c.idle[:n-1]
		c.mu.Unlock()
		return conn, true, nil
	}
	c.mu.Unlock()
	conn, err = c.dialOps(ctx)
	return conn, false, err
}

// connected reports that a connection waits for the next operation.
func (c *Client) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle) > 0
}

// putConn keeps a connection for the next operation.
func (c *Client) putConn(conn *opsConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.spoiled || len(c.idle) >= maxIdle {
		_ = conn.Close()
		return
	}
	c.idle = append(c.idle, conn)
}

// opsConn is a client's connection after the upgrade. One operation at a time.
type opsConn struct {
	net.Conn
	r       *bufio.Reader
	buf     []byte
	spoiled bool // its deadline may be over
}

// dialOps connects and leaves HTTP behind.
func (c *Client) dialOps(ctx context.Context) (conn *opsConn, err error) {
	raw, err := dialSocket(ctx, c.socket)
	if err != nil {
		return nil, c.gone(ctx, err)
	}
	stop := onEnd(ctx, raw)
	defer func() {
		if conn == nil {
			stop()
			_ = raw.Close()
		}
	}()
	if _, err := fmt.Fprintf(raw, "POST %s HTTP/1.1\r\nHost: supervisor\r\n%s: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n\r\n",
		c.path, ledgerHeader, fileIDAt(c.ledger), opsProtocol); err != nil {
		return nil, c.gone(ctx, err)
	}
	r := bufio.NewReader(raw)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return nil, c.gone(ctx, err)
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols {
		e := &team.Error{}
		if json.Unmarshal(data, e) == nil && e.Code != "" { // it has taken nothing: another writer may
			return nil, team.Errorf(e.Code, "%w", errors.Join(ledger.ErrWriterGone, e)).WithReason(e.Reason).WithHint(e.Hint)
		}
		return nil, errNoStream
	}
	if !stop() {
		return nil, c.gone(ctx, ctx.Err())
	}
	q := quietly(raw)
	if r.Buffered() == 0 { // always: nothing is said before the first operation
		r.Reset(q)
	}
	return &opsConn{Conn: q, r: r}, nil
}

// roundTrip sends one operation and reads the content of its answer. After an error
// the connection is of no use.
func (c *opsConn) roundTrip(ctx context.Context, op ledger.Op) ([]byte, error) {
	defer func(stop func() bool) { c.spoiled = !stop() }(onEnd(ctx, c))
	c.buf = appendOp(c.buf[:0], op)
	if len(c.buf) > maxBody {
		return nil, errFrame
	}
	if _, err := c.Write(c.buf); err != nil {
		return nil, err
	}
	return readFrame(c.r)
}

// onEnd interrupts a connection when ctx ends. The returned function takes that
// back; false says that it came too late.
func onEnd(ctx context.Context, c net.Conn) func() bool {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}
