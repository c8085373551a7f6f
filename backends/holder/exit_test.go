package holder

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"

	"github.com/teamctl/teamctl/backends"
	"github.com/teamctl/teamctl/backends/bundle"
	"github.com/teamctl/teamctl/team"
)

// onWarn calls a function with each warning.
type onWarn struct {
	slog.Handler
	do func()
}

func (h onWarn) Enabled(context.Context, slog.Level) bool { return true }

func (h onWarn) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		h.do()
	}
	return nil
}

// unreadable hides the record of an exit behind a link that cannot be followed, and returns
// what brings it back.
func unreadable(t *testing.T, b team.Bundle) (back func()) {
	t.Helper()
	hidden := b.Exit() + ".hidden"
	if err := os.Rename(b.Exit(), hidden); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.Exit(), b.Exit()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(hidden, b.Exit()); err != nil {
			t.Error(err)
		}
	}
}

// A record that cannot be read for a while is the exit, and is not replaced however long it takes.
func TestRecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, comes := range []bool{true, false} {
		l := backends.Launch{Agent: "a", Generation: team.NewUUID(), Bundle: team.Bundle(t.TempDir())}
		if err := bundle.WriteExit(l.Bundle, backends.Exit{Generation: l.Generation, Known: true, Code: 7}); err != nil {
			t.Fatal(err)
		}
		back := unreadable(t, l.Bundle)
		log := slog.New(onWarn{slog.DiscardHandler, func() {
			if comes {
				back()
			}
		}})
		var e backends.Exit
		synctest.Test(t, func(*testing.T) { e = Conclude(nil, l, backends.Proc{}, log) })
		if e.Known != comes || comes && e.Code != 7 {
			t.Errorf("comes %v: %+v", comes, e)
		}
		if !comes {
			if _, err := os.Readlink(l.Bundle.Exit()); err != nil {
				t.Errorf("the record was replaced: %v", err)
			}
			back()
		}
		if on, err := bundle.ReadExit(l.Bundle, l.Generation); err != nil || on.Code != 7 {
			t.Errorf("comes %v: the record is %+v, %v", comes, on, err)
		}
	}
}
