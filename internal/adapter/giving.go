package adapter

import (
	"strings"
	"unicode/utf16"
)

// form is the form of answer by which a hook passes on text.
type form string

// Forms of an answer: context adds to the running turn, block continues a turn that was about to
// end, wake is the answer of the background hook that waits.
const (
	formContext form = "context"
	formBlock   form = "block"
	formWake    form = "wake"
)

// giving is one form of answer and the maximum length of the finished answer, below what the
// program was seen to accept whole. Programs count in UTF-16 code units.
type giving struct {
	form     form
	most     int
	entities bool // angle brackets in the text become entities before it is cut
}

// count returns the length of a part of an answer as the program counts it.
func (g giving) count(s string) int {
	n := characters(s)
	if g.entities {
		n += (len("&lt;") - 1) * (strings.Count(s, "<") + strings.Count(s, ">"))
	}
	return n
}

// Sizes that the programs were seen to show their model whole, minus the program's own frame. A
// message with its frame and escapes has at most 210,000 characters.
const (
	claudeContext = 9_500   // of 10,000
	geminiContext = 30_000  // of the last 32,000 that are kept of a tool's output
	wholeMessage  = 240_000 // 250,000 and more were seen whole
)

// givings returns the forms of answer that a version of a program accepts at an event, in order of
// preference. An untried version gets the minimum of the tried ones.
func givings(cli, event string, v Version) []giving {
	kind := form(hookTables()[cli][event].mail)
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
		// Its model gets the reason of a block twice. Longer text goes by the waiting hook.
		return []giving{{form: formContext, most: claudeContext}}
	case cli == Claude && kind == formBlock && v.atLeast(claudeRewake):
		// It draws the reason of a block before it records it, which takes up to half a minute for a
		// long one under load. Longer text goes by the waiting hook, whose answer it records at
		// once.
		return []giving{{form: formBlock, most: claudeContext}}
	case cli == Gemini && event == "AfterTool":
		return []giving{{form: formContext, most: geminiContext, entities: true}}
	}
	return []giving{{form: kind, most: wholeMessage}}
}

// reply returns an answer of the form.
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

// GiveMail returns the answer of a hook that passes on text; ok is false if no answer at this
// event reaches this version's model whole.
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

// MostGiven returns the maximum length of the text in an answer at an event; Characters returns
// the length of a text as counted there, with escapes.
func MostGiven(cli, event string, v Version) int {
	most := 0
	for _, g := range givings(cli, event, v) {
		r := g.reply(cli, event, "")
		most = max(most, g.most-g.count(r.Stdout)-g.count(r.Stderr))
	}
	return most
}

// Characters is documented at MostGiven.
func Characters(cli, event string, v Version, text string) int {
	text = oneLine(text)
	n := characters(text)
	for _, g := range givings(cli, event, v) {
		n = max(n, g.count(text))
	}
	return n - 2
}

// FitsAtEnd reports whether a text fits into an answer at the end of a turn, the fallback for
// messages that fit nowhere earlier.
func FitsAtEnd(cli string, v Version, text string) bool {
	for event := range hookTables()[cli] {
		if EndsTurn(cli, event) && Characters(cli, event, v, text) <= MostGiven(cli, event, v) {
			return true
		}
	}
	return false
}

// EndsKept returns how many consecutive turn ends a version lets a hook continue before it stops
// and ignores the answer. 0 means any number.
func EndsKept(cli string, v Version) int {
	if cli == Claude && (!v.Known() || v.atLeast(claudeDecides)) {
		return 7 // of 8
	}
	return 0
}

// characters counts UTF-16 code units, as the programs do.
func characters(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
