package adapter

import (
	"encoding/json"
	"strconv"

	"github.com/teamctl/teamctl/team"
)

// opencode. Its TUI runs a server for mail, states and approvals. The configuration comes in by
// OPENCODE_CONFIG_CONTENT, which overrides the user's own files.

const envOpencodeConfig = "OPENCODE_CONFIG_CONTENT"

var opencode = cli{
	program: "opencode", versionArgs: []string{"--version"}, tested: Version{1, 18, 33}, oldest: Version{1, 18, 33},
	plan: planOpencode,
	caps: Capabilities{
		Ways:         []Way{WayServer, WayPull, WayTyping},
		MidTurn:      "at the next tool boundary (prompt_async)",
		Idle:         "a turn is started (prompt_async)",
		States:       []string{"process", "server events", "title", "screen"},
		Conversation: "made by the channel, resumed by --session",
		Tools:        "MCP by its configuration",
		Approvals:    "server",
		PlanMode:     "--agent plan, and the agent of each prompt",
		NewMode:      "to plan and from plan to default " + WithItsNextMessage + ", another at its next start",
		Interrupt:    "abort of the session",
		Stop:         "shutdown request by mail, then the process tree",
		Config:       envOpencodeConfig + " and files in the member's bundle",
		Modes: []ModeMap{
			{team.ModeDefault, "as the person has it"}, {team.ModeAcceptEdits, "edit: allow"}, {team.ModePlan, "--agent plan"},
			{team.ModeDontAsk, "as the person has it"}, {team.ModeBypass, "edit, bash, webfetch: allow"}, {team.ModeDelegate, "--agent plan"},
		},
		Versions: []Difference{{"< 1.18.33", "no server is relied on: mail is typed when it is idle"}},
	},
}

func planOpencode(exe string, in Input, v Version) (launch, error) {
	l := launch{
		link:  Link{Ways: []Way{WayServer, WayTyping}, Prompt: firstPrompt(in), Conversation: in.Resume, Resumed: in.Resume != ""},
		files: []File{{"team.md", briefing(in) + "\n", 0o600}},
		env:   map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1"},
	}
	config := map[string]any{}
	if own := setting(in, envOpencodeConfig); own != "" {
		if err := json.Unmarshal([]byte(own), &config); err != nil {
			return launch{}, team.Errorf(team.CodeInvalid, "%s of %s is not a JSON object: %w", envOpencodeConfig, in.AgentID, err).
				WithReason(team.ReasonBadEnv).WithHint("unset " + envOpencodeConfig)
		}
	}
	merge(config, map[string]any{
		"mcp": map[string]any{"teamctl": map[string]any{
			"type": "local", "command": []string{exe, "mcp"}, "environment": toolEnv(in), "enabled": true,
		}},
		"instructions": []any{bundleFile(in, "team.md")},
	})
	mode := in.Mode
	if in.Plan {
		mode = team.ModePlan
	}
	argv := []string{"opencode"}
	switch mode {
	case team.ModeAcceptEdits:
		merge(config, map[string]any{"permission": map[string]any{"edit": "allow"}})
	case team.ModeBypass:
		merge(config, map[string]any{"permission": map[string]any{"edit": "allow", "bash": "allow", "webfetch": "allow"}})
	case team.ModePlan, team.ModeDelegate:
		argv = append(argv, "--agent", "plan")
	case team.ModeDefault, team.ModeDontAsk, "":
	}
	l.env[envOpencodeConfig] = oneLine(config)
	if v.atLeast(Version{1, 18, 33}) && in.Mint.Port != 0 {
		argv = append(argv, "--port", strconv.Itoa(in.Mint.Port), "--hostname", "127.0.0.1")
		l.env["OPENCODE_SERVER_PASSWORD"], l.env["OPENCODE_SERVER_USERNAME"] = in.Mint.Secret, "opencode"
		l.link.URL, l.link.User, l.link.Secret = "http://127.0.0.1:"+strconv.Itoa(in.Mint.Port), "opencode", in.Mint.Secret
	} else {
		l.link.Ways = []Way{WayTyping}
		if l.link.Prompt != "" {
			argv = append(argv, "--prompt", l.link.Prompt)
			l.link.Prompt = ""
		}
	}
	if in.Model != "" {
		argv = append(argv, "--model", in.Model)
	}
	if in.Resume != "" {
		argv = append(argv, "--session", in.Resume)
	}
	l.argv = append(argv, in.Command...)
	return l, nil
}

// merge merges src into dst: objects are joined, lists appended, other values replaced.
func merge(dst, src map[string]any) {
	for k, v := range src {
		switch v := v.(type) {
		case map[string]any:
			if d, ok := dst[k].(map[string]any); ok {
				merge(d, v)
				continue
			}
		case []any:
			if d, ok := dst[k].([]any); ok {
				dst[k] = append(d, v...)
				continue
			}
		}
		dst[k] = v
	}
}
