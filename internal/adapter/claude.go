package adapter

import (
	"bytes"

	"github.com/teamctl/teamctl/team"
)

// Claude Code. All configuration goes in by files and flags of the session: hooks by --settings,
// tools by --mcp-config. The permission mode is always explicit, since its default differs by
// version.

var (
	claudeTested = Version{2, 1, 329}
	claudeOldest = Version{2, 1, 34}
	// claudeRewake is the oldest version seen to wake an idle session from a background hook; older
	// versions run such a hook in the foreground and hang.
	claudeRewake = Version{2, 1, 112}
	// claudeFails is the oldest version with a hook for a turn that an API error ends.
	claudeFails = Version{2, 1, 112}
	// claudeDecides is the oldest version seen to apply the decision of a PermissionRequest hook.
	claudeDecides = Version{2, 1, 329}
)

// Waits reports whether a version of a program supports a hook that waits for mail.
func Waits(agent string, v Version) bool { return agent == Claude && v.atLeast(claudeRewake) }

// Decides reports whether a version of a program lets a hook answer its permission requests.
func Decides(agent string, v Version) bool { return agent == Claude && v.atLeast(claudeDecides) }

// KeepsSessions reports whether a program writes the state of its sessions to its configuration
// directory.
func KeepsSessions(agent string) bool { return agent == Claude }

// claudeAlone excludes the MCP servers of the user and of the repository, which the program starts
// otherwise, after its own consent question. A server of the same name as ours gives way to ours.
var claudeAlone = []string{"--strict-mcp-config"}

// WokenByMail reports whether a hook is called for a prompt that is mail itself. Claude Code
// 2.1.112 inserts what this hook adds before the prompt, so later mail would come first.
func WokenByMail(cli, event string, input []byte) bool {
	return cli == Claude && BeginsTurn(cli, event) && bytes.Contains(input, []byte("teammate-message teammate_id="))
}

var claude = cli{
	program: "claude", versionArgs: []string{"--version"}, tested: claudeTested, oldest: claudeOldest,
	plan: planClaude, alone: claudeAlone,
	caps: Capabilities{
		Ways:         []Way{WayHooks, WayPull, WayTyping},
		MidTurn:      "at the next tool boundary (PostToolUse), else at the end of the turn (Stop)",
		Idle:         "woken by a hook that waits in the background, without a keystroke",
		States:       []string{"process", "hooks", "sessions/PID.json", "title", "screen"},
		Conversation: "minted (--session-id), resumed by --resume",
		Tools:        "MCP by --mcp-config",
		Approvals:    "PermissionRequest hook",
		PlanMode:     "--permission-mode plan",
		NewMode:      WithItsNextRequest + ", else at its next start",
		Interrupt:    "Escape",
		Stop:         "shutdown request by mail, then the process tree",
		Config:       "files in the member's bundle, named by flags",
		Modes: []ModeMap{
			{team.ModeDefault, "default (manual)"}, {team.ModeAcceptEdits, "acceptEdits"}, {team.ModePlan, "plan"},
			{team.ModeDontAsk, "dontAsk"}, {team.ModeBypass, "bypassPermissions"}, {team.ModeDelegate, "default: its own tools are not restricted"},
		},
		Versions: []Difference{
			{"< 2.1.112", "no background hook: an idle agent is woken by typing"},
			{"< 2.1.329", "permission requests are answered at its own dialog"},
		},
	},
}

func planClaude(exe string, in Input, v Version) (launch, error) {
	settings, mcp := bundleFile(in, "settings.json"), bundleFile(in, "mcp.json")
	l := launch{
		link: Link{Ways: []Way{WayHooks, WayTyping}, Conversation: in.Mint.Conversation, Config: claudeConfig(in)},
		env: map[string]string{
			"DISABLE_AUTOUPDATER": "1",
			// A suggestion in the input box looks like a user's draft, and mail waits for those.
			"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
		},
		files: []File{
			{"settings.json", claudeSettings(in.hooks(exe), v, in.VersionLate), 0o600},
			{"mcp.json", jsonText(map[string]any{"mcpServers": map[string]any{"teamctl": map[string]any{
				"type": "stdio", "command": exe, "args": []string{"mcp"}, "env": toolEnv(in), "alwaysLoad": true,
			}}}), 0o600},
		},
	}
	if !v.atLeast(claudeOldest) {
		l.link.Ways = []Way{WayTyping}
		l.files = l.files[1:]
	}
	// --mcp-config and --allowedTools take any number of values, so a flag must follow.
	argv := []string{"claude"}
	if v.atLeast(claudeDecides) {
		argv = append(argv, "--name", in.Name)
	}
	if len(l.files) == 2 {
		argv = append(argv, "--settings", settings)
	}
	argv = append(argv, "--mcp-config", mcp)
	if in.MCP == team.ServersTeam {
		argv = append(argv, claudeAlone...)
	}
	argv = append(argv, "--allowedTools", "mcp__teamctl")
	argv = append(argv, "--append-system-prompt", briefing(in))
	if in.Model != "" {
		argv = append(argv, "--model", in.Model)
	}
	switch {
	case in.Resume != "":
		argv = append(argv, "--resume", in.Resume)
		l.link.Conversation, l.link.Resumed = in.Resume, true
	case in.Mint.Conversation != "":
		argv = append(argv, "--session-id", in.Mint.Conversation)
	}
	argv = append(argv, in.Command...)
	argv = append(argv, "--permission-mode", claudeMode(in))
	argv = append(argv, positional(firstPrompt(in))...)
	l.argv = argv
	return l, nil
}

// claudeMode returns the mode by a name that every version accepts: versions that list "default"
// as "manual" accept "default".
func claudeMode(in Input) string {
	if in.Plan {
		return string(team.ModePlan)
	}
	switch in.Mode {
	case team.ModeAcceptEdits, team.ModePlan, team.ModeDontAsk, team.ModeBypass:
		return string(in.Mode)
	case team.ModeDefault, team.ModeDelegate, "":
	}
	return string(team.ModeDefault)
}

// claudeConfig returns the program's own configuration directory, which is only read.
func claudeConfig(in Input) string {
	if d := setting(in, "CLAUDE_CONFIG_DIR"); d != "" {
		return d
	}
	if h := setting(in, "HOME"); h != "" {
		return h + "/.claude"
	}
	return ""
}

// hookTimeout bounds a hook that answers at once, waitTimeout one that waits; both in seconds. A
// hook bounds itself to three seconds once it runs, but takes much longer to start on a loaded
// machine, and the program drops a late answer.
const (
	hookTimeout = 60
	waitTimeout = 24 * 60 * 60
)

// claudeEvents are the hooks of a session. Hooks on tools need a matcher.
var claudeEvents = []struct {
	name   string
	tools  bool
	waiter bool // a second, background hook waits for mail
	since  Version
	wait   bool // the hook may wait for a person
}{
	{name: "SessionStart", waiter: true},
	{name: "UserPromptSubmit"},
	{name: "PreToolUse", tools: true},
	{name: "PostToolUse", tools: true},
	{name: "PermissionRequest", tools: true, since: claudeDecides, wait: true},
	{name: "Notification"},
	{name: "Stop", waiter: true},
	{name: stopFailure, since: claudeFails},
	{name: "SessionEnd"},
}

// claudeSettings returns the hooks of a version. If the version may be a newer one, the waiting
// hook is included: it exits at once until the version is known.
func claudeSettings(by hookProgram, v Version, late bool) string {
	hooks := map[string]any{}
	for _, e := range claudeEvents {
		if e.since.Known() && !v.atLeast(e.since) {
			continue
		}
		timeout := hookTimeout
		if e.wait {
			timeout = waitTimeout
		}
		list := []any{map[string]any{"type": "command", "command": by.command("claude", e.name), "timeout": timeout}}
		if e.waiter && (late || v.atLeast(claudeRewake)) {
			list = append(list, map[string]any{
				"type": "command", "command": by.command("claude", Wait), "timeout": waitTimeout,
				"asyncRewake": true, "rewakeSummary": "mail from your team",
			})
		}
		group := map[string]any{"hooks": list}
		if e.tools {
			group["matcher"] = "*"
		}
		hooks[e.name] = []any{group}
	}
	return jsonText(map[string]any{"hooks": hooks})
}
