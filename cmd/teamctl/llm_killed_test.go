package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/internal/fakemodel"
	"github.com/teamctl/teamctl/ledger"
)

// llmDone is the last answer of a turn.
const llmDone = "all of it is done"

// entries returns the transcript of a member up to the end of the turn. Later entries are about
// other members.
func (r *faultRig) entries(name string) (out []ledger.Entry) {
	r.Helper()
	for line := range strings.Lines(r.teamctl("session", "export", name, "--format", "jsonl")) {
		var e ledger.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.Fatalf("%v: %s", err, line)
		}
		if out = append(out, e); e.Content == llmDone {
			break
		}
	}
	return out
}

// strictModel serves the model of the rig's agents. It refuses what vendors refuse.
func (r *faultRig) strictModel() *fakemodel.Server {
	r.Helper()
	v, err := fakemodel.Start("", nil)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = v.Close() })
	v.Strict()
	config := "model: fake/m\nproviders:\n  fake: {api: messages, baseURL: \"" + v.URL + "\"}\n"
	if err := os.WriteFile(filepath.Join(r.dir, "t", "config.yaml"), []byte(config), 0o600); err != nil {
		r.Fatal(err)
	}
	return v
}

// thinker spawns a built-in agent.
func (r *faultRig) thinker(name, backend string) {
	r.Helper()
	args := []string{"spawn", name, "--agent", "llm", "--backend", backend, "--dangerously-skip-permissions"}
	if backend == "tmux" {
		args = append(args, "--session")
	}
	r.teamctl(args...)
}

// TestLLMIsKilled kills built-in agents during their turns with SIGKILL, with their shims, with
// their supervisor, and all of them at once, on each backend. Each agent continues the same turn:
// its transcript has the entries of an undisturbed run, and each of its actions happened once or
// is reported as unknown. A server that refuses what vendors refuse has refused nothing.
func TestLLMIsKilled(t *testing.T) {
	steps := 8
	if testing.Short() {
		steps = 6
	}
	r := newFaultRig(t)
	v := r.strictModel()
	script := ""
	for i := range steps {
		script += fmt.Sprintf("@@shell echo step-%d >> log; sleep 0.2; cat log | wc -l\n", i)
	}
	script += "@@say " + llmDone
	names := map[string]string{"calm": "pty", "inside": "in-process", "pty": "pty", "tmux": "tmux"}
	for name, backend := range names {
		r.thinker(name, backend)
	}
	t.Cleanup(func() {
		for name := range names {
			if t.Failed() { // what has become of its turn
				trace, err := r.try(r.exe, "session", "show", name, "--trace")
				why, _ := r.try(r.exe, "explain", name)
				t.Logf("%s: %v\n%s%s", name, err, trace, why)
			}
		}
	})
	done := func(name string) bool {
		list := r.entries(name)
		return len(list) > 0 && list[len(list)-1].Content == llmDone
	}
	trees := map[string]string{}
	for name, m := range r.members() {
		trees[name] = m.Worktree
	}
	ran := func(name string) int { // a file shows it without a process
		log, _ := os.ReadFile(filepath.Join(trees[name], "log"))
		return strings.Count(string(log), "\n")
	}
	r.send("calm", script)
	r.until("the undisturbed turn", func() bool { return ran("calm") == steps && done("calm") })
	for name := range names {
		if name != "calm" {
			r.send(name, script)
		}
	}
	count := func() int { return ran("pty") + ran("tmux") + ran("inside") }
	holders := func(shim bool) (ids []backends.ProcID) {
		for _, name := range []string{"pty", "tmux"} {
			p := r.proc(name)
			if ids = append(ids, p.Agent); shim {
				ids = append(ids, p.Shim)
			}
		}
		return ids
	}
	for _, what := range []string{"agents", "supervisor", "agents and shims", "everything"} {
		before, looks := count(), 0
		r.until("turns to go on before "+what+" are killed", func() bool {
			looks++
			return count() >= before+2 || looks%10 == 0 && done("pty") && done("tmux") && done("inside")
		})
		var ids []backends.ProcID
		switch what {
		case "agents":
			ids = holders(false)
		case "supervisor":
			ids = []backends.ProcID{r.supervisor()}
		case "agents and shims":
			ids = holders(true)
		case "everything":
			ids = append(holders(true), r.supervisor())
		}
		for _, id := range ids {
			r.kill(id)
		}
		r.teamctl("ps") // starts a supervisor
	}
	want := r.shape("calm")
	for name := range names {
		r.until(name+" to be through", func() bool { return done(name) })
		list := r.entries(name)
		if got := r.shape(name); got != want {
			t.Errorf("%s has a different transcript:\n%s\nwant\n%s", name, got, want)
		}
		lost, inputs := 0, 0
		for _, e := range list {
			if e.Kind == ledger.EntryToolResult && strings.Contains(e.Content, ledger.ResultLost) {
				lost++
			}
			if e.Kind == ledger.EntryUser && strings.Contains(e.Content, "@@shell echo step-0") {
				inputs++
			}
		}
		if inputs != 1 {
			t.Errorf("%s has the message %d times", name, inputs)
		}
		log, err := os.ReadFile(filepath.Join(trees[name], "log"))
		if err != nil {
			t.Fatal(err)
		}
		missing := 0
		for i := range steps {
			switch n := strings.Count(string(log), fmt.Sprintf("step-%d\n", i)); {
			case n > 1:
				t.Errorf("%s did step %d %d times", name, i, n)
			case n == 0:
				missing++
			}
		}
		if missing > lost {
			t.Errorf("%s: %d steps are missing, %d are reported as unknown", name, missing, lost)
		}
	}
	if why := v.Refused(); len(why) > 0 {
		t.Errorf("refused %d times: %s", len(why), why[0])
	}
}

// shape returns a transcript without what kills change: the text of results, and incoming mail,
// some of which is about the ends of other members.
func (r *faultRig) shape(name string) string {
	r.Helper()
	var b strings.Builder
	for _, e := range r.entries(name) {
		switch e.Kind {
		case ledger.EntryUser:
		case ledger.EntryToolResult:
			fmt.Fprintln(&b, e.Kind)
		default:
			fmt.Fprintln(&b, e.Kind, e.Content)
		}
	}
	return b.String()
}
