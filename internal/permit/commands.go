package permit

import (
	"regexp"
	"strings"
	"sync"
)

// Classes of tools: what one agent calls Bash another calls run_shell_command.
const (
	shell = "shell"
	edit  = "edit"
	read  = "read"
	fetch = "fetch"
)

var classes = map[string]string{
	"bash": shell, "shell": shell, "exec_command": shell, "run_shell_command": shell, "execute": shell,
	"edit": edit, "write": edit, "multiedit": edit, "notebookedit": edit, "apply_patch": edit, "write_file": edit, "replace": edit,
	"read": read, "read_file": read, "glob": read, "grep": read, "list": read, "search": read,
	"webfetch": fetch, "web_fetch": fetch, "fetch": fetch, "websearch": fetch, "google_web_search": fetch,
}

// classOf returns the class of a tool; "" for an unknown tool.
func classOf(tool string) string { return classes[strings.ToLower(tool)] }

// wild matches a text against a pattern in which "*" stands for any text.
func wild(pattern, text string, fold bool) bool {
	if fold {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	pieces := strings.Split(pattern, "*")
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return pattern == text
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, p := range pieces[1 : len(pieces)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return true
}

// operators are the characters that make a line more than one command, or write to a file.
const operators = ";&|<>`()\n\r"

// simple reports whether a command line is one command and nothing else, even if its quoted parts
// were not quoted.
func simple(command string) bool { return !strings.ContainsAny(command, operators) }

// parts returns the commands of a line, as far as they can be separated: each without surrounding
// blanks and without leading variables.
func parts(command string) (out []string) {
	for _, p := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(operators, r) }) {
		words := strings.Fields(p)
		for len(words) > 0 && strings.Contains(words[0], "=") {
			words = words[1:]
		}
		if len(words) > 0 {
			out = append(out, strings.Join(words, " "))
		}
	}
	return out
}

var wrapped = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:/usr)?(?:/bin/)?(?:ba|da|z)?sh -l?c (?:'([^']*)'|"([^"\\$` + "`" + `]*)"|([A-Za-z0-9_./-]+))$`)
})

// unwrap returns the command that a shell is told to run, if the line is nothing else.
func unwrap(command string) string {
	m := wrapped().FindStringSubmatch(strings.TrimSpace(command))
	if m == nil {
		return strings.TrimSpace(command)
	}
	return strings.TrimSpace(m[1] + m[2] + m[3])
}
