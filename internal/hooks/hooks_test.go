package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/teamctl/teamctl/internal/proc"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a team with a ledger and a home of its own.
func world(t *testing.T) Asker {
	t.Helper()
	l := team.Home{Dir: t.TempDir()}.Team("demo")
	if err := os.MkdirAll(l.Locks(), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := ledger.Open(t.Context(), l.Ledger(), ledger.Options{Create: true, LockPath: l.LedgerLock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	led := ledger.New(db, ledger.Direct(db)).As("tester")
	if _, err := led.CreateTeam(t.Context(), ledger.TeamRow{Key: "demo", Name: "demo", LeadSession: "lead"}); err != nil {
		t.Fatal(err)
	}
	return Asker{Layout: l, Ledger: led}
}

// own writes the person's hooks.
func (a Asker) own(t *testing.T, yaml string) {
	t.Helper()
	if err := os.WriteFile(ConfigFile(a.Layout.Home), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
}

// last is the newest event of a kind.
func (a Asker) last(t *testing.T, what string) (ledger.Event, Told) {
	t.Helper()
	events, err := a.Ledger.Events(t.Context(), 0, 0, ledger.EventFilter{What: what})
	if err != nil {
		t.Fatal(err)
	}
	if len(events) == 0 {
		return ledger.Event{}, Told{}
	}
	var d Told
	if err := json.Unmarshal(events[len(events)-1].Data, &d); err != nil {
		t.Fatal(err)
	}
	return events[len(events)-1], d
}

// Every way in which a hook can end, and what comes of it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	a := world(t)
	for _, c := range []struct {
		command string
		want    Verdict
		event   string
		text    string // in the event
	}{
		{command: "true"},
		{command: "echo some words"},
		{command: `echo '{"continue":true}'`},
		{command: "echo not yet >&2; exit 2", want: Verdict{Block: true, Feedback: "not yet"}, event: "hook.blocked", text: "not yet"},
		{command: "echo aside; exit 2", want: Verdict{Block: true, Feedback: "aside"}, event: "hook.blocked", text: "aside"},
		{command: "exit 2", want: Verdict{Block: true, Feedback: "no reason was given"}, event: "hook.blocked", text: "no reason"},
		{command: `echo '{"continue":false,"stopReason":"out of money"}'`, want: Verdict{Stop: true, Reason: "out of money"}, event: "hook.stop", text: "out of money"},
		{command: "echo '{oops'", event: "hook.failed", text: "not valid JSON"},
		{command: "echo broken >&2; exit 1", event: "hook.failed", text: "exit status 1: broken"},
		{command: "kill -9 $$", event: "hook.failed", text: "signal"},
		{command: "yes x | head -c 5000000; exit 2", want: Verdict{Block: true, Feedback: strings.Repeat("x\n", maxText/2-1) + "x"}, event: "hook.blocked", text: "x"},
	} {
		raw, err := json.Marshal(c.command) // JSON strings are YAML
		if err != nil {
			t.Fatal(err)
		}
		a.own(t, "hooks:\n  TaskCompleted: "+string(raw)+"\n")
		before, err := a.Ledger.LastEvent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Ask(t.Context(), Input{Event: TaskCompleted, Teammate: "builder", TaskID: "7"})
		if err != nil || got != c.want {
			t.Errorf("%s: %.80v, %v; want %.80v", c.command, got, err, c.want)
		}
		events, err := a.Ledger.Events(t.Context(), before, 0, ledger.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if c.event == "" {
			if len(events) > 0 {
				t.Errorf("%s: told %v", c.command, events)
			}
			continue
		}
		e, d := a.last(t, c.event)
		if len(events) != 1 || e.Seq <= before || e.ID != "builder" || d.Hook != TaskCompleted || d.Command != c.command || d.Task != "7" || !strings.Contains(d.Text, c.text) {
			t.Errorf("%s: told %v %+v", c.command, e, d)
		}
	}
}

// A hook gets the facts on standard input, and runs where it says.
func TestInputIsOnStdin(t *testing.T) {
	t.Parallel()
	a := world(t)
	out := filepath.Join(t.TempDir(), "in.json")
	a.own(t, "hooks:\n  TaskCreated: {command: 'cat > "+out+"; pwd > "+out+".pwd', timeout: 30s}\n")
	in := Input{Event: TaskCreated, TaskSubject: "one", TaskMetadata: json.RawMessage(`{"run":"true"}`)}
	in.About(ledger.Member{Name: "builder", AgentID: "builder@demo", Role: team.RoleExecutor, Worktree: "/w", Branch: "b"})
	if _, err := a.Ask(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var got Input
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := in
	want.Team, want.Cwd, want.At = "demo", a.Layout.Dir, got.At
	a1, _ := json.Marshal(got)
	a2, _ := json.Marshal(want)
	if string(a1) != string(a2) || got.At == 0 {
		t.Errorf("%s\nwant %s", a1, a2)
	}
	if pwd, err := os.ReadFile(out + ".pwd"); err != nil || strings.TrimSpace(string(pwd)) != a.Layout.Dir {
		t.Errorf("ran in %q, %v", pwd, err)
	}
}

// A hook that takes too long is ended with everything that it has started, also
// what has left its session and its parent; so is what a quick one leaves behind.
func TestEndsWithTheWholeTree(t *testing.T) {
	t.Parallel()
	a := world(t)
	t.Run("too long", func(t *testing.T) {
		for limit := 2 * time.Second; ; limit *= 2 { // longer, where it did not come so far
			started := a.tree(t, "sleep 300", limit)
			if _, d := a.last(t, "hook.failed"); !strings.Contains(d.Text, "longer than "+limit.String()) {
				t.Errorf("told %+v", d)
			}
			if started == 3 {
				return
			}
			if limit > time.Minute {
				t.Fatalf("%d of its processes came up", started)
			}
		}
	})
	t.Run("left behind", func(t *testing.T) {
		if started := a.tree(t, "true", 5*time.Minute); started != 3 {
			t.Errorf("%d of its processes came up", started)
		}
	})
}

// tree asks a hook that starts processes which do not want to end, and looks that none of
// them lives then; end is what it does itself when they are up.
func (a Asker) tree(t *testing.T, end string, limit time.Duration) (started int) {
	t.Helper()
	pids := filepath.Join(t.TempDir(), "pids")
	command := `echo $$ > ` + pids + `; setsid bash -c 'trap "" TERM; echo $$ >> ` + pids + `; (sleep 300 & echo $! >> ` + pids +
		`); sleep 300' & while [ "$(wc -l < ` + pids + `)" -lt 3 ]; do sleep 0.05; done; ` + end
	raw, err := json.Marshal(map[string]any{"hooks": map[string]any{"TeammateIdle": map[string]string{"command": command, "timeout": limit.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	a.own(t, string(raw))
	if v, err := a.Ask(t.Context(), Input{Event: TeammateIdle}); err != nil || v.Block {
		t.Errorf("%v, %v", v, err)
	}
	data, err := os.ReadFile(pids)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	lines := strings.Fields(string(data))
	for _, l := range lines {
		pid, err := strconv.Atoi(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := proc.Identify(pid); !errors.Is(err, proc.ErrGone) {
			t.Errorf("process %d lives: %v", pid, err)
		}
	}
	return len(lines)
}

// A caller who goes away takes the hook along.
func TestCancel(t *testing.T) {
	t.Parallel()
	a := world(t)
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	a.own(t, "hooks: {TeammateIdle: 'echo >"+begun+"; sleep 300'}")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := os.ReadFile(begun); err != nil {
			t.Error(err)
		}
		cancel()
	})
	if _, err := a.Ask(ctx, Input{Event: TeammateIdle}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	f, err := os.OpenFile(begun, os.O_RDWR, 0) // ends the reader, also where the hook was never run
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	wg.Wait()
}

// Hooks that came with the repository wait for a consent to exactly what they run.
func TestConsentIsToTheContent(t *testing.T) {
	t.Parallel()
	a := world(t)
	repo := t.TempDir()
	script := filepath.Join(repo, "check.sh")
	if err := os.WriteFile(script, []byte("exit 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Supplied{Hooks: Set{TaskCompleted: {{Command: "bash " + script}}}, FromRepo: true, Repo: repo}
	ask := func(want bool) {
		t.Helper()
		if err := a.Ledger.Set(t.Context(), Setting, s); err != nil {
			t.Fatal(err)
		}
		v, err := a.Ask(t.Context(), Input{Event: TaskCompleted})
		if err != nil || v.Block != want {
			t.Errorf("asked: %v, %v; want %v", v, err, want)
		}
	}
	ask(false)
	if _, d := a.last(t, "hook.failed"); !strings.Contains(d.Text, "hooks allow") {
		t.Errorf("told %+v", d)
	}
	if files := s.Files(); len(files) != 1 || files[0] != "check.sh" {
		t.Errorf("files %v", files)
	}
	s.Consent = s.Hash()
	ask(true)
	if err := os.WriteFile(script, []byte("exit 2 # changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask(false)
	s.Consent = s.Hash()
	s.Hooks[TaskCompleted][0].Command += " now"
	ask(false)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	a := world(t)
	if set, err := Load(a.Layout.Home); set != nil || err != nil {
		t.Errorf("without a file: %v, %v", set, err)
	}
	a.own(t, "other: {x: 1}\nhooks:\n  TeammateIdle: one\n  TaskCreated: [two, {command: three, timeout: 5s}]\n")
	set, err := Load(a.Layout.Home)
	if err != nil || len(set) != 2 || set[TeammateIdle][0].Command != "one" || set[TaskCreated][1].Timeout != 5*time.Second {
		t.Errorf("%v, %v", set, err)
	}
	for text, want := range map[string]string{
		"hooks: {TaskComplete: x}":                            "did you mean TaskCompleted?",
		"hooks: {TaskCompleted: {command: x, tiemout: 1}}":    "unknown field",
		"hooks: {TaskCompleted: {command: x, timeout: soon}}": "invalid timeout",
		"hooks: {TaskCompleted: {command: x, timeout: 1h}}":   "at most 10m",
		"hooks: {TaskCompleted: ''}":                          "no command",
		"hooks: [":                                            "config.yaml",
	} {
		a.own(t, text)
		_, err := Load(a.Layout.Home)
		if !team.IsCode(err, team.CodeInvalid) || !strings.Contains(err.Error()+" "+team.HintOf(err), want) {
			t.Errorf("%s: %v (%s); want %q", text, err, team.HintOf(err), want)
		}
		if _, err := a.Ask(t.Context(), Input{Event: TaskCompleted}); err == nil {
			t.Errorf("%s: a broken configuration lets pass", text)
		}
	}
}
