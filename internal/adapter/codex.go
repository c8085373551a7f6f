package adapter

import (
	"strconv"

	"github.com/teamctl/teamctl/team"
)

// Codex. Each agent has an app-server on a socket of its own, with the TUI as its screen: the
// daemon that the TUI would share outlives the agent and has another environment. Everything is
// configured by -c overrides of the session.

var codexOldest = Version{0, 169, 0}

var codex = cli{
	program: "codex", versionArgs: []string{"--version"}, tested: Version{0, 169, 0}, oldest: codexOldest,
	plan: planCodex,
	caps: Capabilities{
		Ways:         []Way{WayAppServer, WayHooks, WayPull, WayTyping},
		MidTurn:      "at the next tool boundary (turn/steer)",
		Idle:         "a turn is started (turn/start)",
		States:       []string{"process", "thread/status/changed", "title", "screen"},
		Conversation: "learned from the app-server, resumed by codex resume",
		Tools:        "MCP by -c mcp_servers.teamctl",
		Approvals:    "app-server requests",
		PlanMode:     "a read-only sandbox",
		NewMode:      WithItsNextMessage + " (turn/start)",
		Interrupt:    "turn/interrupt",
		Stop:         "shutdown request by mail, then the process tree",
		Config:       "-c overrides of the session",
		Modes: []ModeMap{
			{team.ModeDefault, "-a on-request -s workspace-write"}, {team.ModeAcceptEdits, "-a on-request -s workspace-write"},
			{team.ModePlan, "-a on-request -s read-only"}, {team.ModeDontAsk, "-a never -s workspace-write"},
			{team.ModeBypass, "--dangerously-bypass-approvals-and-sandbox"}, {team.ModeDelegate, "-a on-request -s read-only"},
		},
		Versions: []Difference{{"< 0.169.0", "no app-server of its own: mail is typed when it is idle"}},
	},
}

func planCodex(exe string, in Input, v Version) (launch, error) {
	common := []string{
		"-c", "check_for_update_on_startup=false",
		"-c", "mcp_servers.teamctl={command=" + tomlString(exe) + `,args=["mcp"],env=` + tomlTable(toolEnv(in)) +
			",env_vars=" + tomlList([]string{team.EnvToken, team.EnvGen}) + `,default_tools_approval_mode="approve"}`,
		"-c", "developer_instructions=" + tomlString(briefing(in)),
	}
	// The server holds the permissions: the TUI refuses --add-dir with --remote, and all such flags
	// when it resumes.
	server := codexPolicy(in)
	if len(in.GitDirs) > 0 {
		server = append(server, "-c", "sandbox_workspace_write.writable_roots="+tomlList(in.GitDirs))
	}
	tui := codexMode(in)
	if in.Model != "" {
		tui = append(tui, "-m", in.Model)
	}
	tui = append(tui, in.Command...)
	l := launch{link: Link{Ways: []Way{WayAppServer, WayTyping}, Config: codexHome(in)}}
	screen := []string{"codex"}
	if in.Resume != "" {
		screen = append(screen, "resume", in.Resume)
		l.link.Conversation, l.link.Resumed = in.Resume, true
	}
	switch {
	case !v.atLeast(codexOldest):
		l.link.Ways = []Way{WayTyping}
		l.argv = append(append(append(screen, common...), server...), tui...)
	case in.Mint.Socket == "":
		l.link.Ways = []Way{WayHooks, WayTyping}
		l.argv = append(append(screen, "--disable", "daemon_auto_start", "--dangerously-bypass-hook-trust"), common...)
		l.argv = append(append(append(l.argv, codexHooks(in.hooks(exe))...), server...), tui...)
	default:
		l.link.Socket = in.Mint.Socket
		program := programOf(in, in.Agent, "codex")
		server = append(append([]string{program, "app-server", "--listen", "unix://" + in.Mint.Socket}, common...), server...)
		screen[0] = program
		if in.Resume != "" {
			tui = tui[len(codexMode(in)):]
		}
		screen = append(append(screen, "--remote", "unix://"+in.Mint.Socket), tui...)
		asks := append([]string{program}, codexAsks...)
		l.argv = append([]string{exe, "beside", "--socket", in.Mint.Socket, "--count", strconv.Itoa(len(server)), "--trust", strconv.Itoa(len(asks)), "--"}, server...)
		l.argv = append(append(l.argv, asks...), screen...)
	}
	l.argv = append(l.argv, positional(firstPrompt(in))...)
	return l, nil
}

// codexAsks are the arguments with which the TUI asks whether to trust its directory. When
// attached to a server it does not ask, and ignores the configuration of the repository. Trust of
// a repository covers its worktrees.
var codexAsks = []string{"--disable", "daemon_auto_start", "-c", "check_for_update_on_startup=false"}

func codexMode(in Input) []string {
	mode := in.Mode
	if in.Plan {
		mode = team.ModePlan
	}
	switch mode {
	case team.ModeBypass:
		return []string{"--dangerously-bypass-approvals-and-sandbox"}
	case team.ModePlan, team.ModeDelegate:
		return []string{"-a", "on-request", "-s", "read-only"}
	case team.ModeDontAsk:
		return []string{"-a", "never", "-s", "workspace-write"}
	case team.ModeDefault, team.ModeAcceptEdits, "":
	}
	return []string{"-a", "on-request", "-s", "workspace-write"}
}

// codexPolicy returns codexMode as configuration.
func codexPolicy(in Input) []string {
	approval, sandbox := "never", "danger-full-access"
	if flags := codexMode(in); len(flags) == 4 {
		approval, sandbox = flags[1], flags[3]
	}
	return []string{"-c", "approval_policy=" + tomlString(approval), "-c", "sandbox_mode=" + tomlString(sandbox)}
}

func codexHome(in Input) string {
	if d := setting(in, "CODEX_HOME"); d != "" {
		return d
	}
	return setting(in, "HOME") + "/.codex"
}

// codexEvents are the hooks used without an app-server of the agent's own.
var codexEvents = []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "Interrupt", "SessionEnd"}

func codexHooks(by hookProgram) []string {
	var out []string
	for _, e := range codexEvents {
		timeout := hookTimeout
		if e == "PermissionRequest" {
			timeout = waitTimeout
		}
		out = append(out, "-c", "hooks."+e+`=[{hooks=[{type="command",command=`+tomlString(by.command("codex", e))+
			",timeout="+strconv.Itoa(timeout)+"}]}]")
	}
	return out
}
