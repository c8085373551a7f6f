package courier

import "testing"

// A box shows a part of the typed text, and breaks its lines anywhere.
func TestOurs(t *testing.T) {
	t.Parallel()
	const text = "The following is from a teammate\n\n<teammate-message summary=\"&quot;touch asked&quot;\" message_id=\"e214f493-daf0-41ee-bc37-0f22f87b4475\">\nwords\n</teammate-message>"
	for _, c := range []struct {
		input string
		ours  bool
	}{
		{text, true},
		{"<teammate-message summary=\"&quo\nt;touch asked&quot;\" message_id=\"e214f493-daf0-41ee-\nbc37-0f22f87b4475\">", true},
		{"[Pasted Content 1024 chars]", true},
		{"a draft of the person's own", false},
		{"words", false},
		{"", false},
	} {
		if got := (&Typist{}).Ours(c.input, text); got != c.ours {
			t.Errorf("%q is ours: %v", c.input, got)
		}
	}
}
