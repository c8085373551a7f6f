package view

import (
	"slices"
	"strings"

	"github.com/teamctl/teamctl/team"
)

// logKinds lists the kinds of the log with the prefixes of their events; the last has the rest.
var logKinds = []struct {
	kind     string
	prefixes []string
}{
	{"everything", nil},
	{"tasks", []string{team.TaskEvents, "lease."}},
	{"members", []string{team.MemberEvents, "agent.", "hook.", "role.", "worktree."}},
	{"requests", []string{team.ApprovalEvents, "permissions."}},
	{"mail", []string{team.MessageEvents, "mailbox."}},
	{"merges", []string{team.MergeEvents, "review."}},
	{"turns", []string{team.TurnEvents, "session."}},
	{"usage", []string{"usage."}},
	{"other", nil},
}

// LogKinds returns the kinds of the log, the one with all events first.
func LogKinds() (out []string) {
	for _, k := range logKinds {
		out = append(out, k.kind)
	}
	return out
}

// InLog reports whether an event belongs to a kind of the log.
func InLog(kind, what string) bool {
	has := func(prefixes []string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(what, p) })
	}
	if kind == logKinds[0].kind || kind == "" {
		return true
	}
	for _, k := range logKinds {
		if kind == k.kind && k.prefixes != nil {
			return has(k.prefixes)
		}
	}
	return !slices.ContainsFunc(logKinds, func(k struct {
		kind     string
		prefixes []string
	},
	) bool {
		return has(k.prefixes)
	})
}

// Protocol returns an event without a sentence in the words of the log.
func Protocol(e Happened) string {
	text := e.What
	if e.Who != "" {
		text = e.Who + ": " + text
	}
	if e.ID != "" {
		text += " " + e.ID
	}
	if e.After != "" {
		text += ", " + e.Before + " -> " + e.After
	}
	return text
}
