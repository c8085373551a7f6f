package inbox

import (
	"regexp"
	"strings"
	"sync"
)

// frameTags match the elements that teamctl and the agents' programs put around
// text that does not come from the agent's user. A text containing one could
// end its own frame or pretend to be another.
var frameTags = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<([\s\pZ\p{Cf}/\\]*(?:` + strings.Join([]string{
		"teammate[-_]message", "task[-_]notification", "cross[-_]session[-_]message", "system[-_](?:reminder|notification|warning)",
		"user[-_]prompt[-_]submit[-_]hook", "hook[-_](?:context|prompt|output|feedback)", "pasted[-_]content", "persisted[-_]output",
		"untrusted[-_]\\w+", "turn[-_]aborted", "environment[-_](?:context|details)", "command[-_](?:name|message|args)",
		"local[-_]command[-_]\\w+", "bash[-_](?:input|stdout|stderr)",
	}, "|") + `)\b)`)
})

// noticeTags match the elements of a notice.
var noticeTags = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)<([\s\pZ\p{Cf}/\\]*(?:task_id|output_file|status|message)\b)`)
})

// escape returns a text that can neither end its enclosing frame nor begin
// another: the first character of such a tag becomes an entity. Everything
// else, such as code, JSON and diffs, is unchanged.
func escape(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	return frameTags().ReplaceAllString(s, "&lt;$1")
}

// inElement is escape for a text between two tags of a notice.
func inElement(s string) string {
	return noticeTags().ReplaceAllString(escape(s), "&lt;$1")
}

// inAttribute escapes characters that would end an attribute or its tag.
var inAttribute = strings.NewReplacer(`"`, "&quot;", "<", "&lt;", ">", "&gt;")

// Body returns the text of a message as Render shows it, if it is no longer
// than team.MaxMessageBytes.
func Body(text string) string { return escape(clean(text, false)) }
