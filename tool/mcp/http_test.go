package mcp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/team"
)

// bearer adds the token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(q)
}

// serveHTTP serves a new team over HTTP until end is called, which returns the error of Serve.
func serveHTTP(t *testing.T) (r rig, s *Server, url string, end func() error) {
	t.Helper()
	r = newRig(t).create()
	s, err := New(t.Context(), r.person(), "v0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	ln, err := Listen(t.Context(), "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln, "right-token") }()
	return r, s, "http://" + ln.Addr().String() + Path, func() error {
		cancel()
		return <-ended
	}
}

// TestHTTP: over HTTP a client needs the token, and names this machine.
func TestHTTP(t *testing.T) {
	t.Parallel()
	r, _, url, end := serveHTTP(t)
	base := &http.Transport{}
	defer base.CloseIdleConnections()

	const ping = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	for _, c := range []struct {
		token, host, origin string
		want                int
	}{
		{"right-token", "", "", http.StatusOK},
		{"right-token", "localhost:1", "http://localhost:6274", http.StatusOK},
		{"right-token", "[::1]:80", "http://[::1]", http.StatusOK},
		{"", "", "", http.StatusUnauthorized},
		{"wrong-token", "", "", http.StatusUnauthorized},
		{"right-token", "evil.example", "", http.StatusForbidden},
		{"", "evil.example", "", http.StatusForbidden},
		{"right-token", "", "http://evil.example", http.StatusForbidden},
		{"right-token", "", "null", http.StatusForbidden},
		{"right-token", "127.0.0.1.evil.example", "", http.StatusForbidden},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(ping))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		if c.token != "" {
			q.Header.Set("Authorization", "Bearer "+c.token)
		}
		if c.host != "" {
			q.Host = c.host
		}
		if c.origin != "" {
			q.Header.Set("Origin", c.origin)
		}
		res, err := base.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("%+v: %s", c, res.Status)
		}
	}

	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "v0"}, nil)
	cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{"right-token", base}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.call(cs, "TaskCreate", map[string]any{"subject": "over HTTP", "description": ""}, nil)
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestSubscribers checks that a resource has subscribers as long as a client that has subscribed is
// connected and has not let go of it, however often it has asked for it.
func TestSubscribers(t *testing.T) {
	t.Parallel()
	_, s, url, end := serveHTTP(t)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	connect := func() *sdk.ClientSession {
		t.Helper()
		transport := &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{"right-token", base}}}
		cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "v0"}, nil).Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			t.Fatal(err)
		}
		return cs
	}
	first, second := connect(), connect()
	for _, cs := range []*sdk.ClientSession{first, first, second} {
		if err := cs.Subscribe(t.Context(), &sdk.SubscribeParams{URI: URITasks}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: URITasks}); err != nil {
		t.Fatal(err)
	}
	if !s.subscribed(URITasks) {
		t.Error("the other client has let go as well")
	}
	if err := second.Close(); err != nil { // the answer comes once the session has ended
		t.Fatal(err)
	}
	if s.subscribed(URITasks) {
		t.Error("a client that let go of the resource, or one that has gone, still counts")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}

// TestListen: nobody else's network.
func TestListen(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:80", "example.com:80", "[::]:0", "80", "127.0.0.1"} {
		ln, err := Listen(t.Context(), addr)
		if err == nil {
			_ = ln.Close()
		}
		if !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%s: %v", addr, err)
		}
	}
}
