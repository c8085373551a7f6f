package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// rpc is JSON-RPC over one WebSocket on a unix socket, without the jsonrpc member, as codex
// app-server speaks it.
type rpc struct {
	ws *websocket.Conn

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan rpcMessage
	err     error // why the connection ended
}

// rpcMessage is any message: a request has ID and Method, a notification only Method, an answer
// only ID.
type rpcMessage struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

// rpcError is a refusal by the other side: the call had no effect. Any other error of a call
// leaves open whether it had one.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// dialRPC connects to the socket.
func dialRPC(ctx context.Context, socket string) (*rpc, error) {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer tr.CloseIdleConnections()
	ws, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}}) // the library closes the body
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", socket, err)
	}
	ws.SetReadLimit(-1) // one message may hold a whole conversation; the server is a child of the agent's shim
	return &rpc{ws: ws, waiting: map[int64]chan rpcMessage{}}, nil
}

// serve reads until the connection ends and passes requests and notifications to take, which must
// not call call. hears is called for every message.
func (r *rpc) serve(ctx context.Context, hears func(), take func(rpcMessage)) error {
	for {
		_, b, err := r.ws.Read(ctx)
		if err != nil {
			r.end(err)
			return err
		}
		hears()
		var m rpcMessage
		if err := json.Unmarshal(b, &m); err != nil {
			r.end(err)
			return fmt.Errorf("read a message of the app-server: %w", err)
		}
		if m.Method != "" {
			take(m)
			continue
		}
		var id int64
		if json.Unmarshal(m.ID, &id) != nil {
			continue
		}
		r.mu.Lock()
		c := r.waiting[id]
		delete(r.waiting, id)
		r.mu.Unlock()
		if c != nil {
			c <- m
		}
	}
}

// end fails all pending and later calls.
func (r *rpc) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	for id, c := range r.waiting {
		close(c)
		delete(r.waiting, id)
	}
}

// call sends a request and waits for the answer. A refusal is an *rpcError; any other error leaves
// open whether the request had an effect.
func (r *rpc) call(ctx context.Context, method string, params, result any) error {
	c := make(chan rpcMessage, 1)
	r.mu.Lock()
	if r.err != nil {
		defer r.mu.Unlock()
		return fmt.Errorf("%s: %w", method, errors.Join(errGone, r.err))
	}
	r.last++
	id := r.last
	r.waiting[id] = c
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, id)
		r.mu.Unlock()
	}()
	if err := r.send(ctx, struct {
		ID     int64  `json:"id"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{id, method, params}); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m, ok := <-c:
		switch {
		case !ok:
			return fmt.Errorf("%s: %w", method, errGone)
		case m.Error != nil:
			return fmt.Errorf("%s: %w", method, m.Error)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("read the answer to %s: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}

// hello opens the conversation with an app-server; a non-nil server receives the server's
// description of itself.
func (r *rpc) hello(ctx context.Context, server any) error {
	err := r.call(ctx, "initialize", map[string]any{
		"clientInfo":   map[string]string{"name": "teamctl", "title": "teamctl", "version": "1"},
		"capabilities": map[string]bool{"experimentalApi": true},
	}, server)
	if err != nil {
		return err
	}
	return r.send(ctx, map[string]string{"method": "initialized"})
}

// errGone reports a connection that ended before the answer, errUnsent a message whose time was over
// before it could be sent, as after a suspension of this process.
var (
	errGone   = errors.New("the connection has ended")
	errUnsent = errors.New("not sent in time")
)

func (r *rpc) send(ctx context.Context, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(errUnsent, ctx.Err())
	}
	if err = r.ws.Write(ctx, websocket.MessageText, b); err != nil && ctx.Err() != nil {
		return errors.Join(errUnsent, err) // or a part of it was sent, and the connection is closed
	}
	return err
}

func (r *rpc) close() { _ = r.ws.CloseNow() }
