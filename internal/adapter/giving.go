package adapter

import (
	"strings"
	"unicode/utf16"
)

// form is a shape of the answer with which a hook hands text over.
type form string

// Forms of an answer: context goes with the turn that goes on, block ends no turn but has
// it go on with the text, wake is the answer of the hook that waits in the background.
const (
	formContext form = "context"
	formBlock   form = "block"
	formWake    form = "wake"
)

// giving is one form of answer and the most characters that a finished answer may have,
// below what the program was seen to take whole. A program counts in UTF-16.
type giving struct {
	form     form
	most     int
	entities bool // angle brackets of what is handed over are made entities before it is cut
}

// count is how many characters a part of an answer has for the program.
func (g giving) count(s string) int {
	n := characters(s)
	if g.entities {
		n += (len("&lt;") - 1) * (strings.Count(s, "<") + strings.Count(s, ">"))
	}
	return n
}

// What the programs were seen to show their model whole, less what a frame of theirs takes.
// A message with its frame and escapes has at most 210,000 characters.
const (
	claudeContext = 9_500   // of 10,000
	geminiContext = 30_000  // of the last 32,000 that stay of a tool's output
	wholeMessage  = 240_000 // 250,000 and more were seen whole
)

// givings are the forms of answer that a version of a program takes at an event, the
// preferred one first. A version that was not tried has the least of those that were.
func givings(cli, event string, v Version) []giving {
	kind := form(hookTables[cli][event].mail)
	switch {
	case kind == "":
		return nil
	case cli == Claude && kind == formContext:
		if event == "PostToolUse" && v == claudeOldest {
			return []giving{{form: formContext, most: wholeMessage}}
		}
		return []giving{{form: formContext, most: claudeContext}}
	case cli == Claude && kind == formBlock && !v.Known():
		return []giving{{form: formBlock, most: claudeContext}}
	case cli == Claude && kind == formBlock && v.atLeast(claudeDecides):
		// Its model gets the reason of a block twice. What is longer goes by the hook that waits.
		return []giving{{form: formContext, most: claudeContext}}
	case cli == Claude && kind == formBlock && v.atLeast(claudeRewake):
		// It draws the reason of a block before it records it, which takes up to half a minute for
		// a long one under load. What is longer goes by the hook that waits, which it notes at once.
		return []giving{{form: formBlock, most: claudeContext}}
	case cli == Gemini && event == "AfterTool":
		return []giving{{form: formContext, most: geminiContext, entities: true}}
	}
	return []giving{{form: kind, most: wholeMessage}}
}

// reply is an answer of the form.
func (g giving) reply(cli, event, text string) HookReply {
	switch g.form {
	case formContext:
		return HookReply{Stdout: oneLine(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": event, "additionalContext": text}}) + "\n"}
	case formWake:
		return HookReply{Stderr: text + "\n", Exit: 2}
	case formBlock:
	}
	decision := "block"
	if cli == Gemini {
		decision = "deny"
	}
	return HookReply{Stdout: oneLine(map[string]any{"decision": decision, "reason": text}) + "\n"}
}

// GiveMail is the answer of a hook that hands text over; ok is false where no answer at
// this event reaches the model of this version whole.
func GiveMail(cli, event string, v Version, text string) (reply HookReply, ok bool) {
	if text == "" {
		return HookReply{}, false
	}
	for _, g := range givings(cli, event, v) {
		if r := g.reply(cli, event, text); g.count(r.Stdout)+g.count(r.Stderr) <= g.most {
			return r, true
		}
	}
	return HookReply{}, false
}

// MostGiven is how many characters of text the largest answer at an event takes, and
// Characters is what a text counts there, its escapes included.
func MostGiven(cli, event string, v Version) int {
	most := 0
	for _, g := range givings(cli, event, v) {
		r := g.reply(cli, event, "")
		most = max(most, g.most-g.count(r.Stdout)-g.count(r.Stderr))
	}
	return most
}

// Characters is told at MostGiven.
func Characters(cli, event string, v Version, text string) int {
	text = oneLine(text)
	n := characters(text)
	for _, g := range givings(cli, event, v) {
		n = max(n, g.count(text))
	}
	return n - 2
}

// FitsAtEnd reports whether a text fits into an answer at the end of a turn, where a message
// goes that fits nowhere before.
func FitsAtEnd(cli string, v Version, text string) bool {
	for event := range hookTables[cli] {
		if EndsTurn(cli, event) && Characters(cli, event, v, text) <= MostGiven(cli, event, v) {
			return true
		}
	}
	return false
}

// EndsKept is how many ends of turns in a row a version lets a hook keep going; then it
// stops without the answer. 0 is any number.
func EndsKept(cli string, v Version) int {
	if cli == Claude && (!v.Known() || v.atLeast(claudeDecides)) {
		return 7 // of 8
	}
	return 0
}

// characters counts as the programs do.
func characters(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
