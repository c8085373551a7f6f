package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/web/webtest"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// pageServer is a process that serves the page.
type pageServer struct {
	*faultRig
	url, login string
	stop       func()
}

// servePage starts the page.
func (r *faultRig) servePage(args ...string) *pageServer {
	r.Helper()
	cmd := exec.Command(r.exe, append([]string{"web", "--json"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	p := &pageServer{faultRig: r}
	p.stop = sync.OnceFunc(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			r.Error(err)
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // exits with the status of an interrupt
	})
	r.Cleanup(p.stop)
	text, err := bufio.NewReader(out).ReadString('}')
	var printed struct{ URL, Login string }
	if err == nil {
		err = json.Unmarshal([]byte(text), &printed)
	}
	if err != nil {
		r.Fatalf("%q, %v", text, err)
	}
	p.url, p.login = printed.URL, printed.Login
	return p
}

// pageClient is a browser without a screen.
type pageClient struct {
	*faultRig
	client    *http.Client
	url, csrf string
}

// client logs in. It connects to the page through by, or directly if by is nil.
func (p *pageServer) client(by *http.Transport) *pageClient {
	p.Helper()
	if by == nil {
		by = &http.Transport{}
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.Fatal(err)
	}
	c := &pageClient{faultRig: p.faultRig, url: p.url, client: &http.Client{Jar: jar, Transport: by, Timeout: patience}}
	p.Cleanup(by.CloseIdleConnections)
	if status, _ := c.get(p.login); status != http.StatusOK {
		p.Fatalf("log in: %d", status)
	}
	_, text := c.get(p.url + "/t/f/needs")
	found := regexp.MustCompile(`data-csrf="([0-9a-f]+)"`).FindStringSubmatch(text)
	if len(found) != 2 {
		p.Fatalf("the page has no token: %s", text)
	}
	c.csrf = found[1]
	return c
}

func (c *pageClient) get(url string) (int, string) { return c.ask(http.MethodGet, url, "", nil) }

// do posts an action. change may modify the request.
func (c *pageClient) do(deed string, change func(*http.Request)) (int, string) {
	return c.ask(http.MethodPost, c.url+"/t/f/do", deed, func(r *http.Request) {
		r.Header.Set("Origin", c.url)
		r.Header.Set("X-Teamctl-Csrf", c.csrf)
		if change != nil {
			change(r)
		}
	})
}

func (c *pageClient) ask(method, url, body string, change func(*http.Request)) (int, string) {
	c.Helper()
	req, err := http.NewRequestWithContext(c.Context(), method, url, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	res, err := c.client.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		c.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// approval returns the action that approves a request as the page shows it.
func (c *pageClient) approval(id string) string {
	c.Helper()
	_, text := c.get(c.url + "/t/f/approval/" + id)
	seen := regexp.MustCompile(`data-action="approve"[^>]* data-seen="([0-9a-f]+)"`).FindStringSubmatch(text)
	if len(seen) != 2 {
		c.Fatalf("the page shows no request: %s", text)
	}
	return `{"action":"approve","approval":` + id + `,"seen":"` + seen[1] + `","again":true}`
}

// TestScreensAndPage checks that if two screens and the page answer a request at once, one
// succeeds, the others report that, and the log names the successful one.
func TestScreensAndPage(t *testing.T) {
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	page := r.servePage().client(nil)
	one, two := r.sit("one", 120, 36), r.sit("two", 80, 24)
	for _, s := range []*seat{one, two} {
		s.run("teamctl ui --select approval:1")
		s.shows("Bash: make")
		s.shows("a approve")
	}
	deed := page.approval("1")
	read := time.NewTimer(time.Second) // a screen does not accept an answer to what it has just painted
	<-read.C
	var status int
	var answer string
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		status, answer = page.do(deed, nil)
	}()
	one.tmux("send-keys", "-t", "one", "a", ";", "send-keys", "-t", "two", "a")
	<-answered
	approved := regexp.MustCompile(`request 1 of ann is approved`)
	told := regexp.MustCompile(`already approved|already answered|nothing was answered|does nothing here`)
	said := []string{approved.FindString(answer) + told.FindString(answer)}
	if said[0] == "" || status != http.StatusOK && status != http.StatusConflict {
		t.Errorf("the page: %d %s", status, answer)
	}
	for _, s := range []*seat{one, two} {
		s.sees("what came of the key", func(text string) bool {
			what := approved.FindString(text) + told.FindString(text)
			if what != "" {
				said = append(said, what)
			}
			return what != ""
		})
	}
	if n := len(approved.FindAllString(strings.Join(said, "\n"), -1)); n != 1 {
		t.Errorf("%d have answered: %q", n, said)
	}
	via := "screen"
	if approved.MatchString(answer) {
		via = "page"
	}
	if x := r.approval(1); x.State != ledger.ApprovalApproved || x.AnsweredVia != via {
		t.Errorf("permission 1 is %s by %s, not by the %s", x.State, x.AnsweredVia, via)
	}
	if text := r.teamctl("events"); !strings.Contains(text, "person, by the "+via) {
		t.Errorf("the log does not name the screen or the page: %s", text)
	}
	for _, s := range []*seat{one, two} {
		s.types("q")
		s.left()
	}
}

// TestPageDoors checks that the log marks what a person does through the page, but not what
// commands do.
func TestPageDoors(t *testing.T) {
	r := newFaultRig(t)
	r.agent("ann", "never", "sleep", "10000")
	r.teamctl("task", "add", "by hand")
	c := r.servePage().client(nil)
	for _, deed := range []string{
		`{"action":"add-task","text":"by the page"}`, `{"action":"assign","task":"2","text":"ann"}`, `{"action":"message","member":"ann","text":"hello"}`,
	} {
		if status, text := c.do(deed, nil); status != http.StatusOK {
			t.Errorf("%s: %d %s", deed, status, text)
		}
	}
	via := map[string]string{}
	for line := range strings.Lines(r.teamctl("events", "-o", "jsonl")) {
		var e ledger.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Via != "" || e.What == team.EventTaskCreated {
			via[e.What+" "+e.ID] = e.Who + " " + e.Via
		}
		if strings.HasPrefix(e.What, team.MessageEvents) && e.Via != "" {
			via["message"] = e.Who + " " + e.Via
		}
	}
	for what, want := range map[string]string{"task.created 1": "team-lead ", "task.created 2": "team-lead page", "message": "team-lead page"} {
		if via[what] != want {
			t.Errorf("%s was by %q, not %q: %v", what, via[what], want, via)
		}
	}
	if _, text := c.get(c.url + "/t/f/needs"); !strings.Contains(text, "person, by the page, added 2 by the page") {
		t.Errorf("the page does not show it: %s", text)
	}
}

// TestPageByProxy checks that the page works behind a proxy with TLS, under the proxy's name and
// with its checks, and that it refuses requests without a session, both through and past the
// proxy.
func TestPageByProxy(t *testing.T) {
	r := newFaultRig(t)
	var inside *url.URL
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(inside)
			p.Out.Host = p.In.Host
			p.SetXForwarded()
		}}).ServeHTTP(w, q)
	}))
	t.Cleanup(proxy.Close)
	const host = "page.example"
	port := freePort(t)
	page := r.servePage("--port", port, "--trust-proxy", host)
	if page.url != "https://"+host || !strings.HasPrefix(page.login, page.url) {
		t.Errorf("the link is %s, %s", page.url, page.login)
	}
	var err error
	if inside, err = url.Parse("http://127.0.0.1:" + port); err != nil {
		t.Fatal(err)
	}
	tunnel := func() *http.Transport {
		tr := proxy.Client().Transport.(*http.Transport).Clone()
		tr.TLSClientConfig = &tls.Config{RootCAs: tr.TLSClientConfig.RootCAs, ServerName: "example.com"}
		tr.DialTLSContext = func(ctx context.Context, network, _ string) (conn net.Conn, err error) {
			return (&tls.Dialer{Config: tr.TLSClientConfig}).DialContext(ctx, network, proxy.Listener.Addr().String())
		}
		t.Cleanup(tr.CloseIdleConnections)
		return tr
	}
	c := page.client(tunnel())
	u, err := url.Parse(page.url)
	if err != nil {
		t.Fatal(err)
	}
	if cookies := c.client.Jar.Cookies(u); len(cookies) != 1 {
		t.Errorf("the cookies of %s: %v", u, cookies)
	}
	if plain := c.client.Jar.Cookies(&url.URL{Scheme: "http", Host: host}); len(plain) != 0 {
		t.Errorf("the cookie is sent without TLS: %v", plain)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page.url+"/t/f/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := (&http.Client{Jar: c.client.Jar, Transport: c.client.Transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	next()
	for name, change := range map[string]func(*http.Request){
		"no token":         func(q *http.Request) { q.Header.Del("X-Teamctl-Csrf") },
		"no TLS":           func(q *http.Request) { q.Header.Set("Origin", "http://"+host) },
		"another site":     func(q *http.Request) { q.Header.Set("Origin", "https://evil.example") },
		"the inner origin": func(q *http.Request) { q.Header.Set("Origin", inside.String()) },
	} {
		if status, text := c.do(`{"action":"add-task","text":"x"}`, change); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := c.do(`{"action":"add-task","text":"x"}`, nil); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	for text := next(); !strings.Contains(text, "0/1"); {
		text = next() // events arrive while they happen
	}

	bare := &pageClient{faultRig: r, url: page.url, client: &http.Client{Transport: tunnel(), Timeout: patience}}
	if status, _ := bare.get(page.url + "/t/f/needs"); status != http.StatusUnauthorized {
		t.Errorf("by the proxy without a session: %d", status)
	}
	if status, _ := bare.do(`{"action":"add-task","text":"y"}`, nil); status != http.StatusUnauthorized {
		t.Errorf("a change by the proxy without a session: %d", status)
	}
	past := &pageClient{faultRig: r, url: inside.String(), client: &http.Client{Timeout: patience}}
	t.Cleanup(past.client.CloseIdleConnections)
	for _, forwarded := range []string{"", "127.0.0.1"} {
		status, _ := past.ask(http.MethodGet, inside.String()+"/t/f/needs", "", func(q *http.Request) {
			q.Header.Set("X-Forwarded-For", forwarded)
		})
		if status != http.StatusUnauthorized {
			t.Errorf("past the proxy without a session: %d", status)
		}
	}
}

// freePort returns a port of this machine that is not in use, below those that the kernel assigns
// to connections and listeners, so that none of another test takes it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(12000 + rand.IntN(20000))
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port")
	return ""
}

// TestPageInBrowser checks on a phone that a person can approve a command, reject with a reason,
// retry, send a message, comment and see the comment handled, and look at a screen. The page
// continues after a kill of the supervisor and a restart of its own server. The report works
// without JavaScript.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("internal/web tries the page in a browser; this is the whole with a team")
	}
	b := webtest.Start(t)
	r := newFaultRig(t)
	r.asks("ann", `permission Bash --input '{"command":"make"}'`)
	r.asks("bob", `permission Bash --input '{"command":"rm -r /"}'`)
	r.teamctl("spawn", "cleo", "--backend", "tmux", "--", "sh", "-c", "echo the screen of cleo; until "+r.exe+" inbox --unread 2>/dev/null | grep '1.1 cart.go:2'; do sleep 0.3; done; "+
		r.exe+" review answer 1.1 --handled 'by the currency now'; exec sleep 10000")
	if err := os.WriteFile(filepath.Join(r.layout.Worktrees(), "cleo", "cart.go"), []byte("package cart\nvar digits = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.teamctl("task", "add", "deploy <script>alert(1)</script>")
	r.teamctl("task", "claim", "1")
	r.teamctl("task", "fail", "1", "--error", "2 of 40 failed")

	page := r.servePage()
	tab := b.Tab(t, webtest.Phone, webtest.Private())
	at := page.url + "/t/f"
	tab.Go(page.login)
	tab.Shows("need you")
	tab.Go(at + "/approval/1")
	tab.Press("approve")
	pause := time.NewTimer(500 * time.Millisecond)
	<-pause.C
	tab.Press("Tap again to approve")
	tab.Shows("request 1 of ann is approved")
	if x := r.approval(1); x.State != ledger.ApprovalApproved || x.AnsweredVia != "page" {
		t.Errorf("%+v", x)
	}
	tab.Go(at + "/approval/2")
	tab.Press("reject")
	tab.Until("a dialog", `document.activeElement.id === 'text'`)
	tab.Types("never")
	tab.Press("Send")
	tab.Shows("request 2 of bob is rejected")
	if x := r.approval(2); x.State != ledger.ApprovalRejected || x.Feedback != "never" {
		t.Errorf("%+v", x)
	}
	tab.Go(at + "/task/1")
	tab.Shows("deploy <script>alert(1)</script>")
	tab.Press("retry")
	tab.Until("an answer", `document.getElementById('said').textContent !== ''`)
	r.until("another attempt", func() bool { return strings.Contains(r.teamctl("events"), "task.retried") })
	tab.Go(at + "/member/bob")
	tab.Press("message")
	tab.Until("a dialog", `document.activeElement.id === 'text'`)
	tab.Types("thank you")
	tab.Press("Send")
	r.until("the message", func() bool { return strings.Contains(r.teamctl("message", "ls"), "thank you") })
	tab.Go(at + "/screen/cleo")
	tab.Shows("the screen of cleo")
	tab.Fits()
	tab.Go(at + "/changes/cleo")
	tab.Press("2")
	tab.Until("a dialog", `document.activeElement.id === 'text'`)
	tab.Types("why two?")
	r.until("the draft", func() bool { return strings.Contains(r.teamctl("review", "show", "cleo"), "why two?") })
	tab.Press("Keep the draft")
	tab.Shows("draft 1.1")
	tab.Press("send the comments")
	tab.Shows("answer: by the currency now")
	tab.Fits()
	tab.Fine(page.url)

	r.teamctl("spawn", "dan", "--backend", "tmux", "--", "sh", "-c", "echo 1 >a && git add a && git commit -q -m 'the work of dan'")
	r.until("the branch to be ready", func() bool {
		out, err := r.try(r.exe, "merge", "--ready", "--dry-run")
		return err == nil && strings.Contains(out, "dan would be merged")
	})
	tab.Go(at + "/changes")
	tab.Press("merge the ready branches")
	tab.Shows("dan would be merged into main")
	tab.Fits()
	pause.Reset(500 * time.Millisecond)
	<-pause.C
	webtest.Eval[any](tab, `document.getElementById('do-it').click()`)
	tab.Shows("dan merged into main")
	if log := r.command("git", "-C", "repo", "log", "--format=%s", "main"); !strings.Contains(log, "the work of dan") {
		t.Errorf("main has\n%s", log)
	}

	tab.Go(at + "/needs")
	tab.Shows("The team")
	r.kill(r.supervisor())
	r.asks("eve", `permission Bash --input '{"command":"make again"}'`)
	tab.Shows("make again")
	tab.Fine(page.url)
	page.stop()
	tab.Shows("The connection is lost since")
	r.teamctl("approvals", "approve", "3")
	again := r.servePage()
	if again.url != page.url {
		t.Fatalf("the page has moved to %s", again.url)
	}
	tab.Until("what happened meanwhile", `document.body.innerText.includes('Nothing needs you') && !document.getElementById('said').textContent.includes('lost')`)

	for name, args := range map[string][]string{"report.html": {"report", "--format", "html"}, "graph.svg": {"graph", "--format", "svg"}} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(r.teamctl(args...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	still := webtest.Phone
	still.NoScript = true
	file := b.Tab(t, still)
	for name, want := range map[string]string{"report.html": "deploy", "graph.svg": ""} {
		file.Go("file://" + filepath.Join(r.dir, name))
		if want != "" { // a single drawing may be larger than a phone
			file.Shows(want)
			file.Fits()
		}
		for _, w := range file.Wrong() {
			t.Errorf("%s: %s", name, w)
		}
	}
}
