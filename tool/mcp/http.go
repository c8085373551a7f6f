package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/teamctl/teamctl/team"
)

// Path is the path of the HTTP transport.
const Path = "/mcp"

// Listen opens a loopback address for Serve, such as 127.0.0.1:0. It refuses any other address,
// since clients get the rights of the server's identity.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "invalid address %q: %w", addr, err).WithHint("--http 127.0.0.1:0")
	}
	if host == "localhost" || host == "" {
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return nil, team.Errorf(team.CodeInvalid, "%s is not an address of this machine alone", host).WithReason(team.ReasonNotLoopback).
			WithHint("--http 127.0.0.1:0")
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "listen on %s: %w", addr, err)
	}
	return ln, nil
}

// sessionIdle is how long a client over HTTP may be silent before its session ends.
const sessionIdle = time.Hour

// Serve serves clients over HTTP until ctx ends. Each request needs the bearer token. A request
// whose Host or Origin is not this machine is refused first, so that no web page reaches the
// server through a name that it points here.
func (s *Server) Serve(ctx context.Context, ln net.Listener, token string) error {
	streamable := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk },
		&sdk.StreamableHTTPOptions{SessionTimeout: sessionIdle, PropagateRequestCancellation: true})
	mux := http.NewServeMux()
	mux.Handle(Path, guard(token, streamable))
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return team.Errorf(team.CodeUnavailable, "serve: %w", err)
	case <-ctx.Done():
	}
	// Streams stay open as long as clients want, so they are closed.
	err := srv.Close()
	if serr := <-failed; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	for ss := range s.sdk.Sessions() {
		err = errors.Join(err, ss.Close())
	}
	return err
}

// guard passes requests on that name this machine and contain the token.
func guard(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); !localHost(r.Host) || origin != "" && !localOrigin(origin) {
			http.Error(w, "this server answers to this machine only", http.StatusForbidden)
			return
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if !strings.EqualFold(scheme, "bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func localOrigin(origin string) bool {
	_, host, ok := strings.Cut(origin, "://")
	return ok && localHost(host)
}

// localHost reports whether a Host header names this machine.
func localHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
