package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
)

func TestCodesAndStatuses(t *testing.T) {
	t.Parallel()
	coded := Errorf(CodeConflict, "claim task %d", 7).WithReason("already_claimed").WithHint("run x")
	for _, tc := range []struct {
		name   string
		err    error
		code   Code
		status int
		reason string
		hint   string
	}{
		{"nil", nil, "", 0, "", ""},
		{"plain", io.EOF, CodeInternal, 1, "", ""},
		{"coded", coded, CodeConflict, 4, "already_claimed", "run x"},
		{"wrapped", fmt.Errorf("outer: %w", coded), CodeConflict, 4, "already_claimed", "run x"},
		{"joined", errors.Join(io.EOF, coded), CodeConflict, 4, "already_claimed", "run x"},
		{"deadline", fmt.Errorf("wait: %w", context.DeadlineExceeded), CodeTimeout, 8, "", ""},
		{"canceled", context.Canceled, CodeInternal, 1, "", ""},
		{"unknown code", Errorf(Code("odd"), "x"), "odd", 1, "", ""},
		{"hint below", Errorf(CodeInvalid, "outer: %w", coded), CodeInvalid, 2, "", "run x"},
		{"hint below two", fmt.Errorf("a: %w", Errorf(CodeInvalid, "b: %w", fmt.Errorf("c: %w", coded))), CodeInvalid, 2, "", "run x"},
	} {
		if got := CodeOf(tc.err); got != tc.code {
			t.Errorf("%s: code %q, want %q", tc.name, got, tc.code)
		}
		if got := ExitStatus(tc.err); got != tc.status {
			t.Errorf("%s: status %d, want %d", tc.name, got, tc.status)
		}
		if got := ReasonOf(tc.err); got != tc.reason {
			t.Errorf("%s: reason %q, want %q", tc.name, got, tc.reason)
		}
		if got := HintOf(tc.err); got != tc.hint {
			t.Errorf("%s: hint %q, want %q", tc.name, got, tc.hint)
		}
		if IsCode(tc.err, tc.code) != (tc.err != nil) {
			t.Errorf("%s: IsCode", tc.name)
		}
	}
}

func TestEveryCodeHasItsStatus(t *testing.T) {
	t.Parallel()
	for code, want := range map[Code]int{
		CodeInternal: 1, CodeInvalid: 2, CodeNotFound: 3, CodeConflict: 4,
		CodeDenied: 5, CodeLimit: 6, CodeUnavailable: 7, CodeTimeout: 8,
	} {
		if got := ExitStatus(Errorf(code, "x")); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}

func TestErrorKeepsItsCauses(t *testing.T) {
	t.Parallel()
	one := Errorf(CodeInternal, "read: %w", fs.ErrNotExist)
	if !errors.Is(one, fs.ErrNotExist) || one.Error() != "read: file does not exist" {
		t.Errorf("%v", one)
	}
	two := Errorf(CodeInternal, "read: %w, then %w", io.EOF, fs.ErrClosed).WithHint("h")
	if !errors.Is(two, io.EOF) || !errors.Is(two, fs.ErrClosed) {
		t.Errorf("%v lost a cause", two)
	}
	if none := Errorf(CodeInternal, "plain"); errors.Unwrap(none) != nil {
		t.Errorf("%v has a cause", none)
	}
}

func TestWithReturnsACopy(t *testing.T) {
	t.Parallel()
	e := Errorf(CodeInvalid, "x")
	if f := e.WithHint("h").WithReason("r"); f.Hint != "h" || f.Reason != "r" || f == e {
		t.Errorf("%+v", f)
	}
	if e.Hint != "" || e.Reason != "" {
		t.Errorf("the first one changed: %+v", e)
	}
}

func TestErrorTravelsAsJSON(t *testing.T) {
	t.Parallel()
	in := Errorf(CodeLimit, "too many: %w", io.EOF).WithReason("cap").WithHint("wait")
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"code":"limit","message":"too many: EOF","reason":"cap","hint":"wait"}`
	if string(data) != want {
		t.Errorf("%s", data)
	}
	var out Error
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Code != in.Code || out.Msg != in.Msg || out.Reason != in.Reason || out.Hint != in.Hint {
		t.Errorf("%+v", out)
	}
}
