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
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// errNoStream is a supervisor of a version that does not know a protocol of frames.
var errNoStream = team.Errorf(team.CodeUnavailable, "the supervisor does not support the stream").WithReason(team.ReasonNoStream)

// link is a client's connections for one protocol of frames.
type link struct {
	client         *Client
	path, protocol string

	mu   sync.Mutex
	idle []*frameConn
	none bool // the supervisor's version does not have the protocol
}

// ask sends the request that put appends to a buffer as a frame, and waits for its answer. again
// permits sending it twice. Errors of the connection wrap ledger.ErrWriterGone.
func (l *link) ask(ctx context.Context, put func([]byte) []byte, again bool) (json.RawMessage, error) {
	l.mu.Lock()
	none := l.none
	l.mu.Unlock()
	if none {
		return nil, errNoStream
	}
	ctx, stop := l.client.attended(ctx)
	defer stop()
	conn, used, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	for {
		out, err := conn.roundTrip(ctx, put)
		if err == nil {
			l.put(conn)
			return parseAnswer(out)
		}
		_ = conn.Close()
		// A connection that lay idle may be of a supervisor that has exited: its successor
		// can be asked.
		if !used || !again || ctx.Err() != nil {
			return nil, l.client.gone(ctx, err)
		}
		used = false
		if conn, err = l.dial(ctx); err != nil {
			return nil, err
		}
	}
}

// drop closes the idle connections.
func (l *link) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.idle {
		_ = conn.Close()
	}
	l.idle = nil
}

// take is an idle connection (used) or a new one.
func (l *link) take(ctx context.Context) (conn *frameConn, used bool, err error) {
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		conn, l.idle = l.idle[n-1], l.idle[:n-1]
		l.mu.Unlock()
		return conn, true, nil
	}
	l.mu.Unlock()
	conn, err = l.dial(ctx)
	return conn, false, err
}

// connected reports that a connection waits for the next request.
func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.idle) > 0
}

// put keeps a connection for the next request.
func (l *link) put(conn *frameConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.spoiled || len(l.idle) >= maxIdle {
		_ = conn.Close()
		return
	}
	l.idle = append(l.idle, conn)
}

// frameConn is a client's connection after the upgrade. One request at a time.
type frameConn struct {
	net.Conn
	r       *bufio.Reader
	buf     []byte
	spoiled bool // its deadline may be over
}

// dial connects and leaves HTTP behind.
func (l *link) dial(ctx context.Context) (conn *frameConn, err error) {
	c := l.client
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
		l.path, ledgerHeader, fileid.At(c.ledger), l.protocol); err != nil {
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
		l.mu.Lock()
		l.none = true
		l.mu.Unlock()
		return nil, errNoStream
	}
	if !stop() {
		return nil, c.gone(ctx, ctx.Err())
	}
	return &frameConn{Conn: raw, r: r}, nil
}

// roundTrip sends one request and reads the content of its answer. After an error the connection
// is unusable.
func (c *frameConn) roundTrip(ctx context.Context, put func([]byte) []byte) ([]byte, error) {
	defer func(stop func() bool) { c.spoiled = !stop() }(onEnd(ctx, c))
	c.buf = put(c.buf[:0])
	if len(c.buf) > maxBody {
		return nil, errFrame
	}
	if _, err := c.Write(c.buf); err != nil {
		return nil, err
	}
	return readFrame(c.r)
}

// onEnd interrupts a connection when ctx ends. The returned function cancels that; false means
// that it came too late.
func onEnd(ctx context.Context, c net.Conn) func() bool {
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}
