package model

import (
	"errors"
	"fmt"
	"testing"

	"github.com/teamctl/teamctl/team"
)

func TestParseRef(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Ref
	}{
		{"anthropic/claude-sonnet-4-5", Ref{"anthropic", "claude-sonnet-4-5"}},
		{"openrouter/meta/llama", Ref{"openrouter", "meta/llama"}},
		{" script/demo ", Ref{"script", "demo"}},
		{"claude", Ref{}},
		{"/x", Ref{}},
		{"x/", Ref{}},
		{"a b/c", Ref{}},
		{"", Ref{}},
	} {
		got, err := ParseRef(c.in)
		if got != c.want {
			t.Errorf("ParseRef(%q) = %v, want %v", c.in, got, c.want)
		}
		if (err != nil) != c.want.IsZero() || err != nil && team.CodeOf(err) != team.CodeInvalid {
			t.Errorf("ParseRef(%q): %v", c.in, err)
		}
		if err == nil {
			if again, err := ParseRef(got.String()); err != nil || again != got {
				t.Errorf("ParseRef(%q) = %v, %v", got, again, err)
			}
		}
	}
}

func TestError(t *testing.T) {
	cause := errors.New("connection reset")
	err := fmt.Errorf("ask: %w", &Error{Kind: Temporary, Provider: "local", Err: cause})
	if k, ok := KindOf(err); !ok || k != Temporary {
		t.Errorf("KindOf = %v, %v", k, ok)
	}
	if !errors.Is(err, cause) || err.Error() != "ask: local: connection reset" {
		t.Errorf("%v", err)
	}
	if _, ok := KindOf(cause); ok {
		t.Error("an error of something else has a kind")
	}
	if got := (&Error{Kind: Refused, Status: 400, Provider: "work", Text: "no such model"}).Error(); got != "work: no such model (status 400)" {
		t.Error(got)
	}
}
