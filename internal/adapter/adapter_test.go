package adapter

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/teamctl/teamctl/team"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The socket's path must not depend on who runs the tests.
func TestMain(m *testing.M) {
	if err := os.Setenv(team.EnvRuntime, "/run/tc"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// input returns a member with all mandatory fields set.
func input(t *testing.T) Input {
	return Input{
		Layout:     team.Home{Dir: "/home/ann/.teamctl"}.Team("demo"),
		Team:       "demo",
		Name:       "builder",
		AgentID:    "builder@demo",
		Color:      "blue",
		Session:    "agent:default:teammate:6f1c",
		Dir:        "/home/ann/.teamctl/teams/demo/worktrees/builder",
		MemberSpec: team.MemberSpec{Backend: "tmux", Origin: team.Origin{ParentSession: "agent:default:team:demo"}},
		Environ: []string{
			"HOME=/home/ann", "PATH=/usr/bin:/bin", "TERM=dumb", "LANG=C.UTF-8",
			"TMUX=/tmp/tmux-1000/default,42,0", "TMUX_PANE=%3", "LINES=24", "PWD=/somewhere",
			"GIT_DIR=/home/ann/other/.git", "GIT_AUTHOR_NAME=Ann",
			"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SSE_PORT=4711",
			"TEAMCTL_AGENT_NAME=someone-else", "TEAMCTL_TASK_ID=9", "TEAMCTL_RUNTIME_DIR=/run/tc",
			"malformed", "LANG=C",
		},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is stale, run with -update if that is meant (-want +got):\n%s", name, d)
	}
}

func plan(t *testing.T, in Input) Output {
	t.Helper()
	out, err := Launcher{Exe: "/usr/local/bin/teamctl"}.Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every combination of the optional flags, one per line: other programs parse
// this argument vector.
func TestWorkerFlagsGolden(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	modes := []team.Mode{"", team.ModeDefault, team.ModeAcceptEdits, team.ModeBypass, team.ModePlan, team.ModeDelegate, team.ModeDontAsk}
	for _, planned := range []bool{false, true} {
		for _, typ := range []string{"", "reviewer"} {
			for _, mode := range modes {
				for _, model := range []string{"", "some-model"} {
					in := input(t)
					in.Agent, in.Plan, in.AgentType, in.Mode, in.Model = Worker, planned, typ, mode, model
					line, err := json.Marshal(plan(t, in).Argv)
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&b, "%s\n", line)
				}
			}
		}
	}
	golden(t, "worker_argv.golden", b.Bytes())
}

func TestPlanGolden(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*Input){
		"worker": func(in *Input) { in.Prompt = "not for a worker" },
		"worker_full": func(in *Input) {
			in.Plan, in.AgentType, in.Mode, in.Model = true, "reviewer", team.ModeBypass, "some-model"
			in.Env = map[string]string{"GOFLAGS": "-race", "TEAMCTL_AGENT_NAME": "mallory"}
		},
		"command": func(in *Input) {
			in.Command = []string{"bash", "-c", `echo "a b" '$x'`, "--", "-flag", ""}
			in.Prompt = "look at\nthe parser"
			in.Backend = "pty"
			in.Env = map[string]string{"TERM": "vt100"}
		},
		"inproc": func(in *Input) {
			in.Backend, in.Dir = "in-process", ""
			in.Environ = in.Environ[:4]
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			change(&in)
			got, err := json.MarshalIndent(plan(t, in), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "plan_"+name+".json", append(got, '\n'))
		})
	}
}

func TestPlanIsPure(t *testing.T) {
	t.Parallel()
	in := input(t)
	in.Command = []string{"sleep", "1"}
	env := slices.Clone(in.Environ)
	first := plan(t, in)
	first.Argv[0] = "changed"
	first.Env[0] = "changed"
	if in.Command[0] != "sleep" || !slices.Equal(in.Environ, env) {
		t.Fatal("a plan shares memory with its input")
	}
	if got := plan(t, in).Argv[0]; got != "sleep" {
		t.Fatalf("second plan starts %q", got)
	}
}

func TestPlanRefusals(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, reason, hint string
		change             func(*Input)
	}{
		{"unknown agent", "unknown_agent", `did you mean "worker"?`, func(in *Input) { in.Agent = "woker" }},
		{"far from all", "unknown_agent", "known agents: worker, llm, command", func(in *Input) { in.Agent = "zebra" }},
		{"worker with a command", "bad_command", "--agent", func(in *Input) { in.Agent, in.Command = Worker, []string{"ls"} }},
		{"command without one", "bad_command", "teamctl spawn builder -- COMMAND", func(in *Input) { in.Agent = Command }},
		{"empty program", "bad_command", "COMMAND", func(in *Input) { in.Command = []string{""} }},
		{"NUL in an argument", "bad_command", "", func(in *Input) { in.Command = []string{"a", "b\x00c"} }},
		{"NUL in a value", "bad_env", "NUL", func(in *Input) { in.Env = map[string]string{"A": "b\x00c"} }},
		{"bad name", "bad_env", "NUL", func(in *Input) { in.Env = map[string]string{"A=B": "c"} }},
		{"empty name", "bad_env", "NUL", func(in *Input) { in.Env = map[string]string{"": "c"} }},
		{"too long", "bad_env", "file", func(in *Input) { in.Env = map[string]string{"A": strings.Repeat("x", maxEnvString)} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := input(t)
			c.change(&in)
			out, err := Launcher{Exe: "/bin/teamctl"}.Plan(in)
			if !team.IsCode(err, team.CodeInvalid) || team.ReasonOf(err) != c.reason {
				t.Fatalf("got %v, code %s, reason %q", err, team.CodeOf(err), team.ReasonOf(err))
			}
			if !strings.Contains(team.HintOf(err), c.hint) {
				t.Errorf("hint %q does not say %q", team.HintOf(err), c.hint)
			}
			if out.Argv != nil || out.Env != nil {
				t.Errorf("a refused plan has %v", out)
			}
		})
	}
}

func TestWorkerNeedsExe(t *testing.T) {
	t.Parallel()
	if _, err := (Launcher{}).Plan(input(t)); !team.IsCode(err, team.CodeInternal) {
		t.Fatalf("got %v", err)
	}
}

func TestAgentsAndLookup(t *testing.T) {
	t.Parallel()
	list := Agents()
	if len(list) != len(kinds) {
		t.Fatalf("%d agents of %d", len(list), len(kinds))
	}
	for _, a := range list {
		got, err := Lookup(a.Name)
		if err != nil || got != a {
			t.Errorf("Lookup(%q) = %v, %v", a.Name, got, err)
		}
		if a.Description == "" {
			t.Errorf("%s has no description", a.Name)
		}
	}
	list[0].Name = "changed"
	if _, err := Lookup(Worker); err != nil {
		t.Errorf("the table was changed through its listing: %v", err)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"worker", "command"}
	for in, want := range map[string]string{
		"Worker": "worker", "wroker": "worker", "work": "worker", "comand": "command", "cmd": "", "": "", "clod": "",
	} {
		if got := team.Closest(in, names); got != want {
			t.Errorf("team.Closest(%q) = %q, want %q", in, got, want)
		}
	}
}
