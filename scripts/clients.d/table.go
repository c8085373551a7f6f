package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/teamctl/teamctl/internal/agentlab"
)

// result is one cell.
type result struct {
	check, client string
	note          string
	err           error
	took          time.Duration
}

// table has the results in the order in which they came.
type table struct{ results []result }

// add adds a result and prints it: a run takes half an hour.
func (t *table) add(r result) {
	t.results = append(t.results, r)
	fmt.Fprint(os.Stderr, r.line())
}

func (t *table) passed() bool {
	for _, r := range t.results {
		if r.err != nil {
			return false
		}
	}
	return len(t.results) > 0
}

func (r result) word() string {
	switch {
	case r.err != nil:
		return "FAILS"
	case r.note != "":
		return r.note
	}
	return "yes"
}

// line is one result for a terminal.
func (r result) line() string {
	return fmt.Sprintf("%-14s %4.0fs %-40s %s\n", r.client, r.took.Seconds(), r.check, r.word())
}

// markdown is the table, followed by the reasons of failures.
func (t *table) markdown() string {
	var names, rows []string
	cells := map[string]result{}
	for _, r := range t.results {
		if !has(names, r.client) {
			names = append(names, r.client)
		}
		if !has(rows, r.check) {
			rows = append(rows, r.check)
		}
		cells[r.check+"\x00"+r.client] = r
	}
	var b strings.Builder
	b.WriteString("# What works with the real programs\n\n")
	b.WriteString("`scripts/test-clients` runs each program as a teammate in a real tmux, with an empty home directory, against\n")
	b.WriteString("a scripted model. A message has arrived when it is in a request to the model.\n\n")
	b.WriteString("| |")
	for _, n := range names {
		b.WriteString(" " + n + version(n) + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row + " |")
		for _, n := range names {
			word := "-"
			if r, ok := cells[row+"\x00"+n]; ok {
				word = r.word()
			}
			b.WriteString(" " + word + " |")
		}
		b.WriteString("\n")
	}
	first := true
	for _, r := range t.results {
		if r.err == nil {
			continue
		}
		if first {
			b.WriteString("\nWhat fails:\n\n")
			first = false
		}
		fmt.Fprintf(&b, "- %s, %s: %s\n", r.client, r.check, strings.ReplaceAll(strings.TrimSpace(r.err.Error()), "\n", " "))
	}
	return b.String()
}

func version(name string) string {
	for _, c := range agentlab.Clients() { // an older version has it in its name
		if c.Name == name {
			return " " + c.Version
		}
	}
	return ""
}

func has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
