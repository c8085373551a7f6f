package agentlab

import "testing"

func TestUnquoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                       ``,
		`no escape`:              `no escape`,
		`a\nb\"c\\n`:             "a\nb\"c\\n",
		`\u00e9\ud83d\ude00!`:    "é😀!",
		`\ud83d alone`:           "\ufffd alone",
		`\u00e9\n`:               "é\n",
		`\u00e9\u12`:             `é\u12`,
		`\x and \u12zz and \`:    `\x and \u12zz and \`,
		`C:\\new \q\u0041\u0042`: `C:\new \qAB`,
	} {
		if got := unquoted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
