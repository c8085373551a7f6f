package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/internal/pause"
	"github.com/teamctl/teamctl/internal/strays"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// built has both programs, in a directory of its own.
type built struct {
	t              *testing.T
	dir            string
	teamctl, small string
}

// programs is the directory that has them.
var programs string

func TestMain(m *testing.M) { os.Exit(buildAnd(m.Run)) }

func buildAnd(run func() int) int {
	dir, err := os.MkdirTemp(strays.Short(), "tp")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	teamctl, err := strays.Program(dir)
	if made := filepath.Dir(teamctl); err == nil && made != dir {
		// Copied, since the two directories may be on different file systems.
		err = errors.Join(copyProgram(made, dir, "teamctl"), copyProgram(made, dir, bundle.SmallName))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	programs = dir
	return run()
}

func copyProgram(from, to, name string) error {
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return strays.WriteProgram(filepath.Join(to, name), data)
}

// build returns both programs under names that the test may change.
func build(t *testing.T) built {
	t.Helper()
	dir, err := os.MkdirTemp(strays.Short(), "tc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := strays.Gone(strays.Below(dir)); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	for _, name := range []string{"teamctl", bundle.SmallName} {
		if err := os.Link(filepath.Join(programs, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return built{t, dir, filepath.Join(dir, "teamctl"), filepath.Join(dir, bundle.SmallName)}
}

// world is a team with ann, a Claude Code that does nothing by itself.
type world struct {
	built
	dir     string
	environ []string // of a person
	layout  team.Layout
	hooks   map[string]string // the variables of ann's hooks
	command map[string]string // the shell command of each of ann's hooks
	said    string            // by the last hook
	files   string            // where inputs say that the program keeps its transcript
}

const fakeClaude = `#!/bin/sh
case "$1" in
--version) echo "2.1.329 (Claude Code)" ;;
*) exec sleep 1000 ;;
esac
`

func (b built) world(name string) *world {
	b.t.Helper()
	w := &world{built: b, dir: filepath.Join(b.dir, name), command: map[string]string{}}
	w.files = filepath.Join(w.dir, "files")
	if err := os.MkdirAll(w.files, 0o700); err != nil {
		b.t.Fatal(err)
	}
	program := filepath.Join(w.dir, "claude")
	if err := strays.WriteProgram(program, []byte(fakeClaude)); err != nil {
		b.t.Fatal(err)
	}
	w.layout = team.Home{Dir: filepath.Join(w.dir, "home")}.Team("demo")
	w.environ = append(os.Environ(), "HOME="+w.files, team.EnvHome+"="+w.layout.Home.Dir, team.EnvRuntime+"="+filepath.Join(w.dir, "r"), "TMUX=", team.EnvAgentID+"=", team.EnvGen+"=")
	w.run("create", "demo")
	b.t.Cleanup(func() { w.run("delete", "demo", "--force") })
	w.run("spawn", "ann", "--agent", "claude", "--backend", "pty", "--env", "TEAMCTL_PROGRAM_CLAUDE="+program)
	var l backends.Launch
	at := w.layout.Bundle("ann")
	w.read(at.Launch(), &l)
	w.hooks = map[string]string{}
	for _, kv := range append(l.Env, team.EnvGen+"="+l.Generation) {
		name, value, _ := strings.Cut(kv, "=")
		w.hooks[name] = value
	}
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	w.read(filepath.Join(string(at), "settings.json"), &settings)
	for event, groups := range settings.Hooks {
		w.command[event] = groups[0].Hooks[0].Command
	}
	return w
}

func (w *world) read(path string, v any) {
	w.t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// run is a command of a person.
func (w *world) run(args ...string) {
	w.t.Helper()
	c := exec.Command(w.teamctl, args...)
	c.Dir, c.Env = w.dir, w.environ
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("teamctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// supervisor returns the process of the team's supervisor.
func (w *world) supervisor() int {
	w.t.Helper()
	data, err := os.ReadFile(w.layout.SupervisorPID())
	if err != nil {
		w.t.Fatal(err)
	}
	pid, _, err := team.ParseSupervisorPID(data)
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

func (w *world) signal(s syscall.Signal) {
	w.t.Helper()
	if err := syscall.Kill(w.supervisor(), s); err != nil {
		w.t.Fatal(err)
	}
}

// outcome is what a hook shows, and what it has recorded.
type outcome struct {
	Stdout, Stderr string
	Status         int
	Files          map[string]string
	Member         string
	Mail           []string
}

// call is one call of a hook. FILES in its input is where the program keeps files.
type call struct {
	name       string
	cli, event string
	input      string
	set        map[string]string // variables that differ from ann's; "" is none at all
	before     func(*testing.T, *world)
	after      func(*testing.T, *world)
	version    string // with which the small program is called; "" is its own
	other      bool   // another teamctl than the supervisor's
	// quiet: the small program does it alone. The others run teamctl.
	quiet bool
	gives string // a text that the answer has
	heard bool   // before the next call, the ledger has whether it works
}

// inits are lines of the runtime about packages, and large shows that teamctl has started.
var (
	inits = regexp.MustCompile(`(?m)^init \S+ @.*\n`)
	large = regexp.MustCompile(`(?m)^init database/sql @`)
	uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	unix  = regexp.MustCompile(`"(joinedAt|startedAt|activityAt|lastSeenAt|at|pid|paneId|tokenHash)":("[^"]*"|\d+)`)
)

// same replaces what differs between two worlds in which the same happens.
func (w *world) same(s string) string {
	s = strings.ReplaceAll(s, w.dir, "DIR")
	s = strings.ReplaceAll(s, filepath.Base(w.layout.Runtime()), "RUNTIME")
	return unix.ReplaceAllString(times.ReplaceAllString(uuids.ReplaceAllString(s, "UUID"), "TIME"), `"$1":0`)
}

// soon is a time in which the supervisor has taken up a request that it does not find too old. Whoever
// takes longer on a loaded machine may run teamctl.
const soon = hookcall.Within / 2

// hook runs a hook by teamctl, or by the small program. ran: it has run teamctl, within took.
func (w *world) hook(c call, small bool) (o outcome, ran bool, took time.Duration) {
	w.t.Helper()
	teamctl := w.teamctl
	if c.other {
		teamctl = filepath.Join(w.built.dir, "other")
	}
	argv := []string{teamctl, "hook", c.cli, c.event}
	if small {
		version := bundle.Version
		if c.version != "" {
			version = c.version
		}
		argv = append([]string{w.small, version}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = w.files
	for name, value := range w.hooks {
		if other, changed := c.set[name]; !changed {
			cmd.Env = append(cmd.Env, name+"="+value)
		} else if other != "" {
			cmd.Env = append(cmd.Env, name+"="+other)
		}
	}
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	for name, value := range c.set {
		if _, known := w.hooks[name]; !known {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.ReplaceAll(c.input, "FILES", w.files)), &stdout, &stderr
	var exit *exec.ExitError
	began := time.Now()
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	took = time.Since(began)
	w.said = stdout.String()
	ran = large.Match(stderr.Bytes())
	o = outcome{Stdout: w.same(stdout.String()), Stderr: w.same(inits.ReplaceAllString(stderr.String(), "")), Status: cmd.ProcessState.ExitCode(), Files: map[string]string{}}
	for _, name := range []string{"conversation.json", "seen.json", "usage.json", "given.json"} {
		data, err := os.ReadFile(filepath.Join(string(w.layout.Bundle("ann")), name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
		o.Files[name] = w.same(string(data))
	}
	return o, ran, took
}

// answers calls the hook until it gives what it has to. One that runs out of its time on a busy
// machine gives nothing, and its mail goes at the next call.
func (w *world) answers(c call, small bool) (o outcome, ran bool, took time.Duration) {
	w.t.Helper()
	const within = 3 * time.Second // of a hook, see internal/courier/hook
	for range 100 {
		o, ran, took = w.hook(c, small)
		if strings.Contains(o.Stdout, c.gives) || took < within {
			return o, ran, took
		}
	}
	w.t.Fatalf("the hook took %s and gave %q, a hundred times; want %q", took, o.Stdout, c.gives)
	return o, ran, took
}

// recorded adds what the ledger has of ann. It reports whether the supervisor has taken in what the
// last hook has seen.
func (w *world) recorded(ctx context.Context, o *outcome) bool {
	w.t.Helper()
	db, err := ledger.Open(ctx, w.layout.Ledger(), ledger.Options{LockPath: w.layout.LedgerLock()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}()
	led := ledger.New(db, nil)
	m, err := led.Member(ctx, "ann")
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Member = w.same(string(data))
	waiting, err := led.Waiting(ctx, m.SessionKey)
	if err != nil {
		w.t.Fatal(err)
	}
	o.Mail = nil
	for _, d := range waiting {
		o.Mail = append(o.Mail, d.Message.Text+": handed over "+strconv.FormatBool(d.Delivery.State.HandedOver()))
	}
	var last struct{ Seen team.Observation }
	w.read(filepath.Join(string(w.layout.Bundle("ann")), "seen.json"), &last)
	return (m.Activity == team.Working) == (last.Seen.Activity == team.Working)
}

const (
	inC      = `{"session_id":"c1","transcript_path":"FILES/c1.jsonl","permission_mode":"acceptEdits"`
	inG      = `{"session_id":"g1","transcript_path":"FILES/g1.jsonl","timestamp":"2026-01-01T00:00:00Z"`
	inX      = `{"session_id":"x1","turn_id":"t1","transcript_path":"FILES/x1.jsonl"`
	answered = `{"type":"assistant","message":{"id":"m1","role":"assistant","stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":5},"content":[{"type":"tool_use","name":"Bash"}]}}` + "\n"
)

// has writes a file of the program.
func has(name, text string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// mail posts a message to ann.
func mail(text string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		w.run("send", "ann", text)
	}
}

// takes writes what the model gets of the last answer to the transcript.
func takes(t *testing.T, w *world) {
	t.Helper()
	var out struct {
		Out struct{ AdditionalContext string } `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(w.said), &out); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{"type": "attachment", "attachment": map[string]any{
		"type": "hook_additional_context", "content": []string{out.Out.AdditionalContext}, "hookEvent": "PostToolUse"}})
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(w.files, "c1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	has("c1.jsonl", string(was)+string(line)+"\n"+strings.ReplaceAll(answered, "m1", team.NewUUID()))(t, w)
}

// calls are calls of hooks, as the programs make them, in an order in which they may come.
func calls() []call {
	tool := `,"tool_name":"Bash","tool_input":{"command":"true"}`
	return []call{
		{name: "a session starts", cli: "claude", event: "SessionStart", input: inC + `,"source":"startup"}`, quiet: true},
		{name: "a turn begins", cli: "claude", event: "UserPromptSubmit", input: inC + `,"prompt":"go"}`, quiet: true},
		{name: "before a tool", cli: "claude", event: "PreToolUse", input: inC + tool + `}`, quiet: true, heard: true},
		{name: "after a tool, without a transcript", cli: "claude", event: "PostToolUse", input: strings.Replace(inC, "c1.jsonl", "none.jsonl", 1) + tool + `,"tool_response":"ok"}`},
		{name: "after a tool", cli: "claude", event: "PostToolUse", input: inC + tool + `,"tool_response":"ok"}`, before: has("c1.jsonl", answered), quiet: true},
		{name: "a long result", cli: "claude", event: "PostToolUse", input: inC + tool + `,"tool_response":"` + strings.Repeat("x", 900<<10) + `"}`, quiet: true},
		{name: "a result that is too long", cli: "claude", event: "PostToolUse", input: `{"tool_response":"` + strings.Repeat("x", 3<<20) + `",` + inC[1:] + tool + `}`},
		{name: "a notification", cli: "claude", event: "Notification", input: inC + `,"notification_type":"permission_prompt","message":"may it?"}`, quiet: true},
		{name: "a helper's tool", cli: "claude", event: "PreToolUse", input: inC + tool + `,"agent_id":"h1"}`, quiet: true},
		{name: "the end of a turn", cli: "claude", event: "Stop", input: inC + `,"last_assistant_message":"done"}`, quiet: true, heard: true},
		{name: "a turn that fails", cli: "claude", event: "StopFailure", input: inC + `,"error":"server_error","last_assistant_message":"API Error"}`, quiet: true},
		{name: "mail, after a tool", cli: "claude", event: "PostToolUse", input: inC + tool + `}`, before: mail("first words"), gives: "first words", after: takes},
		{name: "mail that has arrived", cli: "claude", event: "PreToolUse", input: inC + tool + `}`},
		{name: "no more mail", cli: "claude", event: "PostToolUse", input: inC + tool + `}`, quiet: true},
		{name: "mail, long input", cli: "claude", event: "UserPromptSubmit", input: `{"prompt":"` + strings.Repeat("x", 3<<20) + `",` + inC[1:] + `}`, before: mail("second words"), gives: "second words", after: takes},
		{name: "that has arrived as well", cli: "claude", event: "PreToolUse", input: inC + tool + `}`},
		{name: "mail, at the end of a turn", cli: "claude", event: "Stop", input: inC + `,"last_assistant_message":"so"}`, before: mail("last words"), gives: "last words"},
		{name: "no hook of the program", cli: "claude", event: "AfterTool", input: inC + `}`},
		{name: "no program", cli: "emacs", event: "PreToolUse", input: inC + `}`},
	}
}

// quietCalls are those of an agent without mail.
func quietCalls() []call {
	tool := `,"tool_name":"shell","tool_input":{"command":"true"}`
	return []call{
		{name: "codex starts", cli: "codex", event: "SessionStart", input: inX + `,"source":"startup"}`, quiet: true},
		{name: "codex, before a tool", cli: "codex", event: "PreToolUse", input: inX + tool + `}`, quiet: true},
		{name: "codex, after a tool", cli: "codex", event: "PostToolUse", input: inX + tool + `}`, quiet: true},
		{name: "codex is interrupted", cli: "codex", event: "Interrupt", input: inX + `}`, quiet: true},
		{name: "gemini begins", cli: "gemini", event: "BeforeAgent", input: inG + `,"prompt":"go"}`, quiet: true},
		{name: "gemini, after a tool", cli: "gemini", event: "AfterTool", input: inG + tool + `}`, quiet: true,
			before: has("g1.jsonl", `{"id":"a","type":"gemini","tokens":{"input":3,"output":2}}`+"\n")},
		{name: "gemini ends its turn", cli: "gemini", event: "AfterAgent", input: inG + `,"prompt_response":"so"}`, quiet: true},
		{name: "a relative transcript", cli: "gemini", event: "AfterTool", input: `{"session_id":"g1","transcript_path":"g1.jsonl"}`},
		{name: "a long transcript", cli: "claude", event: "PostToolUse", input: `{"session_id":"c2","transcript_path":"FILES/c2.jsonl"}`,
			before: has("c2.jsonl", strings.Repeat(answered, 6000))},
		{name: "and its next line", cli: "claude", event: "PostToolUse", input: `{"session_id":"c2","transcript_path":"FILES/c2.jsonl"}`, quiet: true},
		{name: "no JSON", cli: "claude", event: "PreToolUse", input: `{"session_id":"c1",`, quiet: true},
		{name: "nothing", cli: "claude", event: "PreToolUse", quiet: true},
		{name: "a token that is hidden", cli: "gemini", event: "BeforeTool", input: inG + `}`, set: map[string]string{team.EnvToken: ""}, quiet: true},
		{name: "a wrong token", cli: "claude", event: "PreToolUse", input: inC + `}`, set: map[string]string{team.EnvToken: "none"}},
		{name: "a session of a person", cli: "claude", event: "PreToolUse", input: inC + `}`, set: map[string]string{team.EnvAgentID: ""}},
		{name: "a member of another team", cli: "claude", event: "PreToolUse", input: inC + `}`, set: map[string]string{team.EnvAgentID: "ann@none"}},
		{name: "errors are explained", cli: "claude", event: "PreToolUse", input: inC + `}`, set: map[string]string{"TEAMCTL_HOOK_DEBUG": "1", team.EnvToken: "none"}},
		{name: "a small program of another version", cli: "claude", event: "PreToolUse", input: inC + `}`, version: "0"},
		{name: "another teamctl", cli: "claude", event: "PreToolUse", input: inC + `}`, other: true},
		{name: "the end of the session", cli: "claude", event: "SessionEnd", input: inC + `}`, before: has("c1.jsonl", answered), quiet: true},
		{name: "a turn after that", cli: "claude", event: "PreToolUse", input: inC + `}`, quiet: true, heard: true},
		{name: "a supervisor that is stopped", cli: "claude", event: "PreToolUse", input: inC + `,"turn_id":"1"}`,
			before: func(_ *testing.T, w *world) { w.signal(syscall.SIGSTOP) }, after: func(_ *testing.T, w *world) { w.signal(syscall.SIGCONT) }},
		{name: "a supervisor that goes on", cli: "claude", event: "Stop", input: inC + `}`, quiet: true, heard: true},
		{name: "a supervisor that was killed", cli: "claude", event: "PreToolUse", input: inC + `}`, before: killed},
		{name: "a socket of nobody", cli: "claude", event: "PreToolUse", input: inC + `}`},
		{name: "no answer", cli: "claude", event: "Stop", input: inC + `}`, before: listens("")},
		{name: "an unknown path", cli: "claude", event: "PreToolUse", input: inC + `}`, before: listens("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")},
		{name: "another answer", cli: "claude", event: "PreToolUse", input: inC + `}`,
			before: listens("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: teamctl-hook\r\n\r\n\x00\x00\x00\x06\x00false")},
		{name: "half of an answer", cli: "claude", event: "PreToolUse", input: inC + `}`,
			before: listens("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: teamctl-hook\r\n\r\n\x00\x00\x00\x05\x00tr")},
		{name: "a new supervisor", cli: "claude", event: "PreToolUse", input: inC + `}`, quiet: true, before: func(_ *testing.T, w *world) { w.run("ps") }},
	}
}

// killed kills the supervisor.
func killed(t *testing.T, w *world) {
	t.Helper()
	pid := w.supervisor()
	w.signal(syscall.SIGKILL)
	if err := strays.Gone(func() []int {
		if slices.Contains(strays.Below(w.dir)(), pid) {
			return []int{pid}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// listens puts a listener in the place of the supervisor, which reads a request and says answer, for one
// call.
func listens(answer string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		path := filepath.Join(w.dir, "r", filepath.Base(w.layout.Runtime()), filepath.Base(w.layout.Socket()))
		_ = os.Remove(path)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { _ = l.Close() }()
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
			buf := make([]byte, 1<<16)
			if _, err := c.Read(buf); err == nil {
				_, _ = io.WriteString(c, answer)
			}
		}()
		t.Cleanup(func() { _ = l.Close() })
	}
}

// TestHookOfBothPrograms: the small program shows and records what teamctl does, and runs teamctl
// exactly if the supervisor does not do the work.
func TestHookOfBothPrograms(t *testing.T) {
	b := build(t)
	data, err := os.ReadFile(b.teamctl)
	if err != nil {
		t.Fatal(err)
	}
	if err := strays.WriteProgram(filepath.Join(b.dir, "other"), data); err != nil {
		t.Fatal(err)
	}
	one, two := b.world("1"), b.world("2")
	for _, c := range append(quietCalls(), calls()...) {
		ok := t.Run(c.name, func(t *testing.T) {
			for _, w := range []*world{one, two} {
				if c.before != nil {
					c.before(t, w)
				}
			}
			large, _, _ := one.answers(c, false)
			small, ran, took := two.answers(c, true)
			for _, w := range []*world{one, two} {
				if c.after != nil {
					c.after(t, w)
				}
			}
			if ran == c.quiet && (!ran || took < soon) {
				t.Errorf("the small program runs teamctl: %t, want %t", ran, !c.quiet)
			}
			if !strings.Contains(large.Stdout, c.gives) || c.gives == "" && strings.Contains(large.Stdout, "words") {
				t.Errorf("teamctl answers %s, want %q", large.Stdout, c.gives)
			}
			// What a hook has seen reaches the ledger after the hook.
			for until := time.Now().Add(5 * time.Minute); ; {
				heard := one.recorded(t.Context(), &large)
				heard = two.recorded(t.Context(), &small) && heard
				diff := cmp.Diff(large, small)
				if diff == "" && (heard || !c.heard) {
					return
				}
				if time.Now().After(until) {
					t.Fatalf("the supervisor has heard both: %t; teamctl, and the small program:\n%s", heard, diff)
				}
				pause.For(t.Context(), 10*time.Millisecond)
			}
		})
		if !ok {
			return // what follows builds on it
		}
	}
}

// TestHookCommands: the small program runs the hooks that answer at once, as long as it is there.
func TestHookCommands(t *testing.T) {
	w := build(t).world("1")
	if c := w.command["PermissionRequest"]; strings.Contains(c, bundle.SmallName) {
		t.Errorf("who waits for a person is %s", c)
	}
	command := func() (traced string, took time.Duration) {
		t.Helper()
		cmd := exec.Command("sh", "-c", w.command["PreToolUse"])
		cmd.Env = []string{"GODEBUG=inittrace=1"}
		for name, value := range w.hooks {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Stdin = strings.NewReader(`{"session_id":"c1"}`)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took = time.Since(began)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if rest := inits.ReplaceAll(out, nil); len(rest) > 0 {
			t.Errorf("the hook says %s", rest)
		}
		return string(out), took
	}
	if out, took := command(); out == "" || large.MatchString(out) && took < soon {
		t.Errorf("the hook of an agent without mail runs teamctl: %s", out)
	}
	if err := os.Remove(w.small); err != nil {
		t.Fatal(err)
	}
	if out, _ := command(); !large.MatchString(out) {
		t.Errorf("without the small program the hook runs %s", out)
	}
	// One of an earlier version knows no hooks, and runs this.
	cmd := exec.Command(w.teamctl, "shim", "hook", "claude", "AfterTool")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `claude has no hook "AfterTool"`) {
		t.Errorf("teamctl shim hook: %v: %s", err, out)
	}
}
