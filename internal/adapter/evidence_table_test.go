package adapter

import (
	"fmt"
	"strconv"
	"strings"
)

// Evidence describes a way into a program, and what shows that its model has a message whole.
type Evidence struct {
	Agent    string
	Way      string // event of a hook
	Versions string
	Most     int    // maximum length of an answer, with its frame and escapes; 0 for no limit
	Counts   string // evidence that makes a message accepted
	Without  string // handling of a message without evidence, or that is too long
}

// Evidences lists the ways of mail by hooks and servers, by program and version.
func Evidences() []Evidence {
	const (
		record  = "its transcript holds the whole message, in any generation"
		answer  = "an answer of the model since, in the same generation"
		again   = "given again after an interrupt, a turn that ended without it, 30 s, or a restart; it says that it may be known"
		restart = "given again after an interrupt or a restart; it says that it may be known"
	)
	var out []Evidence
	add := func(cli, versions string, v Version, events ...string) {
		counts, without := answer, restart
		if Records(cli, v) {
			counts, without = record, again
		}
		for _, e := range events {
			most := 0
			for _, g := range givings(cli, e, v) {
				most = max(most, g.most)
			}
			out = append(out, Evidence{cli, "hook " + e, versions, most, counts, without})
		}
	}
	prompts := []string{"UserPromptSubmit", "PostToolUse", "Stop"}
	add(Claude, "2.1.34", claudeOldest, prompts...)
	add(Claude, "2.1.112 to 2.1.328", claudeRecords, append(prompts, Wait)...)
	add(Claude, "2.1.329 and newer", claudeTested, append(prompts, Wait)...)
	add(Claude, "others", Version{2, 1, 35}, prompts...)
	add(Claude, "not known yet", Version{}, prompts...)
	out = append(out,
		Evidence{Codex, "its app-server", "all", 0, "its thread has the message", "the thread is read after 30 s, an interrupt, a turn that failed, and a restart of either side, and what it lacks is given again"},
		Evidence{Opencode, "its server", "all", 0, "its session has the message with the whole text",
			"the session is read after 30 s, a post without an answer and after a restart of either side, and what it lacks is posted again, with the same id"})
	add(Codex, "without its app-server", Version{}, prompts...)
	add(Gemini, "all", Version{}, "BeforeAgent", "AfterTool", "AfterAgent")
	return out
}

// EvidenceTable formats Evidences as Markdown.
func EvidenceTable() string {
	var b strings.Builder
	b.WriteString("| program | version | way | characters of an answer | accepted when | without that |\n|---|---|---|---|---|---|\n")
	for _, e := range Evidences() {
		most := "any number"
		if e.Most > 0 {
			most = strconv.Itoa(e.Most)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", e.Agent, e.Versions, e.Way, most, e.Counts, e.Without)
	}
	return b.String()
}
