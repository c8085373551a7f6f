package hookcall

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRequest: a request arrives as it was sent, and no part of one passes for a whole.
func TestRequest(t *testing.T) {
	t.Parallel()
	for _, want := range []Request{
		{At: time.Unix(0, 1), Input: []byte{}},
		{CLI: "claude", Event: "PreToolUse", AgentID: "ann@demo", Generation: "g", Token: "t", Notify: "/run/n", Program: "1:2",
			At: time.Unix(0, 1795837120501000001), Input: bytes.Repeat([]byte("{}"), 1<<16)},
	} {
		b := want.Append(nil)
		got, err := Parse(b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
		for n := range min(len(b), 200) {
			if _, err := Parse(b[:n]); !errors.Is(err, errRequest) {
				t.Fatalf("%d of %d bytes: %v", n, len(b), err)
			}
		}
		if _, err := Parse(append(b, 0)); !errors.Is(err, errRequest) {
			t.Errorf("one byte too many: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Request{CLI: "claude", Event: "Stop", At: time.Unix(1, 0), Input: []byte("{}")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Errorf("%q is read as %+v", b, r)
		}
	})
}
