package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/teamctl/teamctl/internal/view"
	"github.com/teamctl/teamctl/team"
)

// Keymap has the keys of each command and action by its id. An id that it lacks has no key.
type Keymap map[string][]string

// binding is a meaning that a key can have.
type binding struct {
	id, title string
	keys      []string     // by default
	action    *view.Action // nil for a command of the screen
}

// bindings returns everything that can have a key, commands first. What cannot be taken back has
// none.
func bindings() []binding {
	var out []binding
	for _, c := range commands() {
		out = append(out, binding{id: c.id, title: c.title, keys: c.keys})
	}
	for _, a := range view.Actions() {
		b := binding{id: a.ID, title: a.Title, action: &a}
		if a.Key != "" {
			b.keys = []string{a.Key}
		}
		out = append(out, b)
	}
	return out
}

// DefaultKeys returns the keys of a screen whose person has chosen none.
func DefaultKeys() Keymap {
	k := Keymap{}
	for _, b := range bindings() {
		k[b.id] = b.keys
	}
	return k
}

// first returns the key of an id that is shown, "" for none.
func (k Keymap) first(id string) string {
	if keys := k[id]; len(keys) > 0 {
		return keys[0]
	}
	return ""
}

// hint returns a key and what it does, as the last line shows it; "" if there is no key.
func (k Keymap) hint(id, words string) string {
	if key := k.first(id); key != "" {
		return key + " " + words
	}
	return ""
}

// commandOf returns the command of a key, "" for none.
func (k Keymap) commandOf(key string) string {
	if key == leaveKey {
		return "quit"
	}
	for _, c := range commands() {
		if slices.Contains(k[c.id], key) {
			return c.id
		}
	}
	return ""
}

// leaveKey leaves whatever is open, in every configuration.
const leaveKey = "ctrl-c"

// onlyIn has the places of the commands that do nothing in the others.
func onlyIn() map[string][]place {
	return map[string][]place{
		"base": {inChanges}, "across": {inChanges}, "sides": {inChanges}, "pager": {inChanges, inPager}, "next-change": {inChanges, inScreen, inLog, inPager}, "previous-change": {inChanges, inScreen, inLog, inPager}, "next-file": {inChanges}, "previous-file": {inChanges},
		"turn":    {inTasks, inChanges, inTime},
		"zoom-in": {inTime}, "zoom-out": {inTime}, "follow": {inTime}, "noise": {inTime},
	}
}

// places returns where a binding has a meaning, nil for everywhere.
func (b binding) places() []place {
	if b.action == nil {
		return onlyIn()[b.id]
	}
	var out []place
	for _, on := range b.action.On {
		switch on {
		case view.OnTeam:
			return nil
		case view.OnChange, view.OnMerge:
			out = append(out, inChanges)
		case view.OnMessage:
			out = append(out, inMail)
		default:
			out = append(out, inTeam, inNeeds, inTasks, inUsage, inScreen, inLog, inTime)
		}
	}
	return out
}

// together reports whether one key could mean both: they have a meaning in the same place, and on
// the same thing if both are actions. Those that share a key by default may share any.
func together(a, b binding) bool {
	for _, k := range a.keys {
		if slices.Contains(b.keys, k) {
			return false
		}
	}
	if a.action != nil && b.action != nil {
		onTeam := slices.Contains(a.action.On, view.OnTeam) || slices.Contains(b.action.On, view.OnTeam)
		return onTeam || slices.ContainsFunc(a.action.On, func(t view.Thing) bool { return slices.Contains(b.action.On, t) })
	}
	p, q := a.places(), b.places()
	return p == nil || q == nil || slices.ContainsFunc(p, func(x place) bool { return slices.Contains(q, x) })
}

// named lists the keys that are not characters.
var named = []string{
	"enter", "esc", "tab", "backtab", "space", "backspace", "delete", "up", "down", "left", "right", "home", "end", "pgup", "pgdn",
}

// checkKey returns why a text is no key, "" if it is one.
func checkKey(s string) string {
	switch {
	case s == leaveKey:
		return leaveKey + " always leaves, and cannot be given away"
	case slices.Contains(named, s):
		return ""
	case s == " ":
		return `the space bar is called "space"`
	}
	if letter, ok := strings.CutPrefix(s, "ctrl-"); ok && len(letter) == 1 && letter >= "a" && letter <= "z" {
		if same, ok := map[string]string{"h": "backspace", "i": "tab", "m": "enter"}[letter]; ok {
			return fmt.Sprintf("terminals send %s as %q", s, same)
		}
		return ""
	}
	if r, n := utf8.DecodeRuneInString(s); n == len(s) && n > 0 && r != utf8.RuneError && view.Width(s) > 0 && view.Clean(s) == s {
		return ""
	}
	if c := team.Closest(s, named); c != "" {
		return fmt.Sprintf("unknown key %q (did you mean %s?)", view.Clean(s), c)
	}
	return fmt.Sprintf("unknown key %q (a key is one character, ctrl-a to ctrl-z, or %s)", view.Clean(s), strings.Join(named, ", "))
}
