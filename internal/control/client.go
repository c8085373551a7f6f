package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/teamctl/teamctl/internal/fileid"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/mail"
	"github.com/teamctl/teamctl/supervisor"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// Client talks to one team's supervisor. It implements tool.Supervisor,
// ledger.Writer and mail.Settler. It is safe for concurrent use.
type Client struct {
	socket string
	ledger string // the file that requests are about; "" if it is not compared
	lock   string // that the supervisor holds for life; "" if unknown
	http   *http.Client
	// revive starts a supervisor if there is none; nil: the client starts none.
	revive func(context.Context) error

	ops  link // operations of the ledger
	mail link // deliveries to be mailed: an operation does not wait for a mailbox
}

// maxIdle bounds the connections that are kept for the next call, and idleFor how long. A process
// that stays, such as a board, makes a client for every look, and drops it without Close: each
// would keep a connection, here and in the supervisor, for the life of both.
const (
	maxIdle = 4
	idleFor = time.Second
)

var (
	_ tool.Supervisor = (*Client)(nil)
	_ ledger.Writer   = (*Client)(nil)
	_ mail.Settler    = (*Client)(nil)
)

// newClient is NewClient for a team's supervisor, and for no other's that listens in
// its place.
func newClient(l team.Layout) *Client {
	c := NewClient(l.Socket())
	c.ledger, c.lock = l.Ledger(), l.SupervisorLock()
	return c
}

// NewClient returns a client of the supervisor on a socket; it connects on use.
func NewClient(socket string) *Client {
	c := &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialSocket(ctx, socket)
		},
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     idleFor,
		DisableCompression:  true,
	}}}
	c.ops = link{client: c, path: opsPath, protocol: opsProtocol}
	c.mail = link{client: c, path: mailPath, protocol: mailProtocol}
	return c
}

// dialSocket connects to a supervisor of our own.
func dialSocket(ctx context.Context, socket string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Close drops idle connections.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.ops.drop()
	c.mail.drop()
}

// reasonGone is a supervisor that has ended, or a connection that has: whether it
// carried out what it was asked is not known.
const reasonGone = "supervisor_gone"

// attempts bounds how many supervisors one request is sent to: all but the last died before they
// answered.
const attempts = 3

// ask is do for what may be carried out twice: to look, or to make something so that
// may be so already. A supervisor that was killed is started again, and asked.
func (c *Client) ask(ctx context.Context, path string, in, out any) error {
	return c.try(ctx, path, in, out, supervisor.IsStopped)
}

// do posts in to a route and reads the answer into out. A request that a dead supervisor may have
// carried out is not sent again; one that reached none is.
func (c *Client) do(ctx context.Context, path string, in, out any) error {
	return c.try(ctx, path, in, out, func(err error) bool {
		var op *net.OpError
		return errors.As(err, &op) && op.Op == "dial"
	})
}

func (c *Client) try(ctx context.Context, path string, in, out any, again func(error) bool) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	for n := 1; ; n++ {
		err := c.post(ctx, path, body, out)
		// One that keeps another ledger has not looked at the request.
		if err == nil || c.revive == nil || n == attempts || ctx.Err() != nil || team.ReasonOf(err) != reasonOther && !again(err) {
			return err
		}
		if rerr := c.revive(ctx); rerr != nil { // what became of the request stays unknown
			return team.Errorf(team.CodeOf(err), "%w; and none could be started to ask again: %v", err, rerr).
				WithReason(team.ReasonOf(err)).WithHint(cmp.Or(team.HintOf(rerr), team.HintOf(err)))
		}
	}
}

// post is one attempt.
func (c *Client) post(ctx context.Context, path string, body []byte, out any) error {
	ctx, stop := c.attended(ctx)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://supervisor"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	c.about(req.Header)
	req.GetBody = nil // a request that may have been carried out is never sent twice
	res, err := c.http.Do(req)
	if err != nil {
		return c.gone(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return c.gone(ctx, err)
	}
	if res.StatusCode != http.StatusOK {
		return refusal(res.Status, data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

// refusal is the error of an answer that is none.
func refusal(status string, data []byte) error {
	e := &team.Error{}
	if json.Unmarshal(data, e) != nil || e.Code == "" {
		return team.Errorf(team.CodeInternal, "supervisor answered %s: %.200s", status, data)
	}
	return e
}

// about adds the ledger of a request to its headers.
func (c *Client) about(h http.Header) {
	if id := fileid.At(c.ledger); id != "" {
		h.Set(ledgerHeader, id)
	}
}

// gone is a supervisor that did not answer. Whether it carried out what it was
// asked is not known.
func (c *Client) gone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if team.IsCode(err, team.CodeDenied) { // who listens is not us
		return err
	}
	return team.Errorf(team.CodeUnavailable, "the supervisor did not answer: %w", errors.Join(ledger.ErrWriterGone, err)).
		WithReason(reasonGone).WithHint("teamctl ps shows the current state")
}

// Write sends a ledger operation to the group commit.
func (c *Client) Write(ctx context.Context, op ledger.Op) (json.RawMessage, error) {
	// An operation with an id is applied once, so it may be sent again.
	out, err := c.ops.ask(ctx, func(b []byte) []byte { return appendOp(b, op) }, op.ID != "")
	if !errors.Is(err, errNoStream) {
		return out, err
	}
	err = c.do(ctx, "/v1/write", op, &out)
	return out, err
}

// Spawn starts a new member.
func (c *Client) Spawn(ctx context.Context, in team.SpawnRequest) (out ledger.SpawnResult, err error) {
	err = c.do(ctx, "/v1/spawn", in, &out)
	return out, err
}

// StopMembers stops members.
func (c *Client) StopMembers(ctx context.Context, in team.StopRequest) ([]team.Stopped, error) {
	var out stopOut
	var lost error
	err := c.try(ctx, "/v1/stop", in, &out, func(err error) bool {
		if supervisor.IsStopped(err) {
			lost = err
		}
		return supervisor.IsStopped(err)
	})
	if err != nil {
		return nil, err
	}
	if lost != nil && out.Error != nil && out.Error.Code == team.CodeNotFound {
		return nil, lost // the dead supervisor may have stopped it and removed it from the roster
	}
	if out.Error != nil {
		return out.Stopped, out.Error
	}
	return out.Stopped, nil
}

// StartMembers starts stopped members.
func (c *Client) StartMembers(ctx context.Context, names []string) (out []ledger.Member, err error) {
	err = c.ask(ctx, "/v1/start", namesIn{names}, &out)
	return out, err
}

// RestartMembers restarts members.
func (c *Client) RestartMembers(ctx context.Context, names []string) (out []ledger.Member, err error) {
	err = c.do(ctx, "/v1/restart", namesIn{names}, &out)
	return out, err
}

// RenameMember gives a member without a process another name.
func (c *Client) RenameMember(ctx context.Context, session, name string) (out ledger.Member, err error) {
	err = c.ask(ctx, "/v1/rename", renameIn{session, name}, &out)
	return out, err
}

// Capture reads a member's screen.
func (c *Client) Capture(ctx context.Context, name string, scrollback int) (out string, err error) {
	err = c.ask(ctx, "/v1/capture", captureIn{name, scrollback}, &out)
	return out, err
}

// TypeText pastes text into a member's terminal.
func (c *Client) TypeText(ctx context.Context, name, text string, enter bool) error {
	return c.do(ctx, "/v1/type", typeIn{name, text, enter}, nil)
}

// Hide hides a member's screen or shows it again.
func (c *Client) Hide(ctx context.Context, name string, hidden bool) error {
	return c.ask(ctx, "/v1/hide", hideIn{name, hidden}, nil)
}

// Status asks how the supervisor sees its team.
func (c *Client) Status(ctx context.Context) (out ledger.SupervisorStatus, err error) {
	err = c.ask(ctx, "/v1/status", none{}, &out)
	return out, err
}

// Quit ends the supervisor. One that died meanwhile has ended as well, but may have
// left the team's terminals.
func (c *Client) Quit(ctx context.Context, closeTeam bool) error {
	if closeTeam {
		return c.ask(ctx, "/v1/quit", quitIn{closeTeam}, nil)
	}
	return c.try(ctx, "/v1/quit", quitIn{closeTeam}, nil, func(error) bool { return false })
}

// PauseMembers freezes members or thaws them.
func (c *Client) PauseMembers(ctx context.Context, names []string, on bool) (out []ledger.Member, err error) {
	err = c.ask(ctx, "/v1/pause", pauseIn{names, on}, &out)
	return out, err
}

// RecoverMembers restarts members that were lost.
func (c *Client) RecoverMembers(ctx context.Context, names []string) (out []team.Recovered, err error) {
	err = c.ask(ctx, "/v1/recover", namesIn{names}, &out)
	return out, err
}

// CarryOut has done what an approval lets happen, once.
func (c *Client) CarryOut(ctx context.Context, approval int64) (out ledger.Outcome, err error) {
	err = c.do(ctx, "/v1/carryout", carryIn{approval}, &out)
	return out, err
}

// Debug asks for the loop's state.
func (c *Client) Debug(ctx context.Context) (out team.Debug, err error) {
	err = c.ask(ctx, "/v1/debug", none{}, &out)
	return out, err
}

// Explain reports what a member is doing, with the sources.
func (c *Client) Explain(ctx context.Context, name string) (out team.Report, err error) {
	err = c.ask(ctx, "/v1/explain", namesIn{[]string{name}}, &out)
	return out, err
}

// InterruptMember ends the turn that a member is in.
func (c *Client) InterruptMember(ctx context.Context, name string) error {
	return c.do(ctx, "/v1/interrupt", namesIn{[]string{name}}, nil)
}

// Goroutines returns the stacks of the supervisor's goroutines.
func (c *Client) Goroutines(ctx context.Context) (string, error) {
	ctx, stop := c.attended(ctx)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://supervisor/debug/pprof/goroutine?debug=2", nil)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return "", c.gone(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return "", c.gone(ctx, err)
	}
	return string(data), nil
}
