package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/team"
)

// envServer makes the test binary act as a server.
const envServer = "TEAMCTL_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(envServer) != "" {
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		os.Exit(code)
	}))
}

type in struct {
	Text string `json:"text,omitempty"`
}

func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	text := func(t string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
	}
	add := func(name string, readOnly bool, f func(in) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "does " + name, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(_ context.Context, _ *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
				r, err := f(i)
				return r, nil, err
			})
	}
	add("echo", true, func(i in) (*sdk.CallToolResult, error) { return text("you said " + i.Text), nil })
	add("with.dots", false, func(in) (*sdk.CallToolResult, error) { return text("dotted"), nil })
	add("fail", false, func(in) (*sdk.CallToolResult, error) { return nil, fmt.Errorf("it cannot") })
	add("env", false, func(in) (*sdk.CallToolResult, error) { return text(strings.Join(os.Environ(), "\n")), nil })
	add("die", false, func(in) (*sdk.CallToolResult, error) { os.Exit(3); return nil, nil })
	add("spawn", false, func(in) (*sdk.CallToolResult, error) {
		c := exec.Command("setsid", "sleep", "1000")
		err := c.Start()
		if err != nil {
			return nil, err
		}
		return text(fmt.Sprint(c.Process.Pid)), nil
	})
	add("forget", false, func(in) (*sdk.CallToolResult, error) { s.RemoveTools("with.dots"); return text("forgotten"), nil })
	return s
}

// self returns the test binary as a server.
func self(t *testing.T) team.MCPServer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return team.MCPServer{Command: []string{exe}, Env: map[string]string{envServer: "1"}}
}

func call(t *testing.T, s *Set, name, input string) Result {
	t.Helper()
	r, err := s.Call(t.Context(), name, json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func list(t *testing.T, s *Set) (names []string) {
	t.Helper()
	tools, troubles := s.Tools(t.Context())
	if len(troubles) > 0 {
		t.Fatal(troubles)
	}
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// TestTools checks that servers of both kinds list and run their tools, and that failures and
// calls of removed tools are reported.
func TestTools(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		if r.Header.Get("X-Team") != "infra" {
			return nil
		}
		return newServer()
	}, nil))
	t.Cleanup(web.Close)
	for name, spec := range map[string]team.MCPServer{
		"stdio": self(t),
		"web":   {URL: web.URL, Headers: map[string]string{"X-Team": "infra"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(Options{Servers: map[string]team.MCPServer{name: spec}, Env: os.Environ()})
			t.Cleanup(s.Close)
			p := "mcp__" + name + "__"
			names := list(t, s)
			i := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, p+"with_dots_") })
			if len(names) != 7 || !slices.IsSorted(names) || i < 0 || !slices.Contains(names, p+"echo") {
				t.Fatal(names)
			}
			tools, _ := s.Tools(t.Context())
			for _, tool := range tools {
				if tool.ReadOnly != (tool.Name == p+"echo") || tool.Server != name || !json.Valid(tool.Schema) || !strings.HasPrefix(tool.Description, "does ") {
					t.Errorf("%+v", tool)
				}
			}
			if r := call(t, s, p+"echo", `{"text":"hi"}`); r != (Result{Text: "you said hi"}) {
				t.Error(r)
			}
			if r := call(t, s, names[i], `{}`); r.Text != "dotted" {
				t.Error(r)
			}
			if r := call(t, s, p+"fail", `{}`); !r.Failed || r.Text != "it cannot" {
				t.Error(r)
			}
			if r := call(t, s, p+"echo", `{"text":5}`); !r.Failed {
				t.Error(r)
			}
			if r := call(t, s, p+"none", `{}`); !r.Failed {
				t.Error(r)
			}
			if name == "stdio" { // the web server creates a new list for each session
				call(t, s, p+"forget", `{}`)
				for len(list(t, s)) == 7 { // until the notification arrives
					if t.Context().Err() != nil {
						t.Fatal("the list does not change")
					}
				}
				if r := call(t, s, names[i], `{}`); !r.Failed || !strings.Contains(r.Text, "is gone") {
					t.Error(r)
				}
			}
		})
	}
}

// TestDown checks that a server that exits is restarted, at once the first time and then after
// pauses that double, and is reported as down during a pause.
func TestDown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := New(Options{Servers: map[string]team.MCPServer{"x": self(t)}, Env: os.Environ(), Now: func() time.Time { return now }})
	t.Cleanup(s.Close)
	names := list(t, s)
	for i, pause := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
		r := call(t, s, "mcp__x__die", `{}`)
		if !r.Failed || !strings.Contains(r.Text, "may have happened") {
			t.Fatal(r)
		}
		if pause > 0 {
			if r := call(t, s, "mcp__x__echo", `{}`); !r.Failed || !strings.Contains(r.Text, "is down: ") {
				t.Errorf("%d: %+v", i, r)
			}
			tools, troubles := s.Tools(t.Context())
			if len(tools) != len(names) || len(troubles) != 1 || !strings.Contains(troubles[0], pause.String()) {
				t.Errorf("%d: %d tools, %v, want %s", i, len(tools), troubles, pause)
			}
			now = now.Add(pause)
		}
		if r := call(t, s, "mcp__x__echo", `{"text":"again"}`); r.Text != "you said again" {
			t.Fatalf("%d: %+v", i, r)
		}
	}
}

// TestCannotStart checks that servers that fail to start do not affect the others.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	s := New(Options{Servers: map[string]team.MCPServer{
		"good": self(t), "none": {Command: []string{filepath.Join(t.TempDir(), "none")}}, "mute": {Command: []string{"bash", "-c", "echo no config here >&2"}},
		"refused": {URL: "http://127.0.0.1:1"},
	}, Env: os.Environ()})
	t.Cleanup(s.Close)
	tools, troubles := s.Tools(t.Context())
	if len(tools) != 7 || len(troubles) != 3 || !strings.Contains(strings.Join(troubles, "\n"), "it wrote: no config here") {
		t.Errorf("%d tools, %q", len(tools), troubles)
	}
}

// TestChild checks that a server process receives no secrets, and exits with all processes it has
// started.
func TestChild(t *testing.T) {
	t.Parallel()
	var entered atomic.Bool
	var stderr bytes.Buffer
	s := New(Options{
		Servers: map[string]team.MCPServer{"x": self(t)}, Env: append(os.Environ(), "SECRET_KEY=sk-1", "PLAIN=yes"), Withhold: []string{"SECRET_KEY"},
		Dir: t.TempDir(), Stderr: &stderr, Enter: func() error { entered.Store(true); return nil },
	})
	list(t, s)
	env := call(t, s, "mcp__x__env", `{}`).Text
	if strings.Contains(env, "SECRET_KEY") || !strings.Contains(env, "PLAIN=yes") || !entered.Load() {
		t.Errorf("%v %s", entered.Load(), env)
	}
	pid := call(t, s, "mcp__x__spawn", `{}`).Text
	if _, err := os.Stat("/proc/" + pid); err != nil {
		t.Skip("no /proc")
	}
	s.Close()
	if b, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && strings.Contains(string(b), "sleep") {
		t.Errorf("process %s is left", pid)
	}
	if r := call(t, s, "mcp__x__echo", `{}`); !r.Failed {
		t.Error("a call succeeded after Close")
	}
}

// TestNames checks that the names offered to models are unique, short enough and map back to
// their tools.
func TestNames(t *testing.T) {
	t.Parallel()
	n := newNames("s")
	seen := map[string]bool{}
	for _, tool := range []string{"a", "a.b", "a_b", "a/b", strings.Repeat("x", 100), strings.Repeat("x", 101), "ü", ""} {
		name := n.give(tool)
		if seen[name] || len(name) > maxName || n.theirs[name] != tool {
			t.Errorf("%q: %q", tool, name)
		}
		seen[name] = true
	}
	if !seen["mcp__s__a"] || !seen["mcp__s__a_b"] {
		t.Error(seen)
	}
}
