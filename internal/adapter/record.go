package adapter

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/teamctl/teamctl/team"
)

// A recorded screen is a captured text file without private content, named
// PROGRAM-VERSION-RULE.txt after the rule that must match it.
var screenName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z0-9][a-z0-9_-]*?)-(\d+\.\d+\.\d+)-([A-Za-z0-9][A-Za-z0-9_.-]*)\.txt$`)
})

// ScreenName returns the file name of a recorded screen. CodeInvalid (bad_screen) if the version
// is unknown or a part would not parse back.
func ScreenName(agent string, v Version, rule string) (string, error) {
	name := agent + "-" + v.String() + "-" + rule + ".txt"
	if a, w, r, ok := ParseScreenName(name); !ok || a != agent || w != v || r != rule {
		return "", team.Errorf(team.CodeInvalid, "%q is not a valid name of a recorded screen: PROGRAM-VERSION-RULE.txt", name).WithReason(team.ReasonBadScreen)
	}
	return name, nil
}

// ParseScreenName parses a name made by ScreenName.
func ParseScreenName(name string) (agent string, v Version, rule string, ok bool) {
	m := screenName().FindStringSubmatch(name)
	if m == nil {
		return "", v, "", false
	}
	v, ok = ParseVersion(m[2])
	return m[1], v, m[3], ok
}

// Private lists what a recorded screen must not reveal.
type Private struct {
	Home    string   // the user's home directory
	Dirs    []string // other directories, such as the repository
	User    string   // login name, replaced before an @
	Host    string
	Secrets []string // values of which a program may show the beginning or the end
}

// Replacements for private content.
const (
	standHome = "/home/ann"
	standDir  = "/home/ann/project"
)

// secretKnown is the minimum length of a part that is recognised as a secret.
const secretKnown = 8

// Scrub removes private content from a screen, and anything that looks like a key or a token, and
// returns which kinds it found. It does not find a text that the program has broken over two
// lines.
func (p Private) Scrub(screen string) (out string, gone []string) {
	step := func(kind string, f func(string) string) {
		if s := f(screen); s != screen {
			screen = s
			gone = append(gone, kind)
		}
	}
	step("token", maskTokens)
	for _, s := range p.Secrets {
		step("secret", func(t string) string { return maskSecret(t, s) })
	}
	step("id", func(t string) string {
		return patterns().id.ReplaceAllString(t, "00000000-0000-4000-8000-000000000000")
	})
	// Longest first: one may contain another.
	dirs := slices.SortedFunc(slices.Values(p.Dirs), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, d := range dirs {
		if d != p.Home {
			step("directory", func(t string) string { return replaceWord(t, d, standDir) })
		}
	}
	step("home", func(t string) string { return replaceWord(t, p.Home, standHome) })
	step("address", func(t string) string { return patterns().mail.ReplaceAllString(t, "ann@example.com") })
	step("user", func(t string) string {
		if p.User == "" {
			return t
		}
		return strings.ReplaceAll(t, p.User+"@", "ann@")
	})
	step("host", func(t string) string { return replaceWord(t, p.Host, "machine") })
	slices.Sort(gone)
	return screen, slices.Compact(gone)
}

// replaceWord replaces a path or a name unless it is part of a longer one; the part of a path
// below it stays.
func replaceWord(text, old, with string) string {
	if len(old) < 3 || old == "localhost" {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, old)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(old)
		if partOfName(text[:i], true) || partOfName(text[end:], false) {
			b.WriteString(text[:end])
		} else {
			b.WriteString(text[:i] + with)
		}
		text = text[end:]
	}
}

// partOfName reports whether a name continues at the end, or at the beginning, of text.
func partOfName(text string, atEnd bool) bool {
	if text == "" {
		return false
	}
	c := rune(text[0])
	if atEnd {
		c = rune(text[len(text)-1])
	}
	return c == '_' || c == '-' || c < unicode.MaxASCII && (unicode.IsLetter(c) || unicode.IsDigit(c))
}

type privatePatterns struct {
	id, mail, query, named, opaque *regexp.Regexp
	known                          []*regexp.Regexp // group 1 stays
}

var patterns = sync.OnceValue(func() privatePatterns {
	p := privatePatterns{
		id:     regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`),
		mail:   regexp.MustCompile(`\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b`),
		query:  regexp.MustCompile(`([?&][\w.-]+=)([^&\s]+)`),
		named:  regexp.MustCompile(`(?i)\b((?:bearer\s+|(?:token|secret|password|api[_ -]?key)["']?\s*[:=]\s*["']?))(\S{8,})`),
		opaque: regexp.MustCompile(`()\b([A-Za-z0-9]{32,})\b`),
	}
	for _, s := range []string{
		`\b(sk-(?:ant-|proj-|or-)?)([\w.-]{6,})`, `\b(gh[pousr]_)(\w{16,})`, `\b(github_pat_)(\w{16,})`, `\b(AIza)([\w-]{20,})`,
		`\b(xox[a-z]-)([\w-]{10,})`, `\b(AKIA)([0-9A-Z]{12,})`, `\b(eyJ)([\w-]+\.[\w-]+(?:\.[\w-]*)?)`,
	} {
		p.known = append(p.known, regexp.MustCompile(s))
	}
	return p
})

// maskTokens masks anything that looks like a key or a token, with the same width: a frame around
// it stays in place, and rules that read its beginning still match.
func maskTokens(text string) string {
	p := patterns()
	replace := func(re *regexp.Regexp, secret func(string) bool) {
		text = re.ReplaceAllStringFunc(text, func(all string) string {
			m := re.FindStringSubmatch(all)
			if !secret(m[2]) {
				return all
			}
			return m[1] + mask(m[2])
		})
	}
	always := func(string) bool { return true }
	for _, re := range p.known {
		replace(re, always)
	}
	replace(p.query, always)
	replace(p.named, func(s string) bool { return strings.ContainsAny(s, "0123456789") })
	replace(p.opaque, func(s string) bool {
		return strings.ContainsAny(s, "0123456789") && strings.IndexFunc(s, unicode.IsLetter) >= 0
	})
	return text
}

// mask replaces each letter and digit by an x.
func mask(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return 'x'
		}
		return r
	}, s)
}

// maskSecret masks a secret, or the part of its beginning or end that is shown.
func maskSecret(text, secret string) string {
	for n := len(secret); n >= secretKnown; n-- {
		for _, part := range []string{secret[:n], secret[len(secret)-n:]} {
			text = strings.ReplaceAll(text, part, mask(part))
		}
	}
	return text
}
