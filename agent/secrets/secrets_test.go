package secrets

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHide(t *testing.T) {
	var none *Set
	if none.Hide("x") != "x" || new(Set).Hide("x") != "x" {
		t.Error("a set without secrets hides something")
	}
	s := new(Set)
	s.Add("SHORT", "seven77")
	s.Add("KEY", "sk-secret-1\n")
	s.Add("LONG", "sk-secret-1-and-more")
	for in, want := range map[string]string{
		"seven77":                         "seven77",
		"a sk-secret-1 b":                 "a [redacted:KEY] b",
		"sk-secret-1-and-more":            "[redacted:LONG]",
		"sk-secret-1-and":                 "[redacted:KEY]-and",
		"sk-secret-1sk-secret-1-and-more": "[redacted:KEY][redacted:LONG]",
	} {
		if got := s.Hide(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// TestWriter checks that the output is the same however the text is split into writes, and never
// contains a secret, and that only the beginning of a secret is held back.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(Set)
		for i, v := range rapid.SliceOfN(rapid.StringMatching(`[ab]{8,11}`), 1, 3).Draw(t, "secrets") {
			s.Add(string(rune('A'+i)), v)
		}
		parts := rapid.SliceOf(rapid.StringMatching(`[abc]{0,12}`)).Draw(t, "writes")
		var out bytes.Buffer
		w := &writer{set: s, w: &out}
		for _, p := range parts {
			if n, err := w.Write([]byte(p)); err != nil || n != len(p) {
				t.Fatalf("%d, %v", n, err)
			}
			for _, k := range s.values {
				if strings.Contains(out.String(), k.value) {
					t.Fatalf("%q has the secret %q", out.String(), k.value)
				}
			}
			begins := func(k secret) bool { return len(k.value) > len(w.held) && strings.HasPrefix(k.value, w.held) }
			if w.held != "" && !slices.ContainsFunc(s.values, begins) {
				t.Fatalf("%q is held back and begins no secret", w.held)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := s.Hide(strings.Join(parts, "")); out.String() != want {
			t.Fatalf("%q, want %q", out.String(), want)
		}
	})
}
