package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/internal/permit"
	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/team"
)

func TestShell(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wants(r.call("shell", map[string]any{"command": "pwd; echo err >&2; [ -t 0 ] || echo no terminal"}), false, r.Space.dir, "err", "no terminal", "[exit 0]")
	r.wants(r.call("shell", map[string]any{"command": "exit 3"}), true, "[exit 3]")
	r.wants(r.call("shell", map[string]any{"command": " "}), true, "command is empty")
	r.wants(r.call("shell", map[string]any{"command": "sleep 600", "timeout": 1}), true, "timed out after 1s")
	var seen strings.Builder
	out, err := r.tool("shell").Run(context.Background(), Call{Input: json.RawMessage(`{"command":"echo streamed"}`), Progress: func(s string) { seen.WriteString(s) }})
	if err != nil || seen.String() != "streamed\n" || out.Failed {
		t.Errorf("%q, %+v, %v", seen.String(), out, err)
	}
}

// TestShellLongOutput checks that a long output keeps its beginning and its end, and is complete
// in a file.
func TestShellLongOutput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.call("shell", map[string]any{"command": "echo first; seq 1 60000; echo last"})
	if len(o.Text) > MaxBytes+500 || !strings.HasPrefix(o.Text, "first\n1\n") || !strings.HasSuffix(o.Text, "60000\nlast\n[exit 0]") {
		t.Errorf("%d bytes: %.40q ... %q", len(o.Text), o.Text, o.Text[len(o.Text)-40:])
	}
	b, err := os.ReadFile(o.File)
	if err != nil || strings.Count(string(b), "\n") != 60002 || !strings.Contains(o.Text, o.File) {
		t.Errorf("the file has %d lines, %v", strings.Count(string(b), "\n"), err)
	}
}

// TestShellLeavesNothing checks that processes started by a command end with it, even if they are
// detached.
func TestShellLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "pid")
	r.wants(r.call("shell", map[string]any{"command": fmt.Sprintf("setsid sh -c 'trap \"\" TERM; echo $$ > %s; exec sleep 600' >/dev/null 2>&1 & while ! [ -s %s ]; do sleep 0.02; done", file, file)}), false)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	if id, err := proc.Identify(pid); err == nil && proc.Alive(id) {
		t.Errorf("process %d is left", pid)
	}
}

// TestShellInterrupted checks that the end of the turn ends a command, and that the tool then has
// no result.
func TestShellInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	began := func(string) { cancel(cause) }
	_, err := r.tool("shell").Run(ctx, Call{Input: json.RawMessage(`{"command":"echo go; sleep 600"}`), Progress: began})
	if !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

func TestBackground(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wants(r.call("shell", map[string]any{"command": "echo up; exec sleep 600", "background": true}), false, "Started b1")
	r.wants(r.call("shell", map[string]any{"command": "exit 4", "background": true}), false, "Started b2")
	if got := r.Background(); len(got) == 0 || got[0] != "b1: echo up; exec sleep 600" {
		t.Errorf("%q", got)
	}
	text := ""
	for !strings.Contains(text, "up") {
		text += r.call("shell_output", map[string]any{"id": "b1"}).Text
	}
	if strings.Count(text, "up\n") != 1 || !strings.Contains(text, "b1 runs") {
		t.Errorf("%q", text)
	}
	for {
		o := r.call("shell_output", map[string]any{"id": "b2"})
		if strings.Contains(o.Text, "runs") {
			runtime.Gosched()
			continue
		}
		r.wants(o, true, "[exit 4]")
		break
	}
	r.wants(r.call("shell_kill", map[string]any{"id": "b1"}), false, "b1 has ended")
	r.wants(r.call("shell_output", map[string]any{"id": "b9"}), true, "there is b1, b2")
	if got := r.Background(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	r.wants(r.call("shell", map[string]any{"command": "sleep 600", "background": true}), false) // Close ends it
}

// TestBackgroundEnded checks that a background command keeps no file however much it writes, and that of
// those that have ended the last twenty can be looked at, one that nobody has looked at before others.
func TestBackgroundEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	start := func(command string) (id string) {
		t.Helper()
		o := r.call("shell", map[string]any{"command": command, "background": true})
		r.wants(o, false, "Started "+o.Note)
		return o.Note
	}
	ended := func(id string) { // without a look at it
		t.Helper()
		j, err := r.back.find(id)
		if err != nil {
			t.Fatal(err)
		}
		<-j.done
	}
	long := start("seq 1 60000")
	ended(long)
	if got, err := os.ReadDir(r.cfg.Outputs); err != nil || len(got) > 0 {
		t.Errorf("it has left %v, %v", got, err)
	}
	r.wants(r.call("shell_output", map[string]any{"id": long}), false, "bytes left out", "60000\n[exit 0]")
	r.wants(r.call("shell_output", map[string]any{"id": long}), false, "[exit 0]")

	unseen := start("echo unseen")
	ended(unseen)
	runs := start("exec sleep 600")
	for range keptBackground {
		id := start("exit 0")
		ended(id)
		r.wants(r.call("shell_output", map[string]any{"id": id}), false, "[exit 0]")
	}
	start("exit 0")
	r.wants(r.call("shell_output", map[string]any{"id": long}), true, "no command \"b1\"")
	r.wants(r.call("shell_output", map[string]any{"id": unseen}), false, "unseen\n[exit 0]")
	r.wants(r.call("shell_kill", map[string]any{"id": runs}), false, "has ended")
	if got := len(r.back.list); got > keptBackground+2 { // and the one that ran, and the newest
		t.Errorf("%d commands are kept", got)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		_, _ = w.Write([]byte("<html><head><style>p{}</style><title>T</title></head><body><p>Gr\xfc\xdfe &amp; more</p><script>bad()</script></body>"))
	})
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("x\n", 1<<20))) })
	mux.HandleFunc("/bin", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 1, 2}) })
	mux.HandleFunc("/evil", func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://evil.example./", http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/loop", http.StatusFound) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	get := func(r *rig, path string) Out { return r.call("fetch", map[string]any{"url": srv.URL + path}) }

	closed := newRig(t)
	closed.wants(get(closed, "/page"), true, "its address is private")
	closed.wants(closed.call("fetch", map[string]any{"url": "http://[::1]:1/"}), true, "its address is private")
	r := newRig(t, func(c *Config) {
		c.Rules = rulesOf(team.Permissions{Allow: []team.PermissionRule{rule("fetch:127.0.0.1", "", "")}, Deny: []team.PermissionRule{rule("fetch:evil.example", "", "")}})
	})
	r.wants(get(r, "/page"), false, "[200 OK", "T\n\nGr\u00fc\u00dfe & more")
	if o := get(r, "/page"); strings.Contains(o.Text, "bad()") || strings.Contains(o.Text, "p{}") {
		t.Errorf("%q", o.Text)
	}
	if o := get(r, "/big"); o.File == "" || len(o.Text) > MaxBytes+300 {
		t.Errorf("%d bytes, file %q", len(o.Text), o.File)
	}
	r.wants(get(r, "/bin"), true, "is not text")
	r.wants(get(r, "/loop"), true, "5 redirects")
	r.wants(get(r, "/evil"), true, "redirected to evil.example., which a rule of the team denies")
	r.wants(get(r, "/none"), true, "404")
	for _, u := range []string{"file:///etc/passwd", "ftp://x/y", "http://", "http://a:b@127.0.0.1/"} {
		r.wants(r.call("fetch", map[string]any{"url": u}), true)
	}
	for addr, want := range map[string]bool{
		"127.0.0.1": false, "10.1.2.3": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.1.1": false, "0.0.0.0": false, "::1": false,
		"fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "::7f00:1": false, "fec0::1": false, "224.0.0.1": false, "255.255.255.255": false,
		"8.8.8.8": true, "2606:4700::1111": true,
	} {
		if got := public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s is public: %v", addr, got)
		}
	}
}

// TestGate checks the decision in every mode, with and without rules. The order is: forbidden
// paths, deny rules, the mode, allow rules, a person.
func TestGate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.file("f", "")
	r.file("secrets/k", "")
	modes := []team.Mode{team.ModeDefault, team.ModeAcceptEdits, team.ModePlan, team.ModeDelegate, team.ModeDontAsk, team.ModeBypass}
	rules := team.Permissions{
		Deny:  []team.PermissionRule{rule("*", "secrets/**", ""), rule("shell", "", "rm *"), rule("fetch:evil.example", "", "")},
		Allow: []team.PermissionRule{rule("edit", "*.md", ""), rule("shell", "", "go test *"), rule("fetch:docs.example", "", "")},
	}
	for _, c := range []struct {
		tool, input string
		want        string // one letter per mode: a allow, ? ask, d deny
		rules       team.Permissions
	}{
		{"read", `{"path":"f"}`, "aaadaa", team.Permissions{}},
		{"read", `{"path":"/etc/hosts"}`, "???dda", team.Permissions{}},
		{"read", `{"path":"/proc/self/environ"}`, "dddddd", team.Permissions{}},
		{"edit", `{"path":"f","edits":[]}`, "?addda", team.Permissions{}},
		{"write", `{"path":"/tmp/x","content":""}`, "dddddd", team.Permissions{}},
		{"shell", `{"command":"make"}`, "??ddda", team.Permissions{}},
		{"fetch", `{"url":"https://docs.example/"}`, "??ddda", team.Permissions{}},
		{"todo", `{"items":[]}`, "aaaaaa", team.Permissions{}},

		{"read", `{"path":"secrets/k"}`, "dddddd", rules},
		{"edit", `{"path":"secrets/k","edits":[]}`, "dddddd", rules},
		{"edit", `{"path":"a.md","edits":[]}`, "aaddaa", rules},
		{"shell", `{"command":"go test ./..."}`, "aaddaa", rules},
		{"shell", `{"command":"go test ./... && rm -rf x"}`, "dddddd", rules},
		{"shell", `{"command":"make"}`, "??ddda", rules},
		{"fetch", `{"url":"https://docs.example/"}`, "aaddaa", rules},
		{"fetch", `{"url":"https://evil.example/"}`, "dddddd", rules},
		{"fetch", `{"url":"https://Evil.example.:8443/"}`, "dddddd", rules},
		{"write", `{"path":"/tmp/x","content":""}`, "dddddd", team.Permissions{Allow: []team.PermissionRule{rule("edit", "", "")}}},
		{"write", `{"path":"/tmp/x","content":""}`, "aaddaa", team.Permissions{Allow: []team.PermissionRule{rule("edit", "/tmp/*", "")}}},
		{"write", `{"path":"/proc/self/environ","content":""}`, "dddddd", team.Permissions{Allow: []team.PermissionRule{rule("*", "/**", "")}}},
		{"fetch", `{"url":"https://other.example/"}`, "??ddda", rules},
	} {
		got := ""
		for _, m := range modes {
			d := r.judge(Rules{Permissions: c.rules, Member: "dev", Mode: m}, r.tool(c.tool), json.RawMessage(c.input))
			got += map[Verdict]string{Allow: "a", Ask: "?", Deny: "d"}[d.Verdict]
			if d.Why == "" {
				t.Errorf("%s %s in %s: no reason", c.tool, c.input, m)
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, got, c.want)
		}
	}
	for _, c := range []struct{ tool, input, why string }{
		{"read", `{"path":"/proc/self/environ"}`, "/proc/self/environ may not be opened"},
		{"shell", `{"command":"rm x"}`, "denied: tool shell, command rm *"},
		{"write", `{"path":"/tmp/x","content":""}`, "it is outside the worktree, and no rule allows its path"},
	} {
		if d := r.judge(Rules{Permissions: rules, Member: "dev", Mode: team.ModeBypass}, r.tool(c.tool), json.RawMessage(c.input)); d.Why != c.why {
			t.Errorf("%s %s: %q, want %q", c.tool, c.input, d.Why, c.why)
		}
	}
	q := Rules{Permissions: rules, Member: "dev"}
	if q.ofHost("docs.example") != permit.Allow || q.ofHost("other.example") != permit.Ask || q.ofHost("EVIL.example.") != permit.Deny {
		t.Error("hosts with private addresses are allowed by the rules that name them, and by no other")
	}
}

// TestFilter checks which tools a policy keeps: those are listed in requests, and no others can
// be called.
func TestFilter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	all := append(r.Tools(), Tool{Class: Team}, Tool{Class: Session}, Tool{Class: MCP})
	n := len(r.Tools())
	all[n].Name, all[n+1].Name, all[n+2].Name = "TaskList", "session_spawn", "mcp__git__log"
	names := func(p Policy) string {
		var out []string
		for _, t := range p.Filter(all) {
			out = append(out, t.Name)
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		p    Policy
		want string
	}{
		{Policy{Kind: team.SessionTeammate}, "TaskList edit fetch glob grep ls mcp__git__log read session_spawn shell shell_kill shell_output todo write"},
		{Policy{Kind: team.SessionSubagent}, "TaskList edit glob grep ls read todo write"},
		{Policy{Kind: team.SessionCron, Spec: team.Filter{Allow: []string{"read", "shell", "shell_*"}}}, "read shell shell_kill shell_output"},
		{Policy{Kind: team.SessionTeammate, Spec: team.Filter{Deny: []string{"*"}}}, ""},
		{Policy{Kind: team.SessionTeammate, Spec: team.Filter{Allow: []string{}}}, ""},
		{Policy{Kind: team.SessionTeammate, Mode: team.ModePlan}, "TaskList glob grep ls read todo"},
		{Policy{Kind: team.SessionLead, Mode: team.ModeDelegate}, "TaskList session_spawn todo"},
	} {
		if got := names(c.p); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
}

// TestCommandKnowsItsTask checks that the task is looked up when a command begins, not before.
func TestCommandKnowsItsTask(t *testing.T) {
	t.Parallel()
	n, broken := 0, false
	r := newRig(t, func(c *Config) {
		c.Shell.Task = func(context.Context) ([]string, error) {
			if n++; broken {
				return nil, errors.New("no ledger")
			}
			return []string{fmt.Sprintf("TEAMCTL_TASK_ID=%d", n), "TEAMCTL_TASK_ATTEMPT=2"}, nil
		}
	})
	command := map[string]any{"command": `echo "task $TEAMCTL_TASK_ID, attempt $TEAMCTL_TASK_ATTEMPT"`}
	r.wants(r.call("shell", command), false, "task 1, attempt 2")
	r.wants(r.call("shell", command), false, "task 2, attempt 2")
	broken = true
	if _, err := r.tool("shell").Run(context.Background(), Call{Input: json.RawMessage(`{"command":"echo ran"}`)}); err == nil {
		t.Error("a command ran without the variables of its task")
	}
}
