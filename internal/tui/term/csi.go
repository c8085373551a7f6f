package term

import "strings"

// control is a control sequence, ESC [ and what follows (ECMA-48). (The parser of the library gives
// access past its memory if a sequence has more parameters than it has room for.)
type control struct {
	prefix, intermediate, final byte // 0 for none
	params                      []parameter
}

// parameter is a number of a control sequence, -1 for one that is left out. more: the next one
// belongs to it (a colon is between).
type parameter struct {
	n    int
	more bool
}

const (
	mostParams   = 32     // of a sequence; further ones are dropped
	largestParam = 65_535 // a larger one counts as this
)

// parseControl parses a whole control sequence.
func parseControl(seq string) (c control, ok bool) {
	rest, ok := strings.CutPrefix(seq, "\x1b[")
	if !ok || rest == "" || rest[len(rest)-1] < '@' || rest[len(rest)-1] > '~' {
		return c, false
	}
	c.final, rest = rest[len(rest)-1], rest[:len(rest)-1]
	if rest != "" && rest[0] >= '<' && rest[0] <= '?' {
		c.prefix, rest = rest[0], rest[1:]
	}
	if i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > ';' }); i >= 0 {
		c.intermediate, rest = rest[i], rest[:i]
	}
	if rest == "" {
		return c, true
	}
	p := parameter{n: -1}
	for i := 0; i <= len(rest); i++ {
		if i < len(rest) && rest[i] <= '9' {
			p.n = min(max(p.n, 0)*10+int(rest[i]-'0'), largestParam)
			continue
		}
		p.more = i < len(rest) && rest[i] == ':'
		if len(c.params) < mostParams {
			c.params = append(c.params, p)
		}
		p = parameter{n: -1}
	}
	return c, true
}

// param returns a parameter, or a value for one that is missing.
func (c control) param(i, or int) int {
	if i >= len(c.params) || c.params[i].n < 0 {
		return or
	}
	return c.params[i].n
}
