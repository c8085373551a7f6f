package adapter

import (
	"regexp"
	"strings"
)

// AsksItself reports whether the program reports its permission requests by another way than its
// screen, so that no request needs to be made from a dialog there.
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

// dialog returns the region down to the last answer that has a key, without the parts that move
// while the dialog is open: the mark of the selected answer, and spinners. It starts with the
// region and not where a frame seems to start: the text of a tool call may contain any line, and
// none may be left out of the comparison.
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

// dialogFrame has the characters drawn around a dialog, dialogMarks those that precede a line and
// move. None of them has a meaning in a command.
const (
	dialogFrame = " \t\u00a0│┃║─━═╭╮╰╯┌┐└┘▄▀▌▐"
	dialogMarks = dialogFrame + "❯›●○•◆⏺✻✶✳✢⠁⠂⠄⡀⢀⠠⠐⠈⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
)
