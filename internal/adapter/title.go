package adapter

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/teamctl/teamctl/team"
)

// TitleRule interprets the title that a program gives its terminal.
type TitleRule struct {
	Match string `yaml:"match"`
	State string `yaml:"state"`

	re *regexp.Regexp
}

// osc matches a title (OSC 0 or 2), ended by BEL or ST.
var osc = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\][02];([^\x07\x1b]*)(?:\x07|\x1b\\)`) })

// LastTitle returns the last title in a program's output; "" for none. A title whose end is cut
// off does not count.
func LastTitle(output []byte) string {
	all := osc().FindAllSubmatch(output, -1)
	if len(all) == 0 {
		return ""
	}
	return string(bytes.ToValidUTF8(all[len(all)-1][1], nil))
}

// Title returns what a title shows about the agent; "" for nothing.
func (r *Rules) Title(title string) team.Activity {
	if r == nil || title == "" {
		return ""
	}
	for _, t := range r.Titles {
		if t.re.MatchString(title) {
			return team.Activity(t.State)
		}
	}
	return ""
}

// Escapes reports whether Escape interrupts a turn of the kind; otherwise it is Ctrl-C.
func Escapes(agent string) bool {
	switch agent {
	case Claude, Codex, Gemini, Opencode:
		return true
	}
	return false
}
