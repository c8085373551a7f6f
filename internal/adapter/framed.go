package adapter

import "strings"

// An input box with a frame. opencode draws one bar along each user message and along the box,
// whose last line names its agent and model, and closes only the box. The lowest line with a bar
// is therefore never the one that is typed into.

// framed returns the box: its first line, and the line after it. first == end means that there is
// none.
func (r *Rules) framed(lines []string) (first, end int) {
	for end = len(lines) - 1; end >= max(0, len(lines)-inputWithin); end-- {
		if !r.frame.MatchString(lines[end]) {
			continue
		}
		for first = end; first > 0 && r.input.MatchString(lines[first-1]); first-- {
		}
		return first, end
	}
	return 0, 0
}

// framedInput returns the text in a framed box.
func (r *Rules) framedInput(lines []string) (text string, ok bool) {
	first, end := r.framed(lines)
	if end-first < 2 { // lacks the line that is typed into
		return "", false
	}
	var typed []string
	group := r.input.SubexpIndex("text")
	for _, l := range lines[first : end-1] {
		if m := r.input.FindStringSubmatch(l); group >= 0 && m[group] != "" {
			typed = append(typed, m[group])
		}
	}
	return r.emptied(strings.Join(typed, "\n")), true
}

// newestBlock returns the lines from the last user message on, or from the last block drawn the
// same way: a dialog, if it replaces the box.
func (r *Rules) newestBlock(lines []string) []string {
	first, end := r.framed(lines)
	last := first - 1
	if first == end {
		last = len(lines) - 1
	}
	for last >= 0 && !r.turn.MatchString(lines[last]) {
		last--
	}
	for last > 0 && r.turn.MatchString(lines[last-1]) {
		last--
	}
	return lines[max(0, last):]
}
