package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/teamctl/teamctl/internal/web"
	"github.com/teamctl/teamctl/team"
	"github.com/teamctl/teamctl/tool"
)

// webFlags are what is asked of the page.
type webFlags struct {
	listen, cert, key, proxy string
	port                     int
	readOnly, noQR           bool
}

func newWeb(a *app) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Serve your teams as a page for a browser or a phone",
		Long: `Serve your teams as a page, until Ctrl-C: what waits for you, members, tasks as a list, a
board, a graph and a timeline, mail, changes, usage, and the screens of members as text. The
page answers, writes messages, takes comments on changes, adds, assigns and retries tasks; it
never types into an agent.

It listens on this machine only, and prints a link that logs one browser in, within ten
minutes. --listen serves another address, with a certificate; --trust-proxy names the host
under which a tunnel or a proxy with TLS leads here.`,
		Example: `  teamctl web
  teamctl web --read-only --port 8080
  teamctl web --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  teamctl web --trust-proxy machine.example.ts.net
  teamctl web ls`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case (f.cert == "") != (f.key == ""):
				return usage(cmd, "--tls-cert and --tls-key go together")
			case f.listen != "" && f.port != 0:
				return usage(cmd, "--listen has the port")
			case strings.ContainsAny(f.proxy, "/ @") || strings.Contains(f.proxy, "://"):
				return usage(cmd, "--trust-proxy is a host, as machine.example.com, not %q", f.proxy)
			}
			return a.web(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "address and port to listen on (default: a free port of this machine)")
	flags.IntVar(&f.port, "port", 0, "port on this machine (default: the last one if it is free)")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the certificate, PEM")
	flags.StringVar(&f.key, "tls-key", "", "file with its key, PEM")
	flags.StringVar(&f.proxy, "trust-proxy", "", "host under which a tunnel with TLS leads here")
	flags.BoolVar(&f.readOnly, "read-only", false, "show only: nothing can be changed from it")
	flags.BoolVar(&f.noQR, "no-qr", false, "print the link without its QR code")
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Short: "List the browsers that are logged in", Example: "  teamctl web ls\n  teamctl web ls --json", Args: takes(0, 0, ""),
			RunE: func(*cobra.Command, []string) error {
				s, err := a.webStore()
				if err != nil {
					return err
				}
				list, err := s.Sessions()
				if err != nil {
					return err
				}
				return a.webSessions(list)
			},
		},
		&cobra.Command{
			Use: "revoke [ID...]", Short: "End the sessions of browsers, all without an id", Example: "  teamctl web revoke 3f9a1c02\n  teamctl web revoke",
			RunE: func(cmd *cobra.Command, args []string) error {
				s, err := a.webStore()
				if err != nil {
					return err
				}
				n, err := s.Revoke(cmd.Context(), args...)
				if err != nil {
					return err
				}
				if n == 0 && len(args) > 0 {
					return team.Errorf(team.CodeNotFound, "there is no session %s", strings.Join(args, ", ")).WithHint("teamctl web ls")
				}
				if !a.out.value(map[string]any{"revoked": n}) {
					a.out.line("logged out %s", plural(n, "browser"))
				}
				return nil
			},
		})
	return cmd
}

func (a *app) webStore() (web.Store, error) {
	env, err := a.tools()
	if err != nil {
		return web.Store{}, err
	}
	if a.outsider().Person {
		return web.Store{Path: filepath.Join(env.Home.Dir, "web.json")}, nil
	}
	return web.Store{}, team.Errorf(team.CodeDenied, "the page is a person's: a member of a team cannot serve it")
}

type webSession struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	Began int64  `json:"began"`
	Seen  int64  `json:"seen"`
	Until int64  `json:"until"`
}

func (a *app) webSessions(list []web.Session) error {
	out := []webSession{}
	rows := [][]string{}
	for _, s := range list {
		out = append(out, webSession{s.ID, s.Agent, s.Began.UnixMilli(), s.Seen.UnixMilli(), s.Until.UnixMilli()})
		rows = append(rows, []string{s.ID, s.Began.Local().Format("2006-01-02 15:04"), s.Seen.Local().Format("2006-01-02 15:04"), printable(s.Agent)})
	}
	if a.out.value(map[string]any{"sessions": out}) {
		return nil
	}
	if len(list) == 0 {
		a.out.note("no browser is logged in")
		return nil
	}
	a.out.table([]string{"ID", "SINCE", "LAST SEEN", "BROWSER"}, rows, false)
	return nil
}

// web serves the page until ctx ends.
func (a *app) web(ctx context.Context, f webFlags) (err error) {
	store, err := a.webStore()
	if err != nil {
		return err
	}
	h := &screenHome{app: a, teams: map[string]*screenTeam{}, ctx: ctx, door: tool.DoorPage}
	defer h.close()
	s := &web.Server{Home: h, Sessions: store, ReadOnly: f.readOnly, TLS: f.cert != "", Log: func(format string, args ...any) { a.out.note(format, args...) }}
	ln, err := webListener(f, store)
	if err != nil {
		return err
	}
	defer ln.Close()
	at := ln.Addr().(*net.TCPAddr)
	port := at.Port
	if f.listen == "" {
		if err := store.SetPort(ctx, port); err != nil {
			return err
		}
	}
	base := s.Loopback(at)
	switch {
	case f.cert != "":
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return team.Errorf(team.CodeInvalid, "read the certificate: %w", err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			return team.Errorf(team.CodeInvalid, "read the certificate: %w", err)
		}
		s.Host = func(host string) bool { return certified(leaf, host, port) }
		base = "https://" + certName(leaf, port)
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	case f.proxy != "":
		s.Host = func(host string) bool { return strings.EqualFold(host, f.proxy) }
		base = "https://" + f.proxy
	}
	code, err := store.NewCode(ctx)
	if err != nil {
		return err
	}
	a.webLink(base, base+"/login?code="+code, f)
	srv := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close() // a client that does not let go
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// webListener listens on this machine, on the last port if it is free, or where it is asked to.
// What other machines reach needs TLS.
func webListener(f webFlags, store web.Store) (net.Listener, error) {
	if f.listen == "" {
		ports := []int{f.port}
		if f.port == 0 {
			ports = []int{store.Port(), 0} // open pages find the next server
		}
		for _, port := range ports {
			if ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				return ln, nil
			}
		}
		return nil, team.Errorf(team.CodeUnavailable, "port %d of this machine is in use", f.port).WithHint("leave out --port: any free one is taken")
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return nil, team.Errorf(team.CodeInvalid, "invalid --listen %q: an address and a port are needed, as 0.0.0.0:8443", f.listen)
	}
	ip, err := netip.ParseAddr(host)
	if local := host == "localhost" || err == nil && ip.IsLoopback(); !local && f.cert == "" && f.proxy == "" {
		return nil, team.Errorf(team.CodeInvalid, "%s can be reached by other machines", f.listen).
			WithHint("add --tls-cert and --tls-key, or --trust-proxy HOST if a proxy with TLS stands before it")
	}
	ln, err := net.Listen("tcp", f.listen)
	if err != nil {
		return nil, team.Errorf(team.CodeUnavailable, "listen: %w", err)
	}
	return ln, nil
}

// certified reports whether a Host is one that the certificate is for.
func certified(leaf *x509.Certificate, host string, port int) bool {
	name, p, err := net.SplitHostPort(host)
	if err != nil {
		name, p = host, "443"
	}
	return p == strconv.Itoa(port) && leaf.VerifyHostname(strings.Trim(name, "[]")) == nil
}

// certName is the first name of a certificate with the port.
func certName(leaf *x509.Certificate, port int) string {
	name := "localhost"
	switch {
	case len(leaf.DNSNames) > 0:
		name = strings.TrimPrefix(leaf.DNSNames[0], "*.")
	case len(leaf.IPAddresses) > 0:
		name = leaf.IPAddresses[0].String()
	}
	return net.JoinHostPort(name, strconv.Itoa(port))
}

// webLink prints where the page is, and the link that logs in.
func (a *app) webLink(base, link string, f webFlags) {
	if a.out.value(map[string]any{"url": base, "login": link}) {
		return
	}
	a.out.line("the page of your teams is at %s, until Ctrl-C", base)
	a.out.line("log in, once and within ten minutes: %s", link)
	if a.atTerminal() && !f.noQR {
		if code, err := web.QR(link); err == nil {
			a.out.text(code)
		}
	}
}
