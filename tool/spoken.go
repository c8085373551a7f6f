package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/teamctl/teamctl/inbox"
	"github.com/teamctl/teamctl/ledger"
	"github.com/teamctl/teamctl/team"
)

// Spoken is a message in words.
type Spoken struct {
	Line     string // for a list
	Text     string
	Protocol bool // its text is data for programs, which people do not read
}

// Speak returns a message in words.
func Speak(m ledger.Message) Spoken {
	f, ok := inbox.Parse(m.Text)
	switch {
	case ok:
		text, line := describe(f), m.Summary
		if _, idle := f.(inbox.IdleNotification); idle { // its summary does not say how the turn ended
			line = ""
		}
		return Spoken{Line: inbox.Summary("", cmp.Or(line, text)), Text: text, Protocol: true}
	case !talks(m.Kind) && strings.HasPrefix(strings.TrimSpace(m.Text), "{"):
		word := cmp.Or(m.Summary, strings.ReplaceAll(string(m.Kind), "_", " "))
		return Spoken{Line: inbox.Summary("", word), Text: word, Protocol: true}
	}
	return Spoken{Line: inbox.Summary("", cmp.Or(m.Summary, m.Text)), Text: m.Text}
}

// talks reports whether people and agents write the text of a kind.
func talks(k team.Kind) bool {
	switch k {
	case team.KindMessage, team.KindBroadcast, team.KindTaskRequest, team.KindTaskResponse, team.KindInfo, team.KindError:
		return true
	default:
		return false
	}
}

// describe is inbox.Describe, with the input of a tool as a line for each field.
func describe(f inbox.Frame) string {
	p, ok := f.(inbox.PermissionRequest)
	if !ok {
		return inbox.Describe(f)
	}
	lines := []string{"Permission is asked to use " + p.ToolName + "."}
	if p.Description != "" {
		lines = append(lines, p.Description)
	}
	var input map[string]json.RawMessage
	_ = json.Unmarshal(p.Input, &input) // not an object: it has no fields
	for _, name := range slices.Sorted(maps.Keys(input)) {
		var s string
		if json.Unmarshal(input[name], &s) != nil {
			s = string(input[name])
		}
		lines = append(lines, name+": "+s)
	}
	return strings.Join(lines, "\n")
}

// Alike returns the members of a group, "worker-*", without the caller: those whose names continue
// with a number. ok is false for what names no group.
func (t *Team) Alike(ctx context.Context, c Caller, group string) (names []string, ok bool, err error) {
	head, ok := strings.CutSuffix(group, "*")
	if !ok {
		return nil, false, nil
	}
	members, err := t.Ledger.Members(ctx, false)
	if err != nil {
		return nil, true, err
	}
	for _, m := range members {
		number, ok := strings.CutPrefix(m.Name, head)
		if ok && number != "" && strings.Trim(number, "0123456789") == "" && m.Name != c.Name {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return nil, true, team.Errorf(team.CodeNotFound, "no member is called %s with a number", group).WithReason(team.ReasonMemberNotFound).WithHint("teamctl ps")
	}
	return names, true, nil
}
