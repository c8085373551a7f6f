package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/view"
)

// lines reads a stream of events.
func (r *rig) lines(path string) (next func() string, close func()) {
	r.Helper()
	res := r.do(http.MethodGet, path, "", nil)
	if res.StatusCode != http.StatusOK {
		r.Fatal(res.Status)
	}
	in := bufio.NewScanner(res.Body)
	return func() string {
		r.Helper()
		for in.Scan() {
			if text, ok := strings.CutPrefix(in.Text(), "data: "); ok {
				return text
			}
		}
		return ""
	}, func() { _ = res.Body.Close() }
}

// A change reaches every client, at most four times a second, and a new server has the sessions of
// the one before.
func TestEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	began := time.Now()
	next, stop := r.lines("/t/demo/events")
	defer stop()
	if text := next(); text != `{"line":"demo !1 ✗1 0/1","needs":1}` {
		t.Error(text)
	}
	if status, text := r.post(r.approval(), nil); status != http.StatusOK {
		t.Fatal(status, text)
	}
	if text := next(); text != `{"line":"demo ✗1 0/1","needs":0}` {
		t.Error(text)
	}
	if took := time.Since(began); took < tick {
		t.Errorf("two events within %v", took)
	}
	r.srv.CloseClientConnections()
	if text := next(); text != "" {
		t.Error(text)
	}
	r.s = &Server{Home: r.f, Sessions: r.store}
	r.serve()
	again, stopAgain := r.lines("/t/demo/events")
	defer stopAgain()
	if text := again(); text != `{"line":"demo ✗1 0/1","needs":0}` {
		t.Error(text)
	}
}

// TestTeamsEvents checks that a client with the list of teams is told of a line that has changed, of a team
// that comes or goes, at most four times a second, and of nothing else.
func TestTeamsEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	began := time.Now()
	next, stop := r.lines("/events")
	defer stop()
	other := view.Glance{Team: "other", Total: 2}
	for _, x := range []struct {
		list []view.Glance
		want string
	}{
		{nil, `{"lines":["demo"]}`},
		{[]view.Glance{{Team: "demo"}, other}, `{"lines":["demo","other 0/2"]}`},
		{[]view.Glance{{Team: "demo", Cost: "$1"}, other}, ""}, // the list does not show it
		{[]view.Glance{{Team: "demo", Needs: 1}, other}, `{"lines":["demo !1","other 0/2"]}`},
		{[]view.Glance{other}, `{"lines":["other 0/2"]}`},
	} {
		if x.list != nil {
			r.f.list(x.list...)
		}
		if x.want != "" {
			if text := next(); text != x.want {
				t.Fatalf("%s, not %s", text, x.want)
			}
		}
	}
	if took := time.Since(began); took < 3*tick {
		t.Errorf("four events within %v", took)
	}
	part := func(r *http.Request) { r.Header.Set(partHeader, "1") }
	if res := r.do(http.MethodGet, "/", "", part); res.StatusCode != http.StatusOK {
		t.Errorf("an open list of one team: %s %s", res.Status, res.Header.Get("Location"))
	}
	r.token = ""
	if res := r.do(http.MethodGet, "/events", "", nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: %s", res.Status)
	}
}

// The screen of a member is text and colours.
func TestScreen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	next, stop := r.lines("/t/demo/screen/ann/events")
	defer stop()
	var got struct{ Lines [][]string }
	if err := json.Unmarshal([]byte(next()), &got); err != nil || fmt.Sprintf("%q", got.Lines) != fmt.Sprintf("%q", [][]string{{"f1", evil}, {"", "two"}}) {
		t.Errorf("%q, %v", got.Lines, err)
	}
}

// TestLastScreen checks that what a member has shown last is seen, however soon it ended after that.
func TestLastScreen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.f.last = "out of memory"
	for range 12 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			next, stop := r.lines("/t/demo/screen/ann/events")
			defer stop()
			shown, text := "", next()
			for ; text != "" && !strings.Contains(text, `"why"`); text = next() {
				shown = text
			}
			if !strings.Contains(shown, r.f.last) || !strings.Contains(text, "ann has ended") {
				t.Errorf("%s, and then %s", shown, text)
			}
		})
	}
}
