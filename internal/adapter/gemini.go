package adapter

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// Gemini CLI. Its settings come in by GEMINI_CLI_SYSTEM_DEFAULTS_PATH, the layer below the user's
// own: lists of hooks and servers are joined with theirs, and on a conflict the user's setting
// wins.

const envGeminiDefaults = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"

var geminiOldest = Version{0, 61, 0}

var geminiAlone = []string{"--allowed-mcp-server-names", "teamctl"}

var gemini = cli{
	program: "gemini", versionArgs: []string{"--version"}, tested: Version{0, 61, 0}, oldest: geminiOldest,
	plan: planGemini, alone: geminiAlone,
	caps: Capabilities{
		Ways:         []Way{WayHooks, WayPull, WayTyping},
		MidTurn:      "at the next tool boundary (AfterTool), else at the end of the turn (AfterAgent)",
		Idle:         "woken by typing: its hooks cannot",
		States:       []string{"process", "hooks", "title", "screen"},
		Conversation: "minted (--session-id), resumed by --resume",
		Tools:        "MCP by its settings",
		Approvals:    "told by the Notification hook, answered by the key of its dialog while that is on the screen",
		PlanMode:     "--approval-mode plan",
		NewMode:      AtItsNextStart,
		Interrupt:    "Escape",
		Stop:         "shutdown request by mail, then the process tree: it ignores SIGHUP and runs as two processes",
		Config:       "a settings file in the member's bundle, named by " + envGeminiDefaults,
		Modes: []ModeMap{
			{team.ModeDefault, "default"}, {team.ModeAcceptEdits, "auto_edit"}, {team.ModePlan, "plan"},
			{team.ModeDontAsk, "default: it asks all the same"}, {team.ModeBypass, "yolo"}, {team.ModeDelegate, "plan"},
		},
		Versions: []Difference{{"< 0.61.0", "no hooks: mail is typed when it is idle"}},
	},
}

// geminiEvents are the hooks of a session; AfterModel and similar ones are too frequent.
var geminiEvents = []string{"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "Notification", "SessionEnd"}

// geminiEnv returns the variables that our programs get beyond those that Gemini CLI passes on. It
// withholds variables whose names contain words like TOKEN from MCP servers, on the user's request
// from hooks as well, and in GitHub Actions all unknown ones; it adds the variables of an entry
// after that. Its allowlist is no alternative, since a list of the user's would replace ours. It
// replaces $NAME, from its whole environment, when it reads the file, so the file does not contain
// the secret.
func geminiEnv(in Input) map[string]string {
	env := toolEnv(in)
	env[team.EnvGen] = in.Generation
	env[team.EnvToken] = "$" + team.EnvToken
	return env
}

func planGemini(exe string, in Input, v Version) (launch, error) {
	env := geminiEnv(in)
	settings := map[string]any{
		"general": map[string]any{"enableAutoUpdate": false},
		"mcpServers": map[string]any{"teamctl": map[string]any{
			"command": exe, "args": []string{"mcp"}, "env": env, "trust": true,
		}},
	}
	l := launch{link: Link{Ways: []Way{WayTyping}, Conversation: in.Mint.Conversation}, env: map[string]string{}}
	if v.atLeast(geminiOldest) {
		l.link.Ways = []Way{WayHooks, WayTyping}
		hooks := map[string]any{}
		for _, e := range geminiEvents {
			hooks[e] = []any{map[string]any{"matcher": "*", "hooks": []any{map[string]any{
				"name": "teamctl-" + e, "type": "command", "command": in.hooks(exe).command("gemini", e), "timeout": hookTimeout * 1000, "env": env,
			}}}}
		}
		settings["hooksConfig"] = map[string]any{"enabled": true}
		settings["hooks"] = hooks
	}
	l.files = []File{{"gemini.json", jsonText(settings), 0o600}}
	if other := setting(in, envGeminiDefaults); other != "" {
		l.notes = append(l.notes, "the defaults of "+other+" are not in force for this member")
	}
	l.env[envGeminiDefaults] = bundleFile(in, "gemini.json")
	maps.Copy(l.env, geminiGit(in))
	program := programOf(in, in.Agent, "gemini")
	argv := []string{program, "--approval-mode", geminiMode(in)}
	if in.MCP == team.ServersTeam {
		argv = append(argv, geminiAlone...)
	}
	if in.Model != "" {
		argv = append(argv, "-m", in.Model)
	}
	switch {
	case in.Resume != "":
		argv = append(argv, "--resume", in.Resume)
		l.link.Conversation, l.link.Resumed = in.Resume, true
	case in.Mint.Conversation != "" && v.atLeast(geminiOldest):
		argv = append(argv, "--session-id", in.Mint.Conversation)
	}
	argv = append(argv, in.Command...)
	if p := firstPrompt(in); p != "" {
		if in.Resume == "" { // it has no flag for the instructions of one session
			p = briefing(in) + "\n\n" + p
		}
		argv = append(argv, "--prompt-interactive="+p)
	}
	// It asks about the directory when a turn may already have begun, and restarts itself with the
	// answer: its session exists by then.
	l.argv = append([]string{exe, "trusted", "--count", "1", "--", program}, argv...)
	return l, nil
}

// geminiGit returns git's author and committer as git configuration: its shell hides the
// configuration files, and if the user withholds variables it also withholds GIT_AUTHOR_NAME,
// which contains "AUTH".
func geminiGit(in Input) map[string]string {
	env := map[string]string{}
	n, err := strconv.Atoi(setting(in, "GIT_CONFIG_COUNT"))
	if err != nil || n < 0 {
		n = 0
	}
	for _, role := range []string{"author", "committer"} {
		for _, what := range []string{"name", "email"} {
			value := in.Git["GIT_"+strings.ToUpper(role+"_"+what)]
			if value == "" {
				continue
			}
			env["GIT_CONFIG_KEY_"+strconv.Itoa(n)], env["GIT_CONFIG_VALUE_"+strconv.Itoa(n)] = role+"."+what, value
			n++
		}
	}
	if len(env) > 0 {
		env["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	}
	return env
}

// GeminiAsks returns the environment for a Gemini CLI that only asks whether its directory is
// trusted.
func GeminiAsks(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, envGeminiDefaults+"=") })
}

// GeminiTrusted returns a command line of Gemini CLI for a directory that the user trusts, or that
// Gemini CLI itself knows. It treats a work tree as a directory of its own.
func GeminiTrusted(argv []string, trusted bool) []string {
	if !trusted {
		return argv
	}
	return append([]string{argv[0], "--skip-trust"}, argv[1:]...)
}

func geminiMode(in Input) string {
	mode := in.Mode
	if in.Plan {
		mode = team.ModePlan
	}
	switch mode {
	case team.ModeAcceptEdits:
		return "auto_edit"
	case team.ModePlan, team.ModeDelegate:
		return "plan"
	case team.ModeBypass:
		return "yolo"
	case team.ModeDefault, team.ModeDontAsk, "":
	}
	return "default"
}
