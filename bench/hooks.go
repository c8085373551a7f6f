package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/team"
)

// hooks: what an agent waits for before and after each of its tool calls while it has no mail, against
// an empty Go program.
var hooks = benchmark{name: "hooks", title: "The hook of an agent without mail", run: runHooks, note: hooksNote}

const hooksNote = "From start to exit, with an input of 2 kB. teamctl-shim asks the supervisor, which looks into the ledger and writes what the hook has seen; teamctl hook opens the ledger itself, and is what runs without the small program."

// goalHook bounds the hook of the small program, as a multiple of an empty Go program.
const goalHook = 4.0

func runHooks(ctx context.Context, e env) (string, error) {
	teamctl, err := filepath.Abs(e.teamctl)
	if err != nil {
		return "", err
	}
	small := bundle.Small(teamctl)
	if small == nil {
		return "", fmt.Errorf("there is no %s beside %s", bundle.SmallName, teamctl)
	}
	empty, err := emptyProgram(ctx, e.dir)
	if err != nil {
		return "", err
	}
	home := team.Home{Dir: filepath.Join(e.dir, "home")}
	environ := append(os.Environ(), team.EnvHome+"="+home.Dir, team.EnvRuntime+"="+filepath.Join(e.dir, "r"), team.EnvTeam+"=bench", "TMUX=", "TMUX_PANE=")
	if err := benchTeam(ctx, teamctl, e.dir, environ); err != nil {
		return "", err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := quiet(end, environ, teamctl, "delete", "bench", "--force"); err != nil {
			fmt.Fprintln(e.log, "end the team:", err)
		}
	}()
	if err := quiet(ctx, environ, teamctl, "spawn", "ann", "--backend", "pty", "--", "sleep", "100000"); err != nil {
		return "", err
	}
	var l backends.Launch
	data, err := os.ReadFile(home.Team("bench").Bundle("ann").Launch())
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		return "", fmt.Errorf("read the launch: %w", err)
	}
	hookEnv := append(l.Env, team.EnvGen+"="+l.Generation)
	input := filepath.Join(e.dir, "input.json")
	text := `{"session_id":"c1","tool_name":"Bash","tool_input":{"command":"true"},"tool_response":"` + strings.Repeat("x", 2<<10) + `"}`
	if err := os.WriteFile(input, []byte(text), 0o600); err != nil {
		return "", err
	}
	emptyGo := &program{label: "an empty Go program", argv: []string{empty}}
	all := []*program{emptyGo}
	for _, event := range []string{"PreToolUse", "PostToolUse"} {
		line := []string{"hook", "claude", event}
		all = append(all,
			&program{label: "teamctl-shim, " + event, argv: append(small[:len(small):len(small)], line...), env: hookEnv, input: input},
			&program{label: "teamctl hook, " + event, argv: append([]string{teamctl}, line...), env: hookEnv, input: input})
	}
	if err := interleave(ctx, e.rounds, all); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n| program | median ms | p90 ms | x empty Go | goal |\n|---|---|---|---|---|\n", where(e.rounds), load())
	for _, p := range all {
		goal := ""
		if strings.HasPrefix(p.label, bundle.SmallName) {
			goal = verdict(ratio(p, emptyGo), goalHook)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f | %s |\n", p.label, ms(median(p.times)), ms(quantile(p.times, 0.9)), ratio(p, emptyGo), goal)
	}
	return b.String(), nil
}
