package opencode

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/adapter"
)

// deafTUI ignores the first request to show a session.
type deafTUI struct {
	mu         sync.Mutex
	home, talk string
	bodies     []string
}

func (d *deafTUI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bodies = append(d.bodies, r.URL.Path+" "+string(b))
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "true")
}

func (d *deafTUI) Capture(context.Context, int) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.bodies) < 2 {
		return d.home, nil
	}
	return d.talk, nil
}

// A request that a starting TUI missed is repeated until its screen shows the session, but never
// while its input box has text.
func TestSessionIsShownInTheEnd(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile("../../adapter/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	rules, _, err := adapter.BuiltinRules(adapter.Opencode)
	if err != nil {
		t.Fatal(err)
	}
	home, talk := read("home/opencode-1.18.33.txt"), read("screens/opencode-1.18.33-prompt.txt")
	for _, c := range []struct {
		name, home, talk string
		selected         int
	}{
		{"lost", home, talk, 2},
		{"heard", talk, talk, 1},
		{"a line is typed", strings.Replace(home, `Ask anything… "Fix a TODO in the codebase"`, "half a line", 1), talk, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, _ := openCodeRig(t)
			tui := &deafTUI{home: c.home, talk: c.talk}
			web := httptest.NewServer(tui)
			defer web.Close()
			r.facts.Link.URL = web.URL
			r.facts.See = func(ctx context.Context) (adapter.Seen, error) {
				screen, err := tui.Capture(ctx, 0)
				return rules.Look(screen, adapter.Version{}, time.Now()), err
			}
			s := &server{f: r.facts, report: r.Report, client: web.Client()}
			s.show(t.Context(), "ses_1")
			tui.mu.Lock()
			defer tui.mu.Unlock()
			if len(tui.bodies) != c.selected {
				t.Errorf("selected %d times: %q", len(tui.bodies), tui.bodies)
			}
			for _, b := range tui.bodies {
				if b != `/tui/select-session {"sessionID":"ses_1"}` {
					t.Errorf("asked %s", b)
				}
			}
		})
	}
}
