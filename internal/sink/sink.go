// Package sink delivers a notice outside a team: to a command, a webhook, or
// the desktop. The gate is part of the delivery and cannot be disabled: only
// what is meant for outside is delivered, and nothing of the internal channel.
package sink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/teamctl/teamctl/internal/run"
	"github.com/teamctl/teamctl/team"
)

// Internal is the channel of messages between agents. Nothing of it is ever
// delivered outside the team.
const Internal = team.ChannelInternal

// External is the gate: it reports whether a notice is wanted outside and is
// not of the internal channel.
func External(wantsDeliver bool, channel string) bool {
	return wantsDeliver && channel != Internal
}

// limit is the time limit of one delivery.
const limit = 15 * time.Second

// Notice is the content of a notice, passed as JSON to commands and webhooks.
// At is in Unix milliseconds.
type Notice struct {
	Team  string `json:"team"`
	What  string `json:"what"` // "approval.asked", "member.failed", ...
	ID    string `json:"id,omitempty"`
	Title string `json:"title"`
	Text  string `json:"text"`
	At    int64  `json:"at"`
}

// Sink is one destination. The zero value is none; use Parse.
type Sink struct {
	kind   string // "command", "webhook", "desktop"
	target string
}

// String returns the form that Parse parses.
func (s Sink) String() string {
	if s.target == "" {
		return s.kind
	}
	return s.kind + ":" + s.target
}

// Parse parses "command:SHELL COMMAND", "webhook:URL" or "desktop". A webhook
// is https, or http on this machine.
func Parse(spec string) (Sink, error) {
	kind, target, _ := strings.Cut(spec, ":")
	s := Sink{kind, target}
	switch kind {
	case "desktop":
		if target != "" {
			return Sink{}, fmt.Errorf("%q: the desktop takes no address", spec)
		}
	case "command":
		if strings.TrimSpace(target) == "" {
			return Sink{}, fmt.Errorf("%q has no command", spec)
		}
	case "webhook":
		return s, checkURL(target)
	default:
		return Sink{}, fmt.Errorf("%q is neither command:, webhook: nor desktop", spec)
	}
	return s, nil
}

func checkURL(target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("%q is not a URL: %w", target, err)
	}
	switch {
	case u.Hostname() == "" || u.User != nil:
		return fmt.Errorf("%q must have a host, and no user name or password", target)
	case u.Scheme == "https":
		return nil
	case u.Scheme != "http":
		return fmt.Errorf("%q is not https", target)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q names another machine without https", target)
	}
	return nil
}

// Deliver delivers a notice to the sink if the gate lets it pass, and reports
// whether it did. Commands are recorded in book while they run.
func (s Sink) Deliver(ctx context.Context, book run.Book, wantsDeliver bool, channel string, n Notice) (sent bool, err error) {
	if !External(wantsDeliver, channel) {
		return false, nil
	}
	body, err := json.Marshal(n)
	if err != nil {
		return false, fmt.Errorf("encode the notice: %w", err)
	}
	switch s.kind {
	case "command":
		err = runCommand(ctx, book, run.Cmd{Command: s.target, Stdin: append(body, '\n')})
	case "webhook":
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err = s.post(ctx, body)
	case "desktop":
		name, args := desktop(n)
		err = runCommand(ctx, book, run.Cmd{Command: `exec "$0" "$@"`, Args: append([]string{name}, args...)})
	default:
		err = errors.New("no sink is configured")
	}
	if err != nil {
		return false, fmt.Errorf("notify %s: %w", s, err)
	}
	return true, nil
}

// desktop returns the command that shows a notice; its texts are arguments and
// never code.
func desktop(n Notice) (string, []string) {
	if runtime.GOOS == "darwin" {
		return "osascript", []string{
			"-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", n.Title, n.Text,
		}
	}
	return "notify-send", []string{"--app-name=teamctl", "--", n.Title, n.Text}
}

// maxErr limits how much of a command's standard error is kept, in bytes.
const maxErr = 200

// grace is the time between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// runCommand runs a command and ends everything that it has started.
func runCommand(ctx context.Context, book run.Book, c run.Cmd) error {
	scope, err := book.Open(run.Notice, "")
	if err != nil {
		return err
	}
	var said head
	c.Env, c.Stderr, c.Limit, c.Grace = os.Environ(), &said, limit, grace
	end, err := scope.Run(ctx, c)
	if err = errors.Join(err, scope.Close()); err != nil || end.OK() {
		return err
	}
	return errors.New(strings.TrimSuffix(end.Why(limit)+": "+strings.TrimSpace(said.String()), ": "))
}

// head keeps the first maxErr bytes written to it.
type head struct{ strings.Builder }

func (h *head) Write(p []byte) (int, error) {
	_, _ = h.Builder.Write(p[:min(len(p), maxErr-h.Len())])
	return len(p), nil
}

// post sends the notice. It does not follow a redirect, which could lead
// anywhere. A target that is allowed without https must also be on this machine
// when it is dialled.
func (s Sink) post(ctx context.Context, body []byte) error {
	local := strings.HasPrefix(s.target, "http:")
	dialer := &net.Dialer{Timeout: limit, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err == nil && local && !at.Addr().Unmap().IsLoopback() {
			err = fmt.Errorf("%s is not on this machine", address)
		}
		return err
	}}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	if !local {
		transport.Proxy = http.ProxyFromEnvironment
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	return nil
}
