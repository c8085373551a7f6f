package adapter

import (
	"fmt"
	"strings"
)

// Evidence describes the ways into a version of a program, and what shows that its model has
// a message whole.
type Evidence struct {
	Agent    string
	Versions string
	Hooks    []HookCap // hooks that deliver mail; none where a server does
	Server   string
	Counts   string // evidence that makes a message accepted, as a sentence
	Without  string // handling of a message without evidence, as sentences
}

// HookCap is the maximum length of an answer of a hook, in characters, with its frame and
// escapes.
type HookCap struct {
	Event string
	Most  int
}

// Evidences lists the ways of mail by hooks and servers, by program and version.
func Evidences() []Evidence {
	const (
		record  = "Its transcript holds the whole message. What a hook has added counts once the model has answered. The transcript counts after a restart, too."
		answer  = "Its model has answered since, in the same process."
		again   = "The message is delivered again after an interrupt, after a turn that ends without it, after 30 s, and after a restart. It then says that it may be known."
		either  = "Its model has answered since, in the same process, or its transcript holds the whole message and a later answer."
		restart = "The message is delivered again after an interrupt and after a restart. It then says that it may be known."
		kept    = "The message is delivered again after an interrupt, after a turn that ends without it, and after 30 s. After a restart, the agent is reminded of what its transcript holds. What the transcript lacks, and what its next answer does not follow, is delivered again. It then says that it may be known."
	)
	var out []Evidence
	add := func(cli, versions string, v Version, events ...string) {
		e := Evidence{Agent: cli, Versions: versions, Counts: answer, Without: restart}
		if Records(cli, v) {
			e.Counts, e.Without = record, again
		}
		if cli == Claude && v.atLeast(claudeKeeps) {
			e.Without = kept
		}
		if RecordsAnswered(cli) {
			e.Counts = either
		}
		for _, event := range events {
			most := 0
			for _, g := range givings(cli, event, v) {
				most = max(most, g.most)
			}
			e.Hooks = append(e.Hooks, HookCap{event, most})
		}
		out = append(out, e)
	}
	prompts := []string{"UserPromptSubmit", "PostToolUse", "Stop"}
	add(Claude, "2.1.34", claudeOldest, prompts...)
	add(Claude, "2.1.35 to 2.1.111", Version{2, 1, 35}, prompts...)
	add(Claude, "2.1.112 to 2.1.328", claudeRecords, append(prompts, Wait)...)
	add(Claude, "2.1.329 and newer", claudeTested, append(prompts, Wait)...)
	add(Claude, "not known yet", Version{}, prompts...)
	out = append(out,
		Evidence{Agent: Codex, Versions: "0.169.0 and newer", Server: "app-server", Counts: "Its thread holds the message.",
			Without: "teamctl reads the thread after 30 s, after an interrupt, after a failed turn, and after a restart of Codex or the supervisor. It delivers again what the thread lacks."},
		Evidence{Agent: Opencode, Versions: "all", Server: "HTTP server", Counts: "Its session holds the whole message.",
			Without: "teamctl reads the session after 30 s, after a post that was not answered, and after a restart of opencode or the supervisor. It posts again what the session lacks, with the same id."})
	add(Codex, "without its app-server", Version{}, prompts...)
	add(Gemini, "all", Version{}, "BeforeAgent", "AfterTool", "AfterAgent")
	return out
}

// EvidenceTable formats Evidences as Markdown.
func EvidenceTable() string {
	var b strings.Builder
	b.WriteString("| program | version | ways in, and the longest answer in characters | a message is accepted when | otherwise |\n|---|---|---|---|---|\n")
	for _, e := range Evidences() {
		ways := []string{e.Server + ", any length"}
		if len(e.Hooks) > 0 {
			ways = nil
		}
		for _, h := range e.Hooks {
			ways = append(ways, fmt.Sprintf("`%s` %d", h.Event, h.Most))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.Agent, e.Versions, strings.Join(ways, "<br>"), e.Counts, e.Without)
	}
	return b.String()
}
