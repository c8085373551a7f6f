package control

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/teamctl/teamctl/internal/hookcall"
	"github.com/teamctl/teamctl/ledger"
)

// TestHookFrames: a hook that waits no longer, and one that has not begun, is left to its own process.
func TestHookFrames(t *testing.T) {
	t.Parallel()
	asked := 0
	quiet := func(ctx context.Context, _ *ledger.Ledger, r hookcall.Request) bool {
		asked++
		if until, ok := ctx.Deadline(); !ok || until.Sub(r.At) >= hookcall.Within {
			t.Errorf("the request of %s may take until %s", r.At, until)
		}
		return r.CLI == "claude"
	}
	for _, c := range []struct {
		name, cli string
		at        time.Time
		none      bool
		want      string
		asked     int
	}{
		{name: "nothing waits", cli: "claude", at: time.Now(), want: hookcall.Done, asked: 1},
		{name: "something waits", cli: "gemini", at: time.Now(), want: hookcall.Runs, asked: 1},
		{name: "late", cli: "claude", at: time.Now().Add(-hookcall.Within), want: hookcall.Runs},
		{name: "early", cli: "claude", at: time.Now().Add(time.Hour), want: hookcall.Runs},
		{name: "a supervisor without hooks", cli: "claude", at: time.Now(), none: true, want: hookcall.Runs},
	} {
		asked = 0
		f := hookFrames{quiet: quiet}
		if c.none {
			f.quiet = nil
		}
		got, err := f.answer(t.Context(), hookcall.Request{CLI: c.cli, At: c.at}.Append(nil))
		if err != nil || string(got) != c.want || asked != c.asked {
			t.Errorf("%s: %s, %v, asked %d times; want %s, %d", c.name, got, err, asked, c.want, c.asked)
		}
	}
	if _, err := (hookFrames{quiet: quiet}).answer(t.Context(), []byte("{}")); !errors.Is(err, errFrame) {
		t.Errorf("of no request: %v", err)
	}
}
