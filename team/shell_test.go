package team

import "testing"

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":             "''",
		"/srv/app-1.2": "/srv/app-1.2",
		"it's":         `'it'\''s'`,
		"a b":          "'a b'",
		"$HOME":        "'$HOME'",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}
