package adapter

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

// foreign returns a member whose agent is a foreign CLI.
func foreign(t *testing.T, agent, version string) Input {
	in := input(t)
	in.Agent, in.Version, in.Prompt = agent, version, "Fix the \"parser\"\nand say so"
	in.Generation = "0b1f0000-0000-4000-8000-000000000001"
	in.Mint = Mint{Conversation: "11111111-2222-4333-8444-555555555555", Secret: "s3cret", Port: 40123, Socket: "/run/tc/a/b.sock"}
	in.GitDirs = []string{"/home/ann/repo/.git"}
	in.Role, in.Peers = team.RoleExecutor, []team.Peer{{Name: team.LeadName, Role: team.RoleLeader}, {Name: "critic", Role: team.RoleReviewer, Type: "reviewer"}}
	return in
}

// TestServersOfTheTeamOnly: a member restricted to teamctl's MCP server starts with its program's
// flags for that; the start fails if the program has none.
func TestServersOfTheTeamOnly(t *testing.T) {
	t.Parallel()
	for agent, flags := range map[string][]string{
		Claude: {"--strict-mcp-config"}, Gemini: {"--allowed-mcp-server-names", "teamctl"},
		Codex: nil, Opencode: nil, ACP: nil, Generic: nil, Command: nil, Worker: nil,
	} {
		in := foreign(t, agent, "9.9.9")
		if info, err := Lookup(agent); err != nil || info.TakesCommand {
			in.Command = []string{"true"}
		}
		for _, choice := range []team.Servers{"", team.ServersAll} {
			in.MCP = choice
			out, err := Launcher{Exe: "/bin/teamctl"}.Plan(in)
			if err != nil {
				t.Fatalf("%s with %q: %v", agent, choice, err)
			}
			if len(flags) > 0 && slices.Contains(out.Argv, flags[0]) {
				t.Errorf("%s with %q is started with %q", agent, choice, out.Argv)
			}
		}
		in.MCP = team.ServersTeam
		out, err := Launcher{Exe: "/bin/teamctl"}.Plan(in)
		if flags == nil {
			if team.ReasonOf(err) != "bad_mcp" || !team.IsCode(err, team.CodeInvalid) {
				t.Errorf("%s: %v", agent, err)
			}
			continue
		}
		if at := slices.Index(out.Argv, flags[0]); err != nil || at < 0 || !slices.Equal(out.Argv[at:at+len(flags)], flags) {
			t.Errorf("%s is started with %q, %v", agent, out.Argv, err)
		}
	}
}

// Argv, environment and files of each CLI, which other programs read.
func TestForeignPlansGolden(t *testing.T) {
	t.Parallel()
	cases := map[string]func() Input{
		"claude":        func() Input { return foreign(t, Claude, "2.1.329 (Claude Code)") },
		"claude_2.1.34": func() Input { return foreign(t, Claude, "2.1.34 (Claude Code)") },
		"claude_unknown": func() Input {
			in := foreign(t, Claude, "")
			in.Mode, in.Model, in.Command = team.ModeBypass, "opus", []string{"--verbose"}
			return in
		},
		"claude_resume": func() Input {
			in := foreign(t, Claude, "2.1.329")
			in.Resume, in.Interrupted, in.Plan = "99999999-2222-4333-8444-555555555555", true, true
			return in
		},
		"codex": func() Input { return foreign(t, Codex, "codex-cli 0.169.0") },
		"codex_hooks": func() Input {
			in := foreign(t, Codex, "codex-cli 0.170.2")
			in.Mint.Socket, in.Mode = "", team.ModeBypass
			return in
		},
		"codex_old": func() Input { return foreign(t, Codex, "codex-cli 0.42.0") },
		"codex_resume": func() Input {
			in := foreign(t, Codex, "codex-cli 0.169.0")
			in.Resume = "019a-thread"
			return in
		},
		"gemini": func() Input { return foreign(t, Gemini, "0.61.0") },
		"gemini_resume": func() Input {
			in := foreign(t, Gemini, "0.61.0")
			in.Resume, in.Mode = "99999999-2222-4333-8444-555555555555", team.ModeAcceptEdits
			return in
		},
		"opencode": func() Input {
			in := foreign(t, Opencode, "1.18.33")
			in.Environ = append(in.Environ, envOpencodeConfig+`={"model":"fake/fake-model","mcp":{"own":{"type":"local"}},"instructions":["a.md"]}`)
			in.Mode = team.ModeAcceptEdits
			return in
		},
		"opencode_unknown": func() Input { return foreign(t, Opencode, "") },
		"acp": func() Input {
			in := foreign(t, ACP, "")
			in.Command = []string{"gemini", "--acp"}
			return in
		},
		"generic": func() Input {
			in := foreign(t, Generic, "")
			in.Command = []string{"aider"}
			return in
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			got := plan(t, make())
			env := slices.DeleteFunc(got.Env, func(kv string) bool { // the same in every plan
				return strings.HasPrefix(kv, "TEAMCTL_") && !strings.HasPrefix(kv, EnvMCPConfig)
			})
			golden(t, "cli_"+name+".golden", []byte(show(got, env)))
		})
	}
}

// show formats a plan for a person: one argument per line, files with their contents.
func show(out Output, env []string) string {
	var b strings.Builder
	for _, a := range out.Argv {
		b.WriteString("arg  " + strings.ReplaceAll(a, "\n", "\n   | ") + "\n")
	}
	for _, e := range env {
		b.WriteString("env  " + e + "\n")
	}
	for _, f := range out.Files {
		b.WriteString("file " + f.Path + " " + f.Mode.String() + "\n" + f.Content)
	}
	b.WriteString("link " + oneLine(out.Link) + "\n")
	for _, n := range out.Notes {
		b.WriteString("note " + n + "\n")
	}
	return b.String()
}

// A second, waiting hook hangs on a version that runs hooks in the foreground.
func TestNoWaiterOnVersionsWithoutIt(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"2.1.34": false, "2.1.111": false, "2.1.112": true, "2.1.329": true, "3.0.1": true, "": false} {
		out := plan(t, foreign(t, Claude, version))
		all := ""
		for _, f := range out.Files {
			all += f.Content
		}
		if got := strings.Contains(all, "asyncRewake"); got != want {
			t.Errorf("version %q: a waiting hook: %v, want %v", version, got, want)
		}
	}
}

func TestFilesStayInTheBundle(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, Codex, Gemini, Opencode} {
		for _, f := range plan(t, foreign(t, agent, "999.0.0")).Files {
			if strings.ContainsAny(f.Path, `/\`) || strings.HasPrefix(f.Path, ".") || f.Mode.Perm() != 0o600 {
				t.Errorf("%s writes %s with %s", agent, f.Path, f.Mode)
			}
			if strings.HasSuffix(f.Path, ".json") && !json.Valid([]byte(f.Content)) {
				t.Errorf("%s: %s is no JSON", agent, f.Path)
			}
		}
	}
}

func TestPromptThatLooksLikeAFlag(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, Codex, Gemini} {
		in := foreign(t, agent, "999.0.0")
		in.Prompt = "--help me"
		argv := plan(t, in).Argv
		last := argv[len(argv)-2:]
		if !slices.Equal(last, []string{"--", "--help me"}) && !strings.HasPrefix(last[1], "--prompt-interactive=You are") {
			t.Errorf("%s ends with %q", agent, last)
		}
	}
}

func TestProgramOfItsOwn(t *testing.T) {
	t.Parallel()
	in := foreign(t, Codex, "codex-cli 0.169.0")
	in.Environ = append(in.Environ, "TEAMCTL_PROGRAM_CODEX=/opt/codex/bin/codex")
	n := 0
	for _, a := range plan(t, in).Argv {
		if a == "/opt/codex/bin/codex" {
			n++
		}
	}
	if n != 3 {
		t.Errorf("the program stands in the plan %d times, want server, question and screen", n)
	}
	argv, ok := Launcher{}.Probe(in)
	if !ok || !slices.Equal(argv, []string{"/opt/codex/bin/codex", "--version"}) {
		t.Errorf("probe is %v, %v", argv, ok)
	}
	in.Env = map[string]string{"TEAMCTL_PROGRAM_CODEX": "/mine"}
	if argv, _ := (Launcher{}).Probe(in); argv[0] != "/mine" {
		t.Errorf("the member's own variable does not win: %v", argv)
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2.1.329 (Claude Code)": "2.1.329", "codex-cli 0.169.0": "0.169.0", "v1.18.33\n": "1.18.33",
		"": "unknown", "nightly": "unknown", "1.2": "unknown",
	} {
		v, ok := ParseVersion(in)
		if v.String() != want || ok != (want != "unknown") {
			t.Errorf("ParseVersion(%q) = %s, %v", in, v, ok)
		}
	}
}

func TestShowEveryKind(t *testing.T) {
	t.Parallel()
	for _, a := range Agents() {
		p, err := Launcher{}.Show(a.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Ways) == 0 || len(p.States) == 0 || p.MidTurn == "" || p.Interrupt == "" || p.Config == "" {
			t.Errorf("%s does not declare everything: %+v", a.Name, p)
		}
	}
}

// No plan declares that the user trusts the directory.
func TestNobodyIsTrustedUnasked(t *testing.T) {
	for _, agent := range []string{Claude, Codex, Gemini, Opencode} {
		for _, version := range []string{"999.0.0", "0.0.1", ""} {
			for _, socket := range []string{"/run/tc/a/b.sock", ""} {
				in := foreign(t, agent, version)
				in.Mint.Socket = socket
				p := plan(t, in)
				all := strings.Join(append(p.Argv, p.Env...), "\n")
				for _, no := range []string{"trust_level", "skip-trust", "TRUST_WORKSPACE=", "hasTrustDialogAccepted", "bypass-project-trust"} {
					if strings.Contains(all, no) {
						t.Errorf("%s %q declares trust: %s", agent, version, no)
					}
				}
			}
		}
	}
}

// Every member has the user's git identity. Gemini CLI hides the variables from its shell, so it
// gets the identity as configuration, after the user's own.
func TestGitIdentity(t *testing.T) {
	for _, agent := range []string{Claude, Codex, Gemini, Opencode} {
		in := foreign(t, agent, "999.0.0")
		in.Git = map[string]string{"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_COMMITTER_NAME": "Bot"}
		in.Environ = append(in.Environ, "GIT_CONFIG_COUNT=1", "GIT_COMMITTER_NAME=Mine")
		want := []string{"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Mine"}
		if agent == Gemini {
			want = append(want, "GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_1=author.name", "GIT_CONFIG_VALUE_1=Ann", "GIT_CONFIG_KEY_3=committer.name")
		}
		env := plan(t, in).Env
		for _, kv := range want {
			if !slices.Contains(env, kv) {
				t.Errorf("%s has no %s", agent, kv)
			}
		}
	}
}
