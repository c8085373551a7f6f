package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/internal/view/page"
)

// Server is the page. Its fields do not change while it serves.
type Server struct {
	Home     view.Home
	Sessions Store
	// Hosts are the values of Host that are served, lower case, with the port unless the
	// scheme implies it. Host, if set, decides others.
	Hosts    []string
	Host     func(host string) bool
	TLS      bool // it is served by https under Hosts; under a name that Host takes it always is
	ReadOnly bool
	Log      func(format string, args ...any) // of what goes wrong; nil: nowhere

	mu    sync.Mutex
	hubs  map[string]*hub[view.Snapshot] // by team
	lists map[string]*hub[[]view.Glance] // the list of teams, without a name
}

const (
	cookieName = "teamctl_session"
	csrfHeader = "X-Teamctl-Csrf"
	// maxBody bounds what is sent to the page.
	maxBody = 256 << 10
)

// Handler serves the page until the server's context ends, see http.Server.BaseContext.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app.js", asset("text/javascript; charset=utf-8", page.Script))
	mux.HandleFunc("GET /app.css", asset("text/css; charset=utf-8", page.Style))
	mux.HandleFunc("GET /screen.css", asset("text/css; charset=utf-8", page.ScreenStyle))
	mux.HandleFunc("GET /login", s.login)
	mux.Handle("GET /{$}", s.member(s.teams))
	mux.Handle("GET /events", s.member(s.teamsEvents))
	mux.Handle("GET /t/{team}", s.member(s.home))
	mux.Handle("GET /t/{team}/{view}", s.member(s.show))
	mux.Handle("GET /t/{team}/{view}/{id}", s.member(s.show))
	mux.Handle("GET /t/{team}/events", s.member(s.events))
	mux.Handle("GET /t/{team}/screen/{id}/events", s.member(s.screen))
	mux.Handle("POST /t/{team}/do", s.member(s.do))
	mux.Handle("POST /logout", s.member(s.logout))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(""))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if why := s.refuse(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		mux.ServeHTTP(w, r)
	})
}

// Loopback makes the server, which listens at an address, answer under the names of this machine, and
// returns the address to print.
func (s *Server) Loopback(at *net.TCPAddr) string {
	names := []string{"127.0.0.1", "localhost", "::1"}
	if own := at.AddrPort().Addr().Unmap(); own.IsLoopback() {
		names = slices.Insert(slices.DeleteFunc(names, func(n string) bool { return n == own.String() }), 0, own.String())
	}
	for _, name := range names {
		s.Hosts = append(s.Hosts, net.JoinHostPort(name, strconv.Itoa(at.Port)))
	}
	if s.TLS {
		return "https://" + s.Hosts[0]
	}
	return "http://" + s.Hosts[0]
}

// policy lets a document load the script and the style of the page, and a style that a drawing
// has in it, by its hash.
func policy(styles string) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'" + styles +
		"; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

// refuse says why a request may not even be looked at, "" where it may.
func (s *Server) refuse(r *http.Request) string {
	if !s.hosts(r.Host) {
		return "this page is not served under that name"
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return "a change needs an Origin"
		}
		// A document of another site may lead here; it may load nothing from here.
		if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
			return "the page is not for other sites"
		}
		return ""
	}
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host || u.Scheme != s.scheme(r) {
			return "the page is not for other sites"
		}
	}
	return ""
}

// scheme is how the client reaches the page.
func (s *Server) scheme(r *http.Request) string {
	if s.TLS || !slices.Contains(s.Hosts, strings.ToLower(r.Host)) {
		return "https"
	}
	return "http"
}

func (s *Server) hosts(host string) bool {
	host = strings.ToLower(host)
	return host != "" && (slices.Contains(s.Hosts, host) || s.Host != nil && s.Host(host))
}

func asset(kind string, data func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(data())
	}
}

// login makes a session of a code. The cookie is not sent along a redirect from another site, so
// the answer is a document that leads on by itself.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // somebody looks whether the link leads anywhere
		return
	}
	token, err := s.Sessions.Login(r.Context(), r.URL.Query().Get("code"), r.UserAgent())
	if err != nil {
		status := http.StatusForbidden
		if !errors.Is(err, ErrCode) {
			s.log("log in: %v", err)
			status, err = http.StatusInternalServerError, errors.New("the login could not be recorded")
		}
		s.write(w, status, page.Doc{Kind: "closed", Body: err.Error()})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: s.scheme(r) == "https", MaxAge: int(SessionLife / time.Second),
	})
	s.write(w, http.StatusOK, page.Doc{Kind: "welcome"})
}

// visit is a request of a session.
type visit struct {
	*http.Request
	w     http.ResponseWriter
	token string
	csrf  string
}

// member lets sessions through, and changes with their token only.
func (s *Server) member(f func(visit)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := ""
		if c, err := r.Cookie(cookieName); err == nil {
			token = c.Value
		}
		if _, ok := s.Sessions.Session(r.Context(), token); !ok {
			if to := fromElsewhere(r); to != "" && token == "" {
				s.write(w, http.StatusOK, page.Doc{Kind: "onward", Body: to})
				return
			}
			s.write(w, http.StatusUnauthorized, page.Doc{Kind: "closed", Body: "you are not logged in"})
			return
		}
		v := visit{r, w, token, hashOf("csrf:" + token)[:32]}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !same(r.Header.Get(csrfHeader), v.csrf) {
			http.Error(w, "the change does not come from the page", http.StatusForbidden)
			return
		}
		f(v)
	})
}

// fromElsewhere returns the path of a document to which a person has followed a link of another site,
// "" for any other request. The browser keeps the cookie to itself then. A document of our own that
// leads to the same path is answered, and tells nothing: the next request is of this site.
func fromElsewhere(r *http.Request) string {
	h := r.Header
	site := h.Get("Sec-Fetch-Site")
	if r.Method != http.MethodGet || site != "cross-site" && site != "same-site" ||
		h.Get("Sec-Fetch-Mode") != "navigate" || h.Get("Sec-Fetch-Dest") != "document" || h.Get("Sec-Fetch-User") != "?1" {
		return ""
	}
	to := r.URL.EscapedPath()
	if !strings.HasPrefix(to, "/t/") && to != "/" {
		return ""
	}
	if q := r.URL.Query().Encode(); q != "" {
		to += "?" + q
	}
	return to
}

func (s *Server) logout(v visit) {
	if x, ok := s.Sessions.Session(v.Context(), v.token); ok {
		if _, err := s.Sessions.Revoke(v.Context(), x.ID); err != nil {
			s.fail(v, err)
			return
		}
	}
	http.SetCookie(v.w, &http.Cookie{Name: cookieName, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	v.w.WriteHeader(http.StatusNoContent)
}

func (s *Server) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(format, args...)
	}
}

func (s *Server) write(w http.ResponseWriter, status int, d page.Doc) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if styles := d.Styles(); styles != "" {
		w.Header().Set("Content-Security-Policy", policy(styles))
	}
	w.WriteHeader(status)
	if err := page.Live(w, d); err != nil {
		s.log("write the page: %v", err)
	}
}

// open opens a team that exists: names that a client makes up are not tried on the disk.
func (s *Server) open(ctx context.Context, name string) (view.Team, error) {
	list, err := s.glances(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(g view.Glance) bool { return g.Team == name }) {
		return nil, errNoTeam
	}
	return s.Home.Open(ctx, name)
}

var errNoTeam = errors.New("there is no such team")

// glances reads the teams once.
func (s *Server) glances(ctx context.Context) (list []view.Glance, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = s.Home.Teams(ctx, nil, func(g []view.Glance) {
		list = g
		cancel()
	})
	if list != nil || errors.Is(err, context.Canceled) {
		err = nil
	}
	return list, err
}
