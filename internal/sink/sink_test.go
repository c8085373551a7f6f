package sink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The complete truth table of the gate.
func TestGate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wants   bool
		channel string
		want    bool
	}{
		{true, "person", true},
		{true, "", true},
		{true, Internal, false},
		{false, "person", false},
		{false, "", false},
		{false, Internal, false},
	} {
		if got := External(tt.wants, tt.channel); got != tt.want {
			t.Errorf("wanted %v on %q: %v", tt.wants, tt.channel, got)
		}
		// The gate also applies to every delivery.
		out := filepath.Join(t.TempDir(), "out")
		s, err := Parse("command:cat > " + out)
		if err != nil {
			t.Fatal(err)
		}
		sent, err := s.Deliver(t.Context(), run.Book{}, tt.wants, tt.channel, Notice{What: "x"})
		_, statErr := os.Stat(out)
		if err != nil || sent != tt.want || (statErr == nil) != tt.want {
			t.Errorf("wanted %v on %q: sent %v, %v", tt.wants, tt.channel, sent, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{
		"desktop", "command:notify.sh --fast", "webhook:https://example.com/hook?x=1", "webhook:http://localhost:8080/x",
		"webhook:http://127.0.0.1/x", "webhook:http://[::1]:9/x", "ntfy:https://ntfy.sh/my-team", "ntfy:http://localhost:8080/sub/topic?auth=x",
		"kinds=approval,done desktop", "quiet=22:00-07:00 command:cat kinds=x", "kinds=task quiet=12:30-13:15 ntfy:https://ntfy.sh/x",
	} {
		if s, err := Parse(spec); err != nil || s.String() != spec {
			t.Errorf("%s: %s, %v", spec, s, err)
		}
	}
	for _, spec := range []string{
		"", "mail:me", "desktop:1", "command:", "command: ", "webhook:", "webhook:/path", "webhook:http://example.com/x",
		"webhook:http://10.0.0.1/", "webhook:http://localhost.example.com/", "webhook:http://127.0.0.1.example.com/", "webhook:ftp://localhost/",
		"webhook:https://me:secret@example.com/", "webhook:http://0.0.0.0/", "ntfy:https://ntfy.sh/", "ntfy:https://ntfy.sh", "ntfy:topic", "ntfy:http://ntfy.sh/x",
		"kinds=letters desktop", "kinds= desktop", "quiet=22:00 desktop", "quiet=25:00-01:00 desktop", "quiet=07:00-07:00 desktop", "kinds=task",
	} {
		if s, err := Parse(spec); err == nil {
			t.Errorf("%q is taken for %s", spec, s)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	n := Notice{Team: "demo", What: "approval.asked", Title: "a $(touch x)", Text: "b", At: 7}
	s, err := Parse("command:cat > " + out)
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := s.Deliver(t.Context(), run.Book{}, true, "person", n); !sent || err != nil {
		t.Fatalf("%v, %v", sent, err)
	}
	data, err := os.ReadFile(out)
	if want := `{"team":"demo","what":"approval.asked","title":"a $(touch x)","text":"b","at":7}` + "\n"; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
	bad, err := Parse("command:echo no such luck >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := bad.Deliver(t.Context(), run.Book{}, true, "person", n); sent || err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("%v, %v", sent, err)
	}
	hang, err := Parse("command:sleep 1000 & sleep 1000")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50e6)
	defer cancel()
	if sent, err := hang.Deliver(ctx, run.Book{}, true, "person", n); sent || err == nil {
		t.Errorf("%v, %v", sent, err)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body))
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://example.com/", http.StatusTemporaryRedirect)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer srv.Close()
	n := Notice{Team: "demo", What: "x"}
	raw, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/ok": "", "/away": "307", "/broken": "500"} {
		s, err := Parse("webhook:" + srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		sent, err := s.Deliver(t.Context(), run.Book{}, true, "person", n)
		if sent != (want == "") || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", path, sent, err)
		}
		if len(got) != 1 || got[0] != "POST "+path+" application/json "+string(raw) {
			t.Errorf("%s got %q", path, got)
		}
	}
	// A name that leads away from this machine is refused when it is dialled.
	away := Sink{kind: "webhook", target: "http://192.0.2.1:9/"}
	if sent, err := away.Deliver(t.Context(), run.Book{}, true, "person", n); sent || err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("%v, %v", sent, err)
	}
}

func TestDesktop(t *testing.T) {
	name, args := desktop(Notice{Title: "--title", Text: `-t <a href="x">ok</a> &lt;`})
	if name == "notify-send" && strings.Join(args, " ") != `--app-name=teamctl -- --title -t &lt;a href="x">ok&lt;/a> &amp;lt;` {
		t.Errorf("%s %q", name, args)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	for _, p := range []string{"notify-send", "osascript"} {
		if err := os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+out+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	s, err := Parse("desktop")
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := s.Deliver(t.Context(), run.Book{}, true, "person", Notice{Title: "title", Text: "text"}); !sent || err != nil {
		t.Fatalf("%v, %v", sent, err)
	}
	data, err := os.ReadFile(out)
	if err != nil || !strings.HasSuffix(string(data), "title\ntext\n") {
		t.Errorf("%q, %v", data, err)
	}
}

// What ntfy is sent has the topic in the body and nowhere else, and a link where there is one.
func TestNtfy(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Method + " " + r.URL.String() + " " + string(body)
	}))
	defer srv.Close()
	s, err := Parse("ntfy:" + srv.URL + "/sub/my-topic?auth=x")
	if err != nil {
		t.Fatal(err)
	}
	n := Notice{Team: "demo", What: "approval.asked", Kind: Approval, Title: "größer\n", Text: "b", Link: "https://page.example/t/demo"}
	if sent, err := s.Deliver(t.Context(), run.Book{}, true, "person", n); !sent || err != nil {
		t.Fatalf("%v, %v", sent, err)
	}
	want := `POST /sub/?auth=x {"topic":"my-topic","title":"größer\n","message":"b","priority":4,"tags":["raised_hand"],"click":"https://page.example/t/demo"}`
	if text := <-got; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// A sink takes the kinds that it is for, out of its quiet hours; a test always.
func TestTakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spec string
		kind Kind
		at   string
		want bool
	}{
		{"desktop", Task, "03:00", true},
		{"kinds=task desktop", Task, "03:00", true},
		{"kinds=task desktop", Done, "03:00", false},
		{"kinds=task desktop", "", "03:00", true},
		{"quiet=22:00-07:00 desktop", Task, "21:59", true},
		{"quiet=22:00-07:00 desktop", Task, "22:00", false},
		{"quiet=22:00-07:00 desktop", Task, "06:59", false},
		{"quiet=22:00-07:00 desktop", Task, "07:00", true},
		{"quiet=22:00-07:00 desktop", "", "23:00", true},
		{"quiet=12:00-13:00 desktop", Task, "12:30", false},
		{"quiet=12:00-13:00 desktop", Task, "13:30", true},
	} {
		s, err := Parse(tt.spec)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse("15:04", tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Takes(Notice{Kind: tt.kind}, at); got != tt.want {
			t.Errorf("%s takes %q at %s: %v", tt.spec, tt.kind, tt.at, got)
		}
	}
}

// No secret of an address is in an error or a log.
func TestMasked(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"desktop": "desktop",
		"webhook:https://example.com/hook?token=x":   "webhook:https://example.com/...",
		"kinds=task ntfy:https://ntfy.sh/my-secret":  "ntfy:https://ntfy.sh/...",
		"command:curl -H 'X: y' https://example.com": "command:curl ...",
		"command:notify.sh":                          "command:notify.sh",
		"command:TOKEN=x notify.sh":                  "command:...",
	} {
		s, err := Parse(spec)
		if err != nil || s.Masked() != want {
			t.Errorf("%s: %s, %v", spec, s.Masked(), err)
		}
	}
	srv := httptest.NewServer(nil)
	address := srv.URL
	srv.Close()
	s, err := Parse("webhook:" + address + "/secret?token=secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Deliver(t.Context(), run.Book{}, true, "person", Notice{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
