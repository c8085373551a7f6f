package adapter

import (
	"regexp"
	"strings"
)

// AsksItself reports whether the program tells of what it wants permission for by
// another way than its screen, so that nothing has to be made of a dialog there.
func (l Link) AsksItself() bool {
	if len(l.Ways) == 0 {
		return false
	}
	switch l.Ways[0] {
	case WayAppServer, WayServer, WayNative, WayACP, WayMailbox:
		return true
	case WayHooks:
		if l.Agent == Claude {
			v, _ := ParseVersion(l.Version)
			return v.atLeast(claudeDecides)
		}
		return true
	case WayPull, WayTyping:
	}
	return false
}

// dialog is what is to be seen down to the last answer that a key gives, without what
// moves while the dialog stands: the mark of the answer that is chosen, and spinners. It
// begins where the region does and not where a frame seems to: what an agent wants to do
// may have any line in it, and none of it may be left out of the comparison.
func (l *Rule) dialog(region []string) string {
	last := -1
	for _, re := range []*regexp.Regexp{l.allow, l.deny} {
		for i, line := range region {
			if re.MatchString(line) {
				last = max(last, i)
			}
		}
	}
	var out []string
	for _, line := range region[:last+1] {
		line = strings.Join(strings.Fields(strings.TrimLeft(strings.Trim(line, dialogFrame), dialogMarks)), " ")
		if line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// dialogFrame is what is drawn around a dialog, dialogMarks what stands before a line and
// moves. None of it is a sign that means anything in a command.
const (
	dialogFrame = " \t\u00a0│┃║─━═╭╮╰╯┌┐└┘▄▀▌▐"
	dialogMarks = dialogFrame + "❯›●○•◆⏺✻✶✳✢⠁⠂⠄⡀⢀⠠⠐⠈⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
)
