package team

import "strings"

// ShellQuote returns s as one word for a POSIX shell, as commands in hints need it.
func ShellQuote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@+=,%"
	if s != "" && s[0] != '=' && strings.Trim(s, plain) == "" { // zsh looks up what follows a leading =
		return s
	}
	return singleQuote(s)
}

// ShellLine returns argv as a person would type it.
func ShellLine(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if words[i] = ShellQuote(w); i == 0 && words[i] == w && strings.Contains(w, "=") { // it would be an assignment
			words[i] = singleQuote(w)
		}
	}
	return strings.Join(words, " ")
}

func singleQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
