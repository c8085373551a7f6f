package web

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a page with a browser that is logged in.
type rig struct {
	*testing.T
	f     *fake
	s     *Server
	srv   *httptest.Server
	store Store
	token string // of the session
	csrf  string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	f := newFake()
	r := &rig{T: t, f: f, store: Store{Path: filepath.Join(t.TempDir(), "web.json")}}
	r.s = &Server{Home: f, Sessions: r.store}
	r.serve()
	r.token = r.login(r.newCode())
	r.csrf = regexp.MustCompile(`data-csrf="([0-9a-f]+)"`).FindStringSubmatch(r.body("/t/demo/needs"))[1]
	return r
}

// serve listens on a port below those that the kernel assigns to connections and listeners, so that
// none of another test takes it while no server listens there.
func (r *rig) serve() {
	for range 100 {
		ln, err := listen(r.T, fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if err == nil {
			r.serveOn(ln)
			return
		}
	}
	r.Fatal("no free port")
}

func (r *rig) serveAt(addr string) {
	ln, err := listen(r.T, addr)
	if err != nil {
		r.Fatal(err)
	}
	r.serveOn(ln)
}

func listen(t *testing.T, addr string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
}

func (r *rig) serveOn(ln net.Listener) {
	srv := httptest.NewUnstartedServer(r.s.Handler())
	_ = srv.Listener.Close()
	srv.Listener = ln
	srv.Start()
	r.srv = srv
	u, err := url.Parse(r.srv.URL)
	if err != nil {
		r.Fatal(err)
	}
	r.s.Hosts = []string{u.Host}
	r.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
}

func (r *rig) newCode() string {
	code, err := r.store.NewCode(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return code
}

// do sends a request; change may take things from it or add to it.
func (r *rig) do(method, path, body string, change func(*http.Request)) *http.Response {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.srv.URL+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if r.token != "" {
		req.AddCookie(&http.Cookie{Name: cookieName, Value: r.token})
	}
	if method == http.MethodPost {
		req.Header.Set("Origin", r.srv.URL)
		req.Header.Set(csrfHeader, r.csrf)
	}
	if change != nil {
		change(req)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (r *rig) body(path string) string {
	r.Helper()
	res := r.do(http.MethodGet, path, "", nil)
	data, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		r.Fatalf("%s: %s %s %v", path, res.Status, data, err)
	}
	return string(data)
}

func (r *rig) login(code string) string {
	r.Helper()
	res := r.do(http.MethodGet, "/login?code="+code, "", nil)
	for _, c := range res.Cookies() {
		if c.Name == cookieName && c.HttpOnly && c.SameSite == http.SameSiteStrictMode && res.StatusCode == http.StatusOK {
			return c.Value
		}
	}
	return ""
}

// post asks for an action, and returns the status and what was said.
func (r *rig) post(in deed, change func(*http.Request)) (int, string) {
	r.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		r.Fatal(err)
	}
	res := r.do(http.MethodPost, "/t/demo/do", string(data), change)
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func (r *rig) approval() deed {
	return deed{Action: "approve", Approval: 1, Seen: r.f.request.Seen(), Again: true}
}

// A code works once, and for ten minutes; nothing is shown without a session; a session ends when
// it is revoked.
func TestLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.newCode()
	if res := r.do(http.MethodHead, "/login?code="+code, "", nil); res.StatusCode != http.StatusOK {
		t.Errorf("a look at the link: %s", res.Status)
	}
	if r.login(code) == "" {
		t.Error("the code does not log in")
	}
	if r.login(code) != "" || r.login("") != "" || r.login("x") != "" {
		t.Error("a code logs in twice, or none does")
	}
	old := r.newCode()
	late := r.store
	late.Now = func() time.Time { return time.Now().Add(CodeLife) }
	if _, err := late.Login(t.Context(), old, ""); err == nil {
		t.Error("an expired code logs in")
	}
	if data := mustRead(t, r.store.Path); strings.Contains(data, r.token) || strings.Contains(data, code) {
		t.Errorf("the file has a secret: %s", data)
	}
	mine := r.token
	for _, token := range []string{"", "x", mine + "0"} {
		r.token = token
		for _, path := range []string{"/", "/t/demo/needs", "/t/demo/events", "/t/demo/screen/ann/events"} {
			if res := r.do(http.MethodGet, path, "", nil); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with token %q: %s", path, token, res.Status)
			}
		}
		if status, _ := r.post(r.approval(), nil); status != http.StatusUnauthorized {
			t.Errorf("an answer with token %q: %d", token, status)
		}
	}
	r.token = mine
	list, err := r.store.Sessions()
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if n, err := r.store.Revoke(t.Context(), list[0].ID); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if res := r.do(http.MethodGet, "/t/demo/needs", "", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("after it was revoked: %s", res.Status)
	}
}

// Names of other sites that lead to this machine, and documents of other sites, get nothing.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, change := range map[string]func(*http.Request){
		"rebinding":      func(q *http.Request) { q.Host = "evil.example:80" },
		"no port":        func(q *http.Request) { q.Host = "127.0.0.1" },
		"foreign origin": func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
		"null origin":    func(q *http.Request) { q.Header.Set("Origin", "null") },
		"other scheme":   func(q *http.Request) { q.Header.Set("Origin", "https://"+q.URL.Host) },
		"two origins": func(q *http.Request) {
			q.Header.Add("Origin", r.srv.URL)
			q.Header.Add("Origin", "https://evil.example")
		},
		"both": func(q *http.Request) { q.Host = "evil.example"; q.Header.Set("Origin", "http://evil.example") },
		"script of another": func(q *http.Request) {
			q.Header.Set("Sec-Fetch-Site", "cross-site")
			q.Header.Set("Sec-Fetch-Mode", "no-cors")
		},
		"script of the site": func(q *http.Request) {
			q.Header.Set("Sec-Fetch-Site", "same-site")
			q.Header.Set("Sec-Fetch-Mode", "cors")
		},
	} {
		for _, path := range []string{"/t/demo/needs", "/app.js", "/login?code=x", "/t/demo/events"} {
			if res := r.do(http.MethodGet, path, "", change); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s: %s", name, path, res.Status)
			}
		}
	}
	for name, change := range map[string]func(*http.Request){
		"no origin":      func(q *http.Request) { q.Header.Del("Origin") },
		"foreign origin": func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
		"no token":       func(q *http.Request) { q.Header.Del(csrfHeader) },
		"wrong token":    func(q *http.Request) { q.Header.Set(csrfHeader, strings.Repeat("0", 32)) },
	} {
		if status, text := r.post(r.approval(), change); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if len(r.f.deeds) > 0 {
		t.Errorf("done: %+v", r.f.deeds)
	}
	res := r.do(http.MethodGet, "/t/demo/needs", "", nil)
	for h, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
	} {
		if got := res.Header.Get(h); got != want {
			t.Errorf("%s: %s", h, got)
		}
	}
}

// By a proxy the page has the name of the proxy and its scheme, and no way around a session.
func TestProxy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.s.Host = func(host string) bool { return host == "page.example" }
	by := func(origin string) func(*http.Request) {
		return func(q *http.Request) {
			q.Host = "page.example"
			q.Header.Set("Origin", origin)
		}
	}
	if res := r.do(http.MethodGet, "/t/demo/needs", "", by("https://page.example")); res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
	if res := r.do(http.MethodGet, "/t/demo/needs", "", by("http://page.example")); res.StatusCode != http.StatusForbidden {
		t.Error(res.Status)
	}
	res := r.do(http.MethodGet, "/login?code="+r.newCode(), "", by("https://page.example"))
	if c := res.Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%+v", c)
	}
	r.token = ""
	if res := r.do(http.MethodGet, "/t/demo/needs", "", by("https://page.example")); res.StatusCode != http.StatusUnauthorized {
		t.Error(res.Status)
	}
}

// Every view is a document in which nothing of an agent's is markup, and which needs no more than
// its policy allows.
func TestViews(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{
		"/t/demo/needs", "/t/demo/members", "/t/demo/tasks", "/t/demo/board", "/t/demo/graph", "/t/demo/time", "/t/demo/mail", "/t/demo/changes", "/t/demo/usage",
		"/t/demo/approval/1", "/t/demo/member/ann", "/t/demo/task/5", "/t/demo/changes/ann", "/t/demo/across/ann?file=x", "/t/demo/screen/ann",
	} {
		text := r.body(path)
		if strings.Contains(text, "<script>") || strings.Contains(text, " style=") || strings.Contains(text, " on") && regexp.MustCompile(`<[^>]* on[a-z]+=`).MatchString(text) {
			t.Errorf("%s: %s", path, text)
		}
		if !strings.HasSuffix(strings.TrimSpace(text), "</html>") || !strings.Contains(text, "as of ") {
			t.Errorf("%s is not whole: %s", path, text)
		}
	}
	if text := r.body("/t/demo/approval/1"); !strings.Contains(text, "&lt;script&gt;") || strings.Contains(text, "\u202e") || !strings.Contains(text, `data-twice="1"`) {
		t.Errorf("the request: %s", text)
	}
	for _, path := range []string{"/t/demo/graph", "/t/demo/time"} {
		if p := r.do(http.MethodGet, path, "", nil).Header.Get("Content-Security-Policy"); !strings.Contains(p, "style-src 'self' 'sha256-") {
			t.Errorf("%s: %s", path, p)
		}
	}
	for _, path := range []string{"/t/other/needs", "/t/demo/nothing", "/t/demo/approval/9", "/t/demo/approval/x", "/t/demo/member/bob", "/t/demo/across/ann", "/t/demo/across?file=x", "/t/..%2f..%2fetc/needs"} {
		if res := r.do(http.MethodGet, path, "", nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	for from, to := range map[string]string{"/": "/t/demo", "/t/demo": "/t/demo/needs", "/t/demo?select=approval:3": "/t/demo/approval/3", "/t/demo?select=ann": "/t/demo/member/ann"} {
		if res := r.do(http.MethodGet, from, "", nil); res.Header.Get("Location") != to {
			t.Errorf("%s leads to %q", from, res.Header.Get("Location"))
		}
	}
	if n := len(r.body("/app.js")) + len(r.body("/app.css")) + len(r.body("/screen.css")); n > 60<<10 {
		t.Errorf("script and style have %d bytes", n)
	}
}

// A command takes two taps, an answer is what was seen, and of two that come at once one is told.
func TestAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	once := r.approval()
	once.Again = false
	if status, text := r.post(once, nil); status != http.StatusConflict || !strings.Contains(text, "second tap") {
		t.Errorf("%d %s", status, text)
	}
	other := r.approval()
	other.Seen = strings.Repeat("0", 64)
	if status, text := r.post(other, nil); status != http.StatusConflict || !strings.Contains(text, "no longer what you saw") {
		t.Errorf("%d %s", status, text)
	}
	results := make(chan int, 2)
	in := r.approval()
	for range 2 {
		go func() {
			status, _ := r.post(in, nil)
			results <- status
		}()
	}
	if a, b := <-results, <-results; a+b != http.StatusOK+http.StatusConflict {
		t.Errorf("%d and %d", a, b)
	}
	if len(r.f.deeds) != 1 || r.f.deeds[0].Member != "ann" {
		t.Errorf("%+v", r.f.deeds)
	}
}

// The page offers what is marked for it, on what is there, with the text that it asks for.
func TestDeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, tt := range []struct {
		in     deed
		status int
	}{
		{deed{Action: "message", Member: "ann", Text: "hello"}, http.StatusOK},
		{deed{Action: "reply", Message: "m1", Text: "yes"}, http.StatusOK},
		{deed{Action: "retry", Task: "5"}, http.StatusOK},
		{deed{Action: "add-task", Text: "one"}, http.StatusOK},
		{deed{Action: "message", Member: "ann", Text: " "}, http.StatusBadRequest},
		{deed{Action: "message", Member: "bob", Text: "hello"}, http.StatusConflict},
		{deed{Action: "resume", Member: "ann"}, http.StatusConflict}, // it is not paused
		{deed{Action: "kill", Member: "ann"}, http.StatusNotFound},
		{deed{Action: "attach", Member: "ann"}, http.StatusNotFound},
		{deed{Action: "comment-file", Member: "ann", Text: "why?"}, http.StatusConflict}, // on no file
		{deed{Action: "comment", Member: "ann", Path: "x", Text: "why?"}, http.StatusConflict},
		{deed{Action: "edit-comment", Member: "ann", Path: "x", Comment: "1.9", Text: "why?"}, http.StatusConflict},
		{deed{Action: "send-review", Member: "ann", Path: "x"}, http.StatusConflict}, // there is no draft
		{deed{Action: "approve", Member: "ann"}, http.StatusConflict},
	} {
		if status, text := r.post(tt.in, nil); status != tt.status {
			t.Errorf("%+v: %d %s", tt.in, status, text)
		}
	}
	if len(r.f.deeds) != 4 {
		t.Errorf("%+v", r.f.deeds)
	}
	if res := r.do(http.MethodPost, "/t/demo/do", `{"action":"retry","task":"5","more":1}`, nil); res.StatusCode != http.StatusBadRequest {
		t.Error(res.Status)
	}
	if res := r.do(http.MethodPost, "/t/demo/do", `{"text":"`+strings.Repeat("x", maxBody)+`"}`, nil); res.StatusCode != http.StatusBadRequest {
		t.Error(res.Status)
	}
	ro := &rig{T: t, f: r.f, store: r.store, token: r.token, csrf: r.csrf, s: &Server{Home: r.f, Sessions: r.store, ReadOnly: true}}
	ro.serve()
	if status, _ := ro.post(deed{Action: "retry", Task: "5"}, nil); status != http.StatusForbidden {
		t.Error(status)
	}
	if text := ro.body("/t/demo/task/5"); strings.Contains(text, "data-action") {
		t.Errorf("a page that only shows has buttons: %s", text)
	}
}

// TestPlan: the lines of a plan have numbers and comments, which go with its rejection; nothing is
// commented on that is not there, or that a page which only shows.
func TestPlan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.f.request = view.Request{ID: 1, Kind: view.NeedPlan, State: "pending", Member: "ann", Subject: "a plan", Plan: "# Plan\n" + evil + "\n", Asked: time.Now()}
	for _, tt := range []struct {
		in     deed
		status int
	}{
		{deed{Action: "comment-plan", Approval: 1, Text: "why?"}, http.StatusConflict}, // on no line
		{deed{Action: "edit-plan-comment", Approval: 1, Comment: "1", Text: "why?"}, http.StatusConflict},
		{deed{Action: "comment-plan", Approval: 1, Lines: "1-2", Text: "why?" + evil}, http.StatusOK},
		{deed{Action: "comment-plan", Approval: 1, Lines: "2", Text: "x"}, http.StatusOK},
		{deed{Action: "edit-plan-comment", Approval: 1, Comment: "2"}, http.StatusOK},
	} {
		if status, text := r.post(tt.in, nil); status != tt.status {
			t.Errorf("%+v: %d %s", tt.in, status, text)
		}
	}
	text := r.body("/t/demo/approval/1")
	for _, want := range []string{`data-line="2"`, "<b>draft 1</b>", "lines 1 to 2", "why?&lt;", "reject with 1 comment", `data-comment="1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	before := r.f.request
	before.Comments = nil
	in := deed{Action: "reject", Approval: 1, Text: "not yet", Seen: before.Seen()}
	if status, text := r.post(in, nil); status != http.StatusConflict || !strings.Contains(text, "no longer what you saw") {
		t.Errorf("%d %s", status, text)
	}
	in.Seen = r.f.request.Seen()
	if status, text := r.post(in, nil); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	d := r.f.deeds
	if last := d[len(d)-1]; last.Comments != 1 || last.Text != "not yet" || d[0].Lines != "1-2" || d[0].Approval != 1 {
		t.Errorf("%+v", d)
	}
	if text := r.body("/t/demo/approval/1"); strings.Contains(text, "data-line") || strings.Contains(text, "data-action") || !strings.Contains(text, "draft 1") {
		t.Errorf("a plan that was answered:\n%s", text)
	}
}

// A link is a QR code with a quiet zone.
func TestQR(t *testing.T) {
	t.Parallel()
	code, err := QR("http://127.0.0.1:8080/login?code=" + secret())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(code, "\n"), "\n")
	wide := len([]rune(lines[0]))
	if lines[0] != strings.Repeat("█", wide) || wide > 60 {
		t.Errorf("%s", code)
	}
	for _, l := range lines {
		if len([]rune(l)) != wide {
			t.Errorf("%q", l)
		}
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestMergeIsShownFirst checks that a merge names what was shown, and that no other action is previewed.
func TestMergeIsShownFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.f.ready = "ann"
	for _, c := range []struct {
		in     deed
		status int
		says   string
	}{
		{deed{Action: "merge-ready"}, http.StatusConflict, "nothing was done"},
		{deed{Action: "merge-ready", Preview: true, Seen: "seen ann"}, http.StatusConflict, "nothing was done"},
		{deed{Action: "add-task", Text: "x", Preview: true}, http.StatusConflict, "nothing was done"},
		{deed{Action: "merge-ready", Preview: true}, http.StatusOK, `"seen":"seen ann"`},
		{deed{Action: "merge-ready", Seen: "seen bob"}, http.StatusConflict, "nothing was merged"},
		{deed{Action: "merge-ready", Seen: "seen ann"}, http.StatusOK, "merged into main"},
	} {
		if status, text := r.post(c.in, nil); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%+v: %d %s", c.in, status, text)
		}
	}
	if n := len(r.f.done()); n != 1 {
		t.Errorf("%d deeds were done", n)
	}
}

// TestLinkOfAnotherSite checks that a link which a person follows from another site leads on by a document
// without any fact, once, and that no other request from there is answered so.
func TestLinkOfAnotherSite(t *testing.T) {
	r := newRig(t)
	r.token = "" // the browser sends no cookie along
	fetch := func(path, site, dest, user string) (int, string) {
		res := r.do(http.MethodGet, path, "", func(q *http.Request) {
			for k, v := range map[string]string{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": dest, "Sec-Fetch-User": user} {
				q.Header.Set(k, v)
			}
		})
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(data)
	}
	code, text := fetch("/t/demo?select=task:5", "cross-site", "document", "?1")
	if code != http.StatusOK || !strings.Contains(text, `content="0;url=/t/demo?select=task%3A5"`) || strings.Contains(text, "ann") {
		t.Errorf("a link: %d\n%s", code, text)
	}
	for _, x := range [][4]string{
		{"/t/demo?select=task:5", "same-origin", "document", "?1"}, // it is led on to itself
		{"/t/demo?select=task:5", "cross-site", "iframe", "?1"},
		{"/t/demo?select=task:5", "cross-site", "document", ""},
		{"/t/none/%22%3E%3Cscript%3E", "none", "document", "?1"},
	} {
		if code, text := fetch(x[0], x[1], x[2], x[3]); code != http.StatusUnauthorized || strings.Contains(text, "refresh") {
			t.Errorf("%v: %d\n%s", x, code, text)
		}
	}
	if code, text := fetch("/t/demo/needs?x=%22%3E%3Cscript%3E", "cross-site", "document", "?1"); code != http.StatusOK || strings.Contains(text, "<script>") {
		t.Errorf("%d\n%s", code, text)
	}
}

// TestLoopback checks that the address to print is the one that is listened at.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]string{"127.0.0.1": "http://127.0.0.1:80", "127.0.0.2": "http://127.0.0.2:80", "::1": "http://[::1]:80", "0.0.0.0": "http://127.0.0.1:80"} {
		s := &Server{}
		if got := s.Loopback(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}); got != want || !s.hosts(strings.TrimPrefix(want, "http://")) || !s.hosts("localhost:80") {
			t.Errorf("%s: %s, hosts %q", ip, got, s.Hosts)
		}
	}
}
