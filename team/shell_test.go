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
		"A=b":          "A=b",
		"=ls":          "'=ls'",
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestShellLine(t *testing.T) {
	t.Parallel()
	for want, argv := range map[string][]string{
		"":                             nil,
		"env A=b make":                 {"env", "A=b", "make"},
		"'A=b' make":                   {"A=b", "make"},
		"teamctl spawn 'a b' --on=x,y": {"teamctl", "spawn", "a b", "--on=x,y"},
	} {
		if got := ShellLine(argv); got != want {
			t.Errorf("ShellLine(%q) = %s, want %s", argv, got, want)
		}
	}
}
