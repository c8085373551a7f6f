package view

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	t.Parallel()
	m := NewMask([]string{
		"ANTHROPIC_API_KEY=hunter2hunter2", "HOME=/home/ann", "LANG=C.UTF-8", "PATH=/usr/bin:/bin", "SESSION=a1b2c3d4e5f6a7b8c9d0e1", "SSH_AUTH_SOCK=/tmp/x", "EDITOR=vi",
		"NUM_TOKENS=200000", "KEY=short",
	}, map[string]string{"/home/ann": "~", "/home/ann/src/shop": "<repository>", "": "x"})
	for in, want := range map[string]string{
		"nothing to hide in C.UTF-8 with vi and 200000":                             "nothing to hide in C.UTF-8 with vi and 200000",
		"key hunter2hunter2, session a1b2c3d4e5f6a7b8c9d0e1.":                       "key [masked], session [masked].",
		"/home/ann/src/shop/a.go and /home/ann/b":                                   "<repository>/a.go and ~/b",
		"sk-0123456789abcdefghij":                                                   "[masked]",
		"ghp_0123456789abcdefghijABCDEFGHIJ":                                        "[masked]",
		"AKIAIOSFODNN7EXAMPLE":                                                      "[masked]",
		"DB_PASSWORD=correct-horse now":                                             "DB_PASSWORD=[masked] now",
		`{"apiToken": "abcdef123456"}`:                                              `{"apiToken": "[masked]"}`,
		"Authorization: Bearer abc.def.ghijk":                                       "Authorization: Bearer [masked]",
		"postgres://bob:s3cret@db/x":                                                "postgres://bob:[masked]@db/x",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nrest": "[masked]\nrest",
		"the token ran out":                                                         "the token ran out",
	} {
		if got := m.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	r := Report{Needs: []Need{{Text: "hunter2hunter2"}}, Graph: &Graph{Nodes: []GraphNode{{Task: Task{Subject: "hunter2hunter2"}}}}, Tasks: []ReportTask{{Log: "hunter2hunter2"}}}
	m.All(&r)
	for _, s := range []string{r.Needs[0].Text, r.Graph.Nodes[0].Subject, r.Tasks[0].Log} {
		if strings.Contains(s, "hunter2") {
			t.Errorf("not masked: %q", s)
		}
	}
}
