package team

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"unicode"
)

// LeadName is the reserved name of every team's lead.
const LeadName = "team-lead"

// DefaultTeam is the team of a caller that names none.
const DefaultTeam = "default"

// SystemName is the sender of the team's own notices.
const SystemName = "system"

// reserved are the names that no member can have, and what each means.
var reserved = map[string]string{
	LeadName:     "the lead",
	SystemName:   "the team's own notices",
	"supervisor": "what the supervisor does by itself", // in events and answers
	"person":     "the person",                         // as who answers approvals
	"all":        "the whole team",                     // as a recipient
}

const (
	maxTeamName  = 50
	maxAgentName = 32
	maxInboxName = 200 // bytes; a file name has 255, and suffixes come behind it
)

const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// spelled reports whether s has at most some bytes, begins with one of first and has only those and
// others. (A regular expression would bring its compiler into the program of every agent.)
func spelled(s string, most int, first, others string) bool {
	return s != "" && len(s) <= most && strings.IndexByte(first, s[0]) >= 0 && strings.Trim(s, first+others) == ""
}

// TeamKey turns a raw team name into the key that names its directory: every
// printable character outside [a-zA-Z0-9] becomes '-', letters are lower-cased.
// It refuses (CodeInvalid) empty names, names over 50 characters, '@', path
// separators, control and invisible characters, and names without a letter or digit.
func TeamKey(raw string) (string, error) {
	return sanitize("team", raw, maxTeamName)
}

// AgentKey turns a raw agent name into its key, ^[a-z0-9][a-z0-9-]{0,31}$. It
// refuses what TeamKey refuses, and the names that mean something else.
func AgentKey(raw string) (string, error) {
	key, err := key(raw)
	if err != nil {
		return "", err
	}
	if what, ok := reserved[key]; ok {
		return "", Errorf(CodeInvalid, "agent name %q is reserved for %s", raw, what).
			WithReason(ReasonReservedName).WithHint("choose another name, for example " + key + "-2")
	}
	return key, nil
}

// IsKey reports whether a name is its own key, as those of members and of further
// repositories are.
func IsKey(name string) bool {
	k, err := key(name)
	return err == nil && k == name
}

func key(raw string) (string, error) {
	key, err := sanitize("agent", raw, maxAgentName)
	return strings.TrimLeft(key, "-"), err
}

func sanitize(kind, raw string, limit int) (string, error) {
	refuse := func(why string) (string, error) {
		return "", Errorf(CodeInvalid, "%s name %q %s", kind, raw, why).
			WithReason(ReasonInvalidName).WithHint("use letters, digits and '-', for example \"my-" + kind + "\"")
	}
	if strings.TrimSpace(raw) == "" {
		return refuse("is empty")
	}
	// A combining mark melts into the character before it, so that both ways to
	// write "é" (composed, and as macOS spells it: e and an accent) are one key.
	var key []byte
	n := 0
	for _, r := range raw {
		switch {
		case r == '@':
			return refuse("contains '@'")
		case r == '/' || r == '\\':
			return refuse("contains a path separator")
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return refuse("contains a control or invisible character")
		}
		if unicode.Is(unicode.M, r) && n > 0 {
			key[n-1] = '-'
			continue
		}
		n++
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			key = append(key, byte(r))
		case r >= 'A' && r <= 'Z':
			key = append(key, byte(r)+('a'-'A'))
		default:
			key = append(key, '-')
		}
	}
	if n > limit || len(raw) > 8*limit { // the bytes count too: marks have no end
		return refuse(fmt.Sprintf("is longer than %d characters", limit))
	}
	if strings.Contains(raw, "..") {
		return refuse("contains '..'")
	}
	if len(bytes.Trim(key, "-")) == 0 {
		return refuse("has no letter or digit of a-z, A-Z, 0-9")
	}
	return string(key), nil
}

// UniqueName returns name, or name-2, name-3, ... when taken reports the name
// (compared without case) as used. The result keeps to the 32 characters of AgentKey.
func UniqueName(name string, taken func(string) bool) string {
	if !taken(strings.ToLower(name)) {
		return name
	}
	for i := 2; ; i++ {
		suffix := fmt.Sprintf("-%d", i)
		base := name
		if len(base)+len(suffix) > maxAgentName {
			base = strings.TrimRight(base[:maxAgentName-len(suffix)], "-")
		}
		if !taken(strings.ToLower(base + suffix)) {
			return base + suffix
		}
	}
}

// AgentID is name@team.
func AgentID(name, teamKey string) string { return name + "@" + teamKey }

// ParseAgentID splits an agent id at its first '@'; ok is false where there is none.
func ParseAgentID(id string) (name, teamKey string, ok bool) {
	return strings.Cut(id, "@")
}

// InboxName is an agent name as it stands in a mailbox's file name: '@' becomes '-'.
// It refuses path separators, "..", control characters and the empty name.
func InboxName(agent string) (string, error) {
	name := strings.ReplaceAll(agent, "@", "-")
	if name == "" || len(name) > maxInboxName || strings.ContainsAny(name, "/\\\x00") || strings.Contains(name, "..") || strings.HasPrefix(name, ".") {
		return "", Errorf(CodeInvalid, "%q cannot name a mailbox", agent)
	}
	for _, r := range name {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return "", Errorf(CodeInvalid, "%q cannot name a mailbox", agent)
		}
	}
	return name, nil
}

// LeadSessionKey is agent:<agentType>:team:<team>; TeammateSessionKey is
// agent:<agentType>:teammate:<uuid> (document 000, session key patterns).
func LeadSessionKey(agentType, teamKey string) string {
	return "agent:" + orDefault(agentType) + ":team:" + teamKey
}

// TeammateSessionKey returns a key with a new uuid.
func TeammateSessionKey(agentType string) string {
	return "agent:" + orDefault(agentType) + ":teammate:" + NewUUID()
}

func orDefault(s string) string {
	if s == "" {
		return "default"
	}
	return s
}

// NewUUID returns a random (version 4) UUID.
//
// It is not taken from a library: the usual ones import package net for the other versions, which
// would link the C library into cmd/teamctl-shim.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Colors are the names handed out to members in order; a palette used up starts again.
var Colors = []string{"blue", "green", "yellow", "purple", "orange", "pink", "cyan", "red"}

// NextColor is the first colour not used yet; with all used, the one that the
// number of members points at.
func NextColor(used []string) string {
	seen := make(map[string]bool, len(used))
	for _, c := range used {
		seen[c] = true
	}
	for _, c := range Colors {
		if !seen[c] {
			return c
		}
	}
	return Colors[len(used)%len(Colors)]
}
