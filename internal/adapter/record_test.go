package adapter

import (
	"strings"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	p := Private{
		Home: "/home/bob", Dirs: []string{"/home/bob", "/srv/parser", "/srv/parser/tree"}, User: "bob", Host: "tower7",
		Secrets: []string{"correct-horse-battery-9", "short"},
	}
	for _, c := range []struct{ in, want, gone string }{
		{"│ ~ is /home/bob │ /home/bob/src │ /home/bobby │ /mnt/home/bob", "│ ~ is /home/ann │ /home/ann/src │ /home/bobby │ /mnt/home/bob", "home"},
		{"cwd: /srv/parser/tree/x, /srv/parser.", "cwd: /home/ann/project/x, /home/ann/project.", "directory"},
		{"bob@tower7:~$ on tower70", "ann@machine:~$ on tower70", "host user"},
		{"signed in as bob.b@mail.example.org", "signed in as ann@example.com", "address"},
		{"ANTHROPIC_API_KEY: sk-ant-...01234567890abc", "ANTHROPIC_API_KEY: sk-ant-...xxxxxxxxxxxxxx", "token"},
		{"Authorization: Bearer abc1234567", "Authorization: Bearer xxxxxxxxxx", "token"},
		{"password: required", "password: required", ""},
		{"the task-runner asks", "the task-runner asks", ""},
		{"https://example.com/login?code=true&state=aB3-x_9 ok", "https://example.com/login?code=xxxx&state=xxx-x_x ok", "token"},
		{"eyJhbGciOi.J9eyJz.dGVzdA", "eyJxxxxxxx.xxxxxx.xxxxxx", "token"},
		{"sum " + strings.Repeat("a1", 16), "sum " + strings.Repeat("x", 32), "token"},
		{strings.Repeat("word", 10), strings.Repeat("word", 10), ""},
		{"key ends in battery-9, begins correct-h, is short", "key ends in xxxxxxx-x, begins xxxxxxx-x, is short", "secret"},
		{"resume 8d725563-7ffe-48cc-ac45-3e79b575f8b0", "resume 00000000-0000-4000-8000-000000000000", "id"},
	} {
		got, gone := p.Scrub(c.in)
		if got != c.want || strings.Join(gone, " ") != c.gone {
			t.Errorf("%q:\n got %q %v\nwant %q %v", c.in, got, gone, c.want, c.gone)
		}
		if again, _ := p.Scrub(got); again != got {
			t.Errorf("%q changes when it is scrubbed again: %q", got, again)
		}
	}
	if got, gone := (Private{}).Scrub("nothing of /root and host"); got != "nothing of /root and host" || gone != nil {
		t.Errorf("%q %v", got, gone)
	}
}

func TestScreenNames(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{Claude, "my-agent-2"} {
		for _, rule := range []string{"trust-dialog", "ready-1"} {
			name, err := ScreenName(agent, Version{2, 1, 329}, rule)
			if err != nil {
				t.Fatal(err)
			}
			a, v, r, ok := ParseScreenName(name)
			if !ok || a != agent || v != (Version{2, 1, 329}) || r != rule {
				t.Errorf("%s is read as %q %s %q", name, a, v, r)
			}
		}
	}
	for _, rule := range []string{"", "../x", "a b", "a/b", ".hidden"} {
		if name, err := ScreenName(Claude, Version{1, 2, 3}, rule); !team.IsCode(err, team.CodeInvalid) {
			t.Errorf("%q is a name: %q, %v", rule, name, err)
		}
	}
	if name, err := ScreenName(Claude, Version{}, "login"); err == nil {
		t.Errorf("no version, and a name: %q", name)
	}
}
