package team

import (
	"encoding/binary"
	"slices"
	"strings"
)

// AboutSessions reports whether an operation is about sessions, specs or models.
func AboutSessions(name string) bool {
	for _, p := range aboutSessions {
		if wild(p, name) {
			return true
		}
	}
	return false
}

var aboutSessions = []string{"session_*", "agent_*", "agents_*", "models_*", "subagent_*"}

// Restricted are the tools that a session of kind subagent or cron has only where its
// spec's Allow names them: commands, pages, servers of other people, sessions and specs.
func Restricted() []string {
	return append([]string{"shell", "shell_output", "shell_kill", "fetch", "mcp__*"}, aboutSessions...)
}

// In is what the filter of a spec leaves in a session of that kind.
func (f Filter) In(k SessionKind) Filter {
	if k != SessionSubagent && k != SessionCron || f.Allow != nil {
		return f
	}
	f.Deny = append(slices.Clone(f.Deny), Restricted()...)
	return f
}

// maxFilterStates bounds the comparison of two filters.
const maxFilterStates = 20_000

// Beyond returns a name that f allows and other does not; ok is false where there is
// none. What cannot be compared within bounds counts as beyond.
//
// The patterns of both filters run at once over every text that can tell them apart; a
// state is the set of places that each pattern may have reached.
func (f Filter) Beyond(other Filter) (name string, ok bool) {
	var patterns []string
	part := func(list []string, all bool) (from, to int) {
		if list == nil && all {
			list = []string{"*"}
		}
		from = len(patterns)
		patterns = append(patterns, list...)
		return from, len(patterns)
	}
	aFrom, aTo := part(f.Allow, true)
	dFrom, dTo := part(f.Deny, false)
	oFrom, oTo := part(other.Allow, true)
	eFrom, eTo := part(other.Deny, false)
	letters := letters(patterns)
	start := make(reached, len(patterns))
	for i, p := range patterns {
		start[i] = closure(p, map[int]bool{0: true})
	}
	type node struct {
		at   reached
		text string
	}
	seen := map[string]bool{} // without the start: the empty text is not a name
	for queue := []node{{start, ""}}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		ends := func(from, to int) bool {
			for i := from; i < to; i++ {
				if n.at[i][len(patterns[i])] {
					return true
				}
			}
			return false
		}
		if n.text != "" && ends(aFrom, aTo) && !ends(dFrom, dTo) && (!ends(oFrom, oTo) || ends(eFrom, eTo)) {
			return n.text, true
		}
		if len(seen) > maxFilterStates {
			return "*", true
		}
		for _, c := range letters {
			next := make(reached, len(patterns))
			for i, p := range patterns {
				next[i] = step(p, n.at[i], c)
			}
			if key := next.key(); !seen[key] {
				seen[key] = true
				queue = append(queue, node{next, n.text + string(c)})
			}
		}
	}
	return "", false
}

// letters are the bytes of patterns, and one that none of them has.
func letters(patterns []string) (out []byte) {
	other := byte('x')
	text := strings.Join(patterns, "")
	for c := range 256 {
		switch {
		case byte(c) == '*':
		case strings.IndexByte(text, byte(c)) >= 0:
			out = append(out, byte(c))
		case c >= 'a' && c <= 'z':
			other = byte(c)
		}
	}
	return append(out, other)
}

// reached are, for each pattern, the places up to which it may have matched.
type reached []map[int]bool

func (r reached) key() string {
	var b []byte
	for _, places := range r {
		list := make([]int, 0, len(places))
		for p := range places {
			list = append(list, p)
		}
		slices.Sort(list)
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, p := range list {
			b = binary.AppendUvarint(b, uint64(p))
		}
	}
	return string(b)
}

// step is where a pattern may be after one more byte.
func step(pattern string, at map[int]bool, c byte) map[int]bool {
	next := map[int]bool{}
	for p := range at {
		switch {
		case p == len(pattern):
		case pattern[p] == '*':
			next[p] = true
		case pattern[p] == c:
			next[p+1] = true
		}
	}
	return closure(pattern, next)
}

// closure adds the places that are reached by a star that is nothing.
func closure(pattern string, at map[int]bool) map[int]bool {
	list := make([]int, 0, len(at))
	for p := range at {
		list = append(list, p)
	}
	for _, p := range list {
		for ; p < len(pattern) && pattern[p] == '*'; p++ {
			at[p+1] = true
		}
	}
	return at
}
